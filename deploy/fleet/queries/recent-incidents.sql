-- The newest incidents of the last 24 hours. begin_ms: ms since 1970.
SELECT incident_id, round(begin_realtime_ns / 1e6) AS begin_ms, host_name, coalesce(vm_name, vm_uuid) AS vm, vm_owner,
	coalesce(verdict, trigger) AS verdict, confidence, round(duration_ns / 1e6, 1) AS duration_ms, ongoing
FROM distinct_incidents
WHERE record = 'incident' AND begin_realtime_ns >= vcpuscope_hours_ago(24)
ORDER BY begin_realtime_ns DESC, incident_id
LIMIT 1000;
