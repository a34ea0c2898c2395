-- Which VMs have the same stall again and again, in the last 7 days?
-- hours_with: number of different hours in which it occurred; every_minutes: mean distance between two of them.
SELECT coalesce(vm_uuid, vm_name, '') AS vm, max(vm_name) AS name, max(vm_owner) AS owner, verdict,
	count(*) AS incidents, count(DISTINCT host_id) AS hosts,
	count(DISTINCT begin_realtime_ns - begin_realtime_ns % 3600000000000) AS hours_with,
	round((max(begin_realtime_ns) - min(begin_realtime_ns)) / 6e10 / nullif(count(*) - 1, 0), 1) AS every_minutes,
	round(sum(duration_ns) / 1e9, 1) AS stalled_s, round(max(duration_ns) / 1e6, 0) AS longest_ms,
	max(begin_realtime_ns) AS last_begin_realtime_ns
FROM distinct_incidents
WHERE record = 'incident' AND verdict IS NOT NULL AND begin_realtime_ns >= vcpuscope_hours_ago(168)
GROUP BY coalesce(vm_uuid, vm_name, ''), verdict
HAVING count(*) >= 2
ORDER BY incidents DESC, stalled_s DESC, vm, verdict
LIMIT 1000;
