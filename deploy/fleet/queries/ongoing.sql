-- Incidents that did not end as far as the engine knows: still ongoing, or their host or daemon is gone.
SELECT incident_id, host_id, host_name, vm_uuid, vm_name, coalesce(verdict, trigger) AS verdict,
	round(duration_ns / 1e9, 1) AS seen_for_s, begin_realtime_ns, written_realtime_ns,
	round((vcpuscope_hours_ago(0) - written_realtime_ns) / 6e10, 1) AS written_minutes_ago
FROM distinct_incidents
WHERE ongoing
ORDER BY begin_realtime_ns DESC, incident_id
LIMIT 1000;
