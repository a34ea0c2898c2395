-- The newest incidents of the VM of one incident. begin_ms: ms since 1970.
-- incident_id is a variable: Grafana replaces it by the id, in which all but letters, digits and -_.~ is encoded.
WITH this AS (
	SELECT coalesce(vm_uuid, vm_name) AS vm FROM distinct_incidents WHERE incident_id = '${incident_id:percentencode}'
)
SELECT incident_id, round(begin_realtime_ns / 1e6) AS begin_ms, host_name, coalesce(verdict, trigger) AS verdict,
	confidence, round(duration_ns / 1e6, 1) AS duration_ms, ongoing
FROM distinct_incidents
WHERE record = 'incident' AND coalesce(vm_uuid, vm_name) = (SELECT vm FROM this)
ORDER BY begin_realtime_ns DESC, incident_id
LIMIT 100;
