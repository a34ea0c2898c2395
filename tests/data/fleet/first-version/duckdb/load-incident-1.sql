-- SPDX-License-Identifier: GPL-2.0-only
-- Test data: deploy/fleet/duckdb/load-incident-1.sql as it was in commit 9f4e5b6c, the last one with the first version of the schema.
-- DuckDB: loads incident.json (vcpuscope.incident/1) of incident folders that were written before there were segments.
--   duckdb fleet.db -c "SET VARIABLE folders = '/var/lib/vcpuscope/web1/incidents/*'" -f load-incident-1.sql
-- Its times are those of the writing; it has no id of the host, so the host's name stands for it.
INSERT INTO incidents BY NAME
SELECT n.* FROM (
	SELECT schema, 'incident' AS record, md5(host || ' ' || vm || ' ' || realtime_ns || ' ' || "trigger") AS incident_id,
		0 AS seq, 1 AS count, realtime_ns - coalesce(duration_ns, 0) AS begin_realtime_ns,
		realtime_ns AS end_realtime_ns, coalesce(duration_ns, 0) AS duration_ns, realtime_ns AS written_realtime_ns, false AS ongoing, '' AS vcpuscope_version,
		md5(host) AS host_id, '' AS host_boot_id, host AS host_name, host_kernel, map() AS labels, vm AS vm_name,
		vcpu, guest_cpu, "trigger", verdict, confidence, [] AS causes, map() AS breakdown_ns, [] AS missing,
		[] AS culprits, map() AS verdicts, false AS truncated
	FROM read_json(getvariable('folders') || '/incident.json', columns = {
		schema: 'VARCHAR', vm: 'VARCHAR', "trigger": 'VARCHAR', realtime_ns: 'BIGINT', verdict: 'VARCHAR',
		confidence: 'VARCHAR', guest_cpu: 'USMALLINT', vcpu: 'USMALLINT', duration_ns: 'BIGINT',
		host: 'VARCHAR', host_kernel: 'VARCHAR'})
	WHERE schema = 'vcpuscope.incident/1' AND "trigger" <> 'snapshot') AS n
WHERE n.incident_id NOT IN (SELECT incident_id FROM incidents)
QUALIFY row_number() OVER (PARTITION BY n.incident_id) = 1;
