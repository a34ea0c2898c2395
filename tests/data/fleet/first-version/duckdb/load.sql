-- SPDX-License-Identifier: GPL-2.0-only
-- Test data: deploy/fleet/duckdb/load.sql as it was in commit 9f4e5b6c, the last one with the first version of the schema.
-- DuckDB: loads the segments of a folder that are not loaded yet, each record once.
--   duckdb fleet.db -c "SET VARIABLE outbox = '/var/lib/vcpuscope/outbox'" -f load.sql
-- `outbox` may be a pattern of folders: 'collected/*'. Lines that are not JSON are refused and counted in the
-- table segments.
BEGIN;

-- A query that reads the new segments, with the columns of the table. read_json refuses an empty list.
CREATE OR REPLACE TEMP MACRO segments_query(kind, files, empty) AS
	CASE WHEN files IS NULL THEN empty ELSE
		'SELECT * FROM read_json(' || files || ', format = ''newline_delimited'', ignore_errors = true, '
		|| 'filename = ''file'', maximum_object_size = 1048576, columns = {' || (
			SELECT string_agg(column_name || ': ''' || data_type || '''', ', ' ORDER BY column_index)
			FROM duckdb_columns() WHERE table_name = kind) || '})' END;
CREATE OR REPLACE TEMP MACRO segments_new(pattern) AS (
	SELECT '[' || string_agg('''' || replace(file, '''', '''''') || '''', ', ') || ']'
	FROM glob(getvariable('outbox') || pattern) WHERE file NOT IN (SELECT file FROM segments));
SET VARIABLE incidents_query = segments_query('incidents', segments_new('/incidents-*.jsonl'),
	'SELECT *, '''' AS file FROM incidents LIMIT 0');
SET VARIABLE figures_query = segments_query('figures', segments_new('/figures-*.jsonl'),
	'SELECT *, '''' AS file FROM figures LIMIT 0');
CREATE OR REPLACE TEMP TABLE read_incidents AS FROM query(getvariable('incidents_query'));
CREATE OR REPLACE TEMP TABLE read_figures AS FROM query(getvariable('figures_query'));

-- Of lines with one incident_id, the one with the highest seq counts.
CREATE OR REPLACE TEMP TABLE new_incidents AS
SELECT * EXCLUDE (file) FROM read_incidents AS n
WHERE schema LIKE 'vcpuscope.incident/%' AND incident_id IS NOT NULL AND NOT EXISTS (
	SELECT 1 FROM incidents AS o WHERE o.incident_id = n.incident_id AND o.seq >= n.seq)
QUALIFY row_number() OVER (PARTITION BY incident_id ORDER BY seq DESC) = 1;
DELETE FROM incidents WHERE incident_id IN (SELECT incident_id FROM new_incidents);
INSERT INTO incidents SELECT * FROM new_incidents;

CREATE OR REPLACE TEMP TABLE new_figures AS
SELECT * EXCLUDE (file) FROM read_figures
WHERE schema LIKE 'vcpuscope.figures/%' AND figures_id IS NOT NULL
	AND figures_id NOT IN (SELECT figures_id FROM figures)
QUALIFY row_number() OVER (PARTITION BY figures_id) = 1;
INSERT INTO figures SELECT * FROM new_figures;

INSERT INTO segments
SELECT file, now(), count(*), count(*) FILTER (WHERE incident_id IS NULL) FROM read_incidents GROUP BY file
UNION ALL
SELECT file, now(), count(*), count(*) FILTER (WHERE figures_id IS NULL) FROM read_figures GROUP BY file;

-- Hours that got lines are computed again.
CREATE OR REPLACE TEMP TABLE touched_hours AS
SELECT DISTINCT begin_realtime_ns - begin_realtime_ns % 3600000000000 AS hour_ns FROM new_figures;
-- Constants, so that only the blocks with lines of these hours are read.
SET VARIABLE touched_begin = (SELECT min(hour_ns) FROM touched_hours);
SET VARIABLE touched_end = (SELECT max(hour_ns) + 3600000000000 FROM touched_hours);
DELETE FROM hours WHERE hour_ns IN (SELECT hour_ns FROM touched_hours);
DELETE FROM histograms WHERE hour_ns IN (SELECT hour_ns FROM touched_hours);
DELETE FROM histogram_sums WHERE hour_ns IN (SELECT hour_ns FROM touched_hours);
CREATE OR REPLACE TEMP VIEW touched AS
SELECT *, md5_number_lower(host_id || ' ' || host_kernel || ' ' || microcode || ' ' || ring) AS host_key,
	md5_number_lower(host_id || ' ' || vmm) AS vmm_key
FROM (
	SELECT *, begin_realtime_ns - begin_realtime_ns % 3600000000000 AS hour_ns,
		coalesce(host_cpu_microcode, '') AS microcode,
		trim(coalesce(vm_vmm, '') || ' ' || coalesce(vm_vmm_version, '')) AS vmm,
		coalesce(labels['ring'], '') AS ring
	FROM figures
	WHERE begin_realtime_ns >= getvariable('touched_begin') AND begin_realtime_ns < getvariable('touched_end'))
WHERE hour_ns IN (SELECT hour_ns FROM touched_hours);
CREATE OR REPLACE TEMP VIEW touched_histograms AS
SELECT hour_ns, host_key, vmm_key, h.name, h.buckets, h.counts, h.sum_ns FROM (
	SELECT *, unnest([
		{name: 'run_delay_wakeup', buckets: run_delay_wakeup_buckets,
			counts: run_delay_wakeup_counts, sum_ns: run_delay_wakeup_sum_ns},
		{name: 'run_delay_preempted', buckets: run_delay_preempted_buckets,
			counts: run_delay_preempted_counts, sum_ns: run_delay_preempted_sum_ns},
		{name: 'exit_handling', buckets: exit_handling_buckets,
			counts: exit_handling_counts, sum_ns: exit_handling_sum_ns},
		{name: 'interrupt_latency_unknown', buckets: interrupt_latency_unknown_buckets,
			counts: interrupt_latency_unknown_counts, sum_ns: interrupt_latency_unknown_sum_ns},
		{name: 'interrupt_latency_msi', buckets: interrupt_latency_msi_buckets,
			counts: interrupt_latency_msi_counts, sum_ns: interrupt_latency_msi_sum_ns},
		{name: 'interrupt_latency_gsi', buckets: interrupt_latency_gsi_buckets,
			counts: interrupt_latency_gsi_counts, sum_ns: interrupt_latency_gsi_sum_ns},
		{name: 'interrupt_latency_ipi', buckets: interrupt_latency_ipi_buckets,
			counts: interrupt_latency_ipi_counts, sum_ns: interrupt_latency_ipi_sum_ns},
		{name: 'interrupt_latency_timer', buckets: interrupt_latency_timer_buckets,
			counts: interrupt_latency_timer_counts, sum_ns: interrupt_latency_timer_sum_ns}]) AS h
	FROM touched)
WHERE h.buckets IS NOT NULL;

INSERT INTO hours
SELECT hour_ns, host_key, vmm_key, host_id, any_value(host_name), host_kernel, microcode, vmm, ring,
	count(DISTINCT coalesce(vm_uuid, vm_name, '')), sum(observed_ns), sum(vcpus * interval_ns),
	sum(coalesce(states_ns['guest'], 0)), sum(coalesce(states_ns['kvm'], 0)),
	sum(coalesce(states_ns['vmm'], 0)), sum(coalesce(states_ns['runnable'], 0)),
	sum(coalesce(states_ns['halted'], 0)), sum(coalesce(states_ns['blocked'], 0)),
	sum(coalesce(states_ns['throttled'], 0)), sum(coalesce(states_ns['stopped'], 0)), sum(host_events),
	sum(host_events_lost), sum(guest_events), sum(guest_events_lost), count(agent_up),
	count(*) FILTER (WHERE NOT agent_up), sum(interrupts_late), sum(interrupts_lost), max(end_realtime_ns)
FROM touched GROUP BY hour_ns, host_key, vmm_key, host_id, host_kernel, microcode, vmm, ring;

INSERT INTO histograms
SELECT hour_ns, host_key, vmm_key, name, bucket, sum(n) FROM (
	SELECT *, unnest(buckets) AS bucket, unnest(counts) AS n FROM touched_histograms)
GROUP BY hour_ns, host_key, vmm_key, name, bucket;

INSERT INTO histogram_sums
SELECT hour_ns, host_key, vmm_key, name, sum(sum_ns), sum(list_sum(counts))
FROM touched_histograms GROUP BY hour_ns, host_key, vmm_key, name;

COMMIT;
SELECT file, lines, refused FROM segments WHERE loaded = (SELECT max(loaded) FROM segments) AND refused > 0;
