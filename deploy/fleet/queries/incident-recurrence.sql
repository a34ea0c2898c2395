-- Which incidents did the VM of one incident have, from 7 days before it until now?
-- hours_with: number of different hours in which it occurred; every_minutes: mean distance between two of them.
-- incident_id is a variable: Grafana replaces it by the id, in which all but letters, digits and -_.~ is encoded.
WITH this AS (
	SELECT coalesce(vm_uuid, vm_name) AS vm, begin_realtime_ns - 604800000000000 AS since_ns
	FROM distinct_incidents WHERE incident_id = '${incident_id:percentencode}'
), incidents_of_vm AS (
	SELECT coalesce(verdict, trigger) AS what, host_id, duration_ns, begin_realtime_ns AS begin_ns
	FROM distinct_incidents
	WHERE record = 'incident' AND coalesce(vm_uuid, vm_name) = (SELECT vm FROM this)
		AND begin_realtime_ns >= (SELECT since_ns FROM this)
)
SELECT what AS verdict, count(*) AS incidents, count(DISTINCT host_id) AS hosts,
	count(DISTINCT begin_ns - begin_ns % 3600000000000) AS hours_with,
	round((max(begin_ns) - min(begin_ns)) / 6e10 / nullif(count(*) - 1, 0), 1) AS every_minutes,
	round(sum(duration_ns) / 1e9, 1) AS stalled_s, round(max(duration_ns) / 1e6, 0) AS longest_ms,
	round(max(begin_ns) / 1e6) AS last_begin_ms
FROM incidents_of_vm
GROUP BY what
ORDER BY incidents DESC, verdict;
