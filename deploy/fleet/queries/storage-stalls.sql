-- Which storage do the last hour's storage stalls share?
-- usual: median of all storages that had a stall in the last 24 hours, per hour.
-- alarm: at least 10 stalls on at least 3 hosts, and 4 times the usual number.
WITH stalls AS (
	SELECT incident_id, host_id, vm_uuid, vm_name, duration_ns, begin_realtime_ns,
		coalesce(storage_driver, 'unknown') AS driver,
		coalesce(storage_server, storage_pool, storage_source, storage_device, 'unknown') AS node
	FROM distinct_incidents
	WHERE record = 'incident' AND begin_realtime_ns >= vcpuscope_hours_ago(24)
		AND (verdict IN ('storage_backend', 'device_no_completion')
			OR storage_driver IS NOT NULL OR storage_device IS NOT NULL)
), nodes AS (
	SELECT driver, node,
		sum(CASE WHEN begin_realtime_ns >= vcpuscope_hours_ago(1) THEN 1 ELSE 0 END) AS stalls,
		count(DISTINCT CASE WHEN begin_realtime_ns >= vcpuscope_hours_ago(1) THEN host_id END) AS hosts,
		count(DISTINCT CASE WHEN begin_realtime_ns >= vcpuscope_hours_ago(1)
			THEN coalesce(vm_uuid, vm_name) END) AS vms,
		sum(CASE WHEN begin_realtime_ns >= vcpuscope_hours_ago(1) THEN duration_ns ELSE 0 END) / 1e9 AS stalled_s,
		count(*) / 24.0 AS per_hour
	FROM stalls GROUP BY driver, node
), compared AS (
	SELECT *, (SELECT median(per_hour) FROM nodes) AS usual, sum(stalls) OVER () AS all_stalls FROM nodes
)
SELECT node, driver, stalls, hosts, vms, round(stalled_s, 1) AS stalled_s,
	round(100.0 * stalls / nullif(all_stalls, 0), 1) AS share_pct, round(usual, 2) AS usual_per_hour,
	stalls >= 10 AND hosts >= 3 AND stalls >= 4 * usual AS alarm
FROM compared WHERE stalls > 0
ORDER BY alarm DESC, stalls DESC, node;
