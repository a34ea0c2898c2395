-- Verdicts for each rollout ring (the label `ring`), in the last 24 hours, for each 1000 vCPU hours that were observed.
-- Lines that sum incidents above the rate of a host count by the verdict `sum`.
WITH observed AS (
	SELECT ring, sum(observed_ns) / 3.6e12 AS vcpu_hours, count(DISTINCT host_id) AS hosts FROM hours
	WHERE hour_ns >= vcpuscope_hours_ago(24) GROUP BY ring
), counted AS (
	SELECT coalesce(labels['ring'], '') AS in_ring, count AS n, host_id, vm_uuid, duration_ns,
		CASE WHEN record = 'sum' THEN 'sum' ELSE coalesce(verdict, trigger, '') END AS what
	FROM distinct_incidents
	WHERE record IN ('incident', 'sum') AND begin_realtime_ns >= vcpuscope_hours_ago(24)
), mix AS (
	SELECT in_ring AS ring, what AS verdict, sum(n) AS incidents, count(DISTINCT host_id) AS hosts,
		count(DISTINCT vm_uuid) AS vms, sum(duration_ns) / 1e9 AS stalled_s
	FROM counted GROUP BY in_ring, what
)
SELECT m.ring AS ring, m.verdict AS verdict, m.incidents AS incidents, m.hosts AS hosts, m.vms AS vms,
	round(m.stalled_s, 1) AS stalled_s, nullif(o.hosts, 0) AS ring_hosts,
	round(1000 * m.incidents / nullif(o.vcpu_hours, 0), 2) AS per_1000_vcpu_hours,
	round(100.0 * m.incidents / sum(m.incidents) OVER (PARTITION BY m.ring), 1) AS share_of_ring_pct
FROM mix AS m LEFT JOIN observed AS o ON o.ring = m.ring
ORDER BY per_1000_vcpu_hours DESC NULLS LAST, ring, verdict;
