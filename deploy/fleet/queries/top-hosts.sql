-- Hosts whose VMs waited longest for pCPUs, in the last 24 hours, and how many incidents they had.
WITH incidents_of AS (
	SELECT host_id, sum(count) AS incidents, sum(duration_ns) / 1e9 AS stalled_s FROM distinct_incidents
	WHERE record IN ('incident', 'sum') AND begin_realtime_ns >= vcpuscope_hours_ago(24) GROUP BY host_id
), waits AS (
	SELECT host_id, max(host_name) AS name, max(host_kernel) AS kernel,
		sum(observed_ns) / 3.6e12 AS vcpu_hours, sum(runnable_ns) / 1e9 AS runnable_s,
		sum(blocked_ns) / 1e9 AS blocked_s, sum(throttled_ns) / 1e9 AS throttled_s,
		sum(stopped_ns) / 1e9 AS stopped_s
	FROM hours WHERE hour_ns >= vcpuscope_hours_ago(24) GROUP BY host_id
)
SELECT w.host_id AS host_id, w.name AS host_name, w.kernel AS host_kernel,
	round(w.vcpu_hours, 1) AS vcpu_hours, round(100 * w.runnable_s / nullif(w.vcpu_hours * 3600, 0), 3) AS runnable_pct,
	round(w.blocked_s, 1) AS blocked_s, round(w.throttled_s, 1) AS throttled_s, round(w.stopped_s, 1) AS stopped_s,
	coalesce(i.incidents, 0) AS incidents, round(coalesce(i.stalled_s, 0), 1) AS stalled_s
FROM waits AS w LEFT JOIN incidents_of AS i ON i.host_id = w.host_id
ORDER BY runnable_pct DESC NULLS LAST, host_id
LIMIT 1000;
