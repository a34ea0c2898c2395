-- SPDX-License-Identifier: GPL-2.0-only
-- Test data: deploy/fleet/clickhouse/schema-1.sql as it was in commit 9f4e5b6c, the last one with the first version of the schema.
-- ClickHouse (24.10 or newer): schema of the fleet, version 1. docs/fleet.md describes the columns.
--   clickhouse-client --multiquery < schema-1.sql
-- It can be executed again. A later version is a file schema-2.sql with the changes.
CREATE DATABASE IF NOT EXISTS vcpuscope;

-- The engine removes a row that another one of the same key replaces, at a time of its choice. Views and queries
-- use FINAL, so they count no row twice meanwhile. The window drops a segment that is inserted twice with its token.
CREATE TABLE IF NOT EXISTS vcpuscope.incidents (
	schema LowCardinality(String),
	record LowCardinality(String),
	incident_id String,
	seq UInt16,
	count UInt64,
	begin_realtime_ns Int64,
	end_realtime_ns Int64,
	duration_ns UInt64,
	time_error_ns Nullable(UInt64),
	host_clock_error_ns Nullable(UInt64),
	written_realtime_ns Int64,
	ongoing Bool,
	vcpuscope_version LowCardinality(String),
	host_id LowCardinality(String),
	host_boot_id LowCardinality(String),
	host_name LowCardinality(String),
	host_kernel LowCardinality(String),
	host_cpu_model LowCardinality(Nullable(String)),
	host_cpu_microcode LowCardinality(Nullable(String)),
	labels Map(LowCardinality(String), String),
	host_pcpu Nullable(UInt16),
	host_numa_node Nullable(UInt16),
	vm_name Nullable(String),
	vm_uuid Nullable(String),
	vm_vmm LowCardinality(Nullable(String)),
	vm_vmm_version LowCardinality(Nullable(String)),
	vm_machine_type LowCardinality(Nullable(String)),
	vm_cgroup Nullable(String),
	vm_manager LowCardinality(Nullable(String)),
	vm_owner Nullable(String),
	vm_pod_uid Nullable(String),
	guest_kernel LowCardinality(Nullable(String)),
	agent_version LowCardinality(Nullable(String)),
	clock_method LowCardinality(Nullable(String)),
	clock_error_ns Nullable(UInt64),
	vcpu Nullable(UInt16),
	guest_cpu Nullable(UInt16),
	trigger LowCardinality(Nullable(String)),
	kind LowCardinality(Nullable(String)),
	verdict LowCardinality(Nullable(String)),
	confidence LowCardinality(Nullable(String)),
	runner_up LowCardinality(Nullable(String)),
	causes Array(Tuple(verdict String, share_ns Int64)),
	breakdown_ns Map(LowCardinality(String), UInt64),
	missing Array(String),
	host_events Nullable(UInt64),
	host_events_lost Nullable(UInt64),
	guest_events Nullable(UInt64),
	guest_events_lost Nullable(UInt64),
	culprits Array(Tuple(side String, role String, cause String, share_ns Int64, tasks Int64, pid
		Nullable(Int64), comm Nullable(String), vm_name Nullable(String), vm_uuid Nullable(String),
		vm_vcpu Nullable(Int64), vm_claimed_by_uid Nullable(Int64), cgroup Nullable(String), unit
		Nullable(String))),
	storage_driver LowCardinality(Nullable(String)),
	storage_server LowCardinality(Nullable(String)),
	storage_pool LowCardinality(Nullable(String)),
	storage_source Nullable(String),
	storage_mount Nullable(String),
	storage_device Nullable(String),
	evidence_folder Nullable(String),
	evidence_key Nullable(String),
	evidence_bytes Nullable(UInt64),
	evidence_sha256 Nullable(String),
	guest_text Nullable(String),
	guest_task Nullable(String),
	verdicts Map(LowCardinality(String), UInt64),
	vms Nullable(UInt64),
	lost_incidents Nullable(UInt64),
	lost_figures Nullable(UInt64),
	lost_evidence Nullable(UInt64),
	loss_reason LowCardinality(Nullable(String)),
	truncated Bool,
	received DateTime64(3) DEFAULT now64(3)
) ENGINE = ReplacingMergeTree(seq) ORDER BY incident_id
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS vcpuscope.figures (
	schema LowCardinality(String),
	figures_id String,
	begin_realtime_ns Int64,
	end_realtime_ns Int64,
	interval_ns UInt64,
	vcpuscope_version LowCardinality(String),
	host_id LowCardinality(String),
	host_boot_id LowCardinality(String),
	host_name LowCardinality(String),
	host_kernel LowCardinality(String),
	host_cpu_model LowCardinality(Nullable(String)),
	host_cpu_microcode LowCardinality(Nullable(String)),
	labels Map(LowCardinality(String), String),
	vm_name Nullable(String),
	vm_uuid Nullable(String),
	vm_vmm LowCardinality(Nullable(String)),
	vm_vmm_version LowCardinality(Nullable(String)),
	vm_machine_type LowCardinality(Nullable(String)),
	vm_cgroup Nullable(String),
	vm_manager LowCardinality(Nullable(String)),
	vm_owner Nullable(String),
	vm_pod_uid Nullable(String),
	guest_kernel LowCardinality(Nullable(String)),
	agent_version LowCardinality(Nullable(String)),
	clock_method LowCardinality(Nullable(String)),
	clock_error_ns Nullable(UInt64),
	level LowCardinality(String),
	vcpus UInt64,
	observed_ns UInt64,
	states_ns Map(LowCardinality(String), UInt64),
	agent_up Nullable(Bool),
	host_events UInt64,
	host_events_lost UInt64,
	guest_events UInt64,
	guest_events_lost UInt64,
	incidents Map(LowCardinality(String), UInt64),
	incident_ns Map(LowCardinality(String), UInt64),
	exits Map(LowCardinality(String), UInt64),
	exits_ns Map(LowCardinality(String), UInt64),
	interrupts_late UInt64,
	interrupts_lost UInt64,
	run_delay_wakeup_buckets Array(UInt16),
	run_delay_wakeup_counts Array(UInt64),
	run_delay_wakeup_sum_ns UInt64,
	run_delay_preempted_buckets Array(UInt16),
	run_delay_preempted_counts Array(UInt64),
	run_delay_preempted_sum_ns UInt64,
	exit_handling_buckets Array(UInt16),
	exit_handling_counts Array(UInt64),
	exit_handling_sum_ns UInt64,
	interrupt_latency_unknown_buckets Array(UInt16),
	interrupt_latency_unknown_counts Array(UInt64),
	interrupt_latency_unknown_sum_ns UInt64,
	interrupt_latency_msi_buckets Array(UInt16),
	interrupt_latency_msi_counts Array(UInt64),
	interrupt_latency_msi_sum_ns UInt64,
	interrupt_latency_gsi_buckets Array(UInt16),
	interrupt_latency_gsi_counts Array(UInt64),
	interrupt_latency_gsi_sum_ns UInt64,
	interrupt_latency_ipi_buckets Array(UInt16),
	interrupt_latency_ipi_counts Array(UInt64),
	interrupt_latency_ipi_sum_ns UInt64,
	interrupt_latency_timer_buckets Array(UInt16),
	interrupt_latency_timer_counts Array(UInt64),
	interrupt_latency_timer_sum_ns UInt64,
	interrupt_raise_buckets Array(UInt16),
	interrupt_raise_counts Array(UInt64),
	interrupt_raise_sum_ns UInt64,
	interrupt_wake_buckets Array(UInt16),
	interrupt_wake_counts Array(UInt64),
	interrupt_wake_sum_ns UInt64,
	interrupt_schedule_buckets Array(UInt16),
	interrupt_schedule_counts Array(UInt64),
	interrupt_schedule_sum_ns UInt64,
	interrupt_wait_buckets Array(UInt16),
	interrupt_wait_counts Array(UInt64),
	interrupt_wait_sum_ns UInt64,
	interrupt_enter_buckets Array(UInt16),
	interrupt_enter_counts Array(UInt64),
	interrupt_enter_sum_ns UInt64,
	interrupt_deliver_buckets Array(UInt16),
	interrupt_deliver_counts Array(UInt64),
	interrupt_deliver_sum_ns UInt64,
	interrupt_handle_buckets Array(UInt16),
	interrupt_handle_counts Array(UInt64),
	interrupt_handle_sum_ns UInt64,
	interrupt_softirq_wait_buckets Array(UInt16),
	interrupt_softirq_wait_counts Array(UInt64),
	interrupt_softirq_wait_sum_ns UInt64,
	interrupt_softirq_run_buckets Array(UInt16),
	interrupt_softirq_run_counts Array(UInt64),
	interrupt_softirq_run_sum_ns UInt64,
	interrupt_service_buckets Array(UInt16),
	interrupt_service_counts Array(UInt64),
	interrupt_service_sum_ns UInt64,
	received DateTime64(3) DEFAULT now64(3),
	day Date MATERIALIZED toDate(toDateTime(intDiv(begin_realtime_ns, 1000000000), 'UTC')),
	hour_ns Int64 MATERIALIZED begin_realtime_ns - begin_realtime_ns % 3600000000000
) ENGINE = ReplacingMergeTree PARTITION BY day ORDER BY (host_id, begin_realtime_ns, figures_id)
SETTINGS non_replicated_deduplication_window = 1000;

-- incident.json of an incident folder: INSERT INTO vcpuscope.incidents_1 FORMAT JSONEachRow
CREATE TABLE IF NOT EXISTS vcpuscope.incidents_1 (
	schema String, vm String, trigger String, realtime_ns Int64, stalls_without_folder UInt64,
	verdict Nullable(String), confidence Nullable(String), because Nullable(String), denied Nullable(String),
	guest_cpu Nullable(UInt16), vcpu Nullable(UInt16), duration_ns UInt64, host String, host_kernel String
) ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS vcpuscope.incidents_1_load TO vcpuscope.incidents AS
SELECT schema, 'incident' AS record,
	lower(hex(MD5(concat(host, ' ', vm, ' ', toString(realtime_ns), ' ', trigger)))) AS incident_id,
	1 AS count, realtime_ns - toInt64(duration_ns) AS begin_realtime_ns, realtime_ns AS end_realtime_ns,
	duration_ns, realtime_ns AS written_realtime_ns, lower(hex(MD5(host))) AS host_id, host AS host_name,
	host_kernel, vm AS vm_name, vcpu, guest_cpu, trigger, verdict, confidence
FROM vcpuscope.incidents_1 WHERE trigger != 'snapshot';

-- ---- one row for each record ----

CREATE OR REPLACE VIEW vcpuscope.distinct_incidents AS SELECT * FROM vcpuscope.incidents FINAL;
CREATE OR REPLACE VIEW vcpuscope.distinct_figures AS
SELECT * FROM vcpuscope.figures FINAL SETTINGS do_not_merge_across_partitions_select_final = 1;

-- One row for each culprit of each incident.
CREATE OR REPLACE VIEW vcpuscope.culprits AS
SELECT incident_id, begin_realtime_ns, end_realtime_ns, host_id, host_name, labels, vm_uuid, vm_name, vm_owner,
	verdict, c.side AS side, c.role AS role, c.cause AS cause, c.share_ns AS share_ns, c.comm AS culprit_comm,
	c.vm_uuid AS culprit_vm_uuid, c.vm_name AS culprit_vm_name, c.cgroup AS culprit_cgroup,
	c.unit AS culprit_unit
FROM vcpuscope.incidents FINAL ARRAY JOIN culprits AS c;

-- ---- sums of an hour and a host ----

-- Tables of an hour, filled below every 5 minutes: an hour that got new lines is computed again, from distinct
-- lines, and replaces its rows. host_key stands for a host with its kernel, microcode and ring, vmm_key for a host
-- and a version of its VMM: engines group by a number much faster than by texts.
CREATE TABLE IF NOT EXISTS vcpuscope.host_hours (
	hour_ns Int64, host_key UInt64, vmm_key UInt64, host_id LowCardinality(String), host_name LowCardinality(String),
	host_kernel LowCardinality(String), microcode LowCardinality(String), vmm LowCardinality(String),
	ring LowCardinality(String), vms UInt64, observed_ns UInt64, vcpu_ns UInt64, guest_ns UInt64, kvm_ns UInt64,
	vmm_ns UInt64, runnable_ns UInt64, halted_ns UInt64, blocked_ns UInt64, throttled_ns UInt64,
	stopped_ns UInt64, host_events UInt64, host_events_lost UInt64, guest_events UInt64,
	guest_events_lost UInt64, agents UInt64, agents_down UInt64, interrupts_late UInt64,
	interrupts_lost UInt64, last_end_ns Int64, refreshed DateTime64(3)
) ENGINE = ReplacingMergeTree(refreshed) ORDER BY (host_key, vmm_key, hour_ns);

CREATE TABLE IF NOT EXISTS vcpuscope.histogram_hours (
	hour_ns Int64, host_key UInt64, vmm_key UInt64, name LowCardinality(String), buckets Array(UInt16), counts Array(UInt64), sum_ns UInt64,
	refreshed DateTime64(3)
) ENGINE = ReplacingMergeTree(refreshed) ORDER BY (host_key, vmm_key, hour_ns, name);

CREATE MATERIALIZED VIEW IF NOT EXISTS vcpuscope.host_hours_refresh
REFRESH EVERY 5 MINUTE APPEND TO vcpuscope.host_hours AS
SELECT hour_ns, cityHash64(host_id, host_kernel, microcode, ring) AS host_key,
	cityHash64(host_id, vmm) AS vmm_key, host_id, any(host_name) AS host_name, host_kernel, ifNull(host_cpu_microcode, '') AS microcode,
	trim(BOTH ' ' FROM concat(ifNull(vm_vmm, ''), ' ', ifNull(vm_vmm_version, ''))) AS vmm,
	labels['ring'] AS ring, uniqExact(coalesce(vm_uuid, vm_name, '')) AS vms, sum(observed_ns) AS observed_ns,
	sum(vcpus * interval_ns) AS vcpu_ns,
	sum(states_ns['guest']) AS guest_ns, sum(states_ns['kvm']) AS kvm_ns, sum(states_ns['vmm']) AS vmm_ns,
	sum(states_ns['runnable']) AS runnable_ns, sum(states_ns['halted']) AS halted_ns,
	sum(states_ns['blocked']) AS blocked_ns, sum(states_ns['throttled']) AS throttled_ns,
	sum(states_ns['stopped']) AS stopped_ns, sum(host_events) AS host_events,
	sum(host_events_lost) AS host_events_lost, sum(guest_events) AS guest_events,
	sum(guest_events_lost) AS guest_events_lost, countIf(agent_up IS NOT NULL) AS agents,
	countIf(agent_up = false) AS agents_down, sum(interrupts_late) AS interrupts_late,
	sum(interrupts_lost) AS interrupts_lost, max(end_realtime_ns) AS last_end_ns, now64(3) AS refreshed
FROM vcpuscope.figures FINAL
WHERE (day, hour_ns) IN (SELECT DISTINCT day, hour_ns FROM vcpuscope.figures
	WHERE received >= (SELECT max(refreshed) FROM vcpuscope.host_hours) - INTERVAL 60 SECOND)
GROUP BY hour_ns, host_id, host_kernel, microcode, vmm, ring
SETTINGS do_not_merge_across_partitions_select_final = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS vcpuscope.histogram_hours_refresh
REFRESH EVERY 5 MINUTE APPEND TO vcpuscope.histogram_hours AS
SELECT hour_ns, cityHash64(host_id, host_kernel, ifNull(host_cpu_microcode, ''), labels['ring']) AS host_key,
	cityHash64(host_id, trim(BOTH ' ' FROM concat(ifNull(vm_vmm, ''), ' ', ifNull(vm_vmm_version, '')))) AS vmm_key,
	h.1 AS name, tupleElement(sumMap(h.2, h.3), 1) AS buckets,
	tupleElement(sumMap(h.2, h.3), 2) AS counts, sum(h.4) AS sum_ns, now64(3) AS refreshed
FROM vcpuscope.figures FINAL ARRAY JOIN [
	('run_delay_wakeup', run_delay_wakeup_buckets,
		run_delay_wakeup_counts, run_delay_wakeup_sum_ns),
	('run_delay_preempted', run_delay_preempted_buckets,
		run_delay_preempted_counts, run_delay_preempted_sum_ns),
	('exit_handling', exit_handling_buckets,
		exit_handling_counts, exit_handling_sum_ns),
	('interrupt_latency_unknown', interrupt_latency_unknown_buckets,
		interrupt_latency_unknown_counts, interrupt_latency_unknown_sum_ns),
	('interrupt_latency_msi', interrupt_latency_msi_buckets,
		interrupt_latency_msi_counts, interrupt_latency_msi_sum_ns),
	('interrupt_latency_gsi', interrupt_latency_gsi_buckets,
		interrupt_latency_gsi_counts, interrupt_latency_gsi_sum_ns),
	('interrupt_latency_ipi', interrupt_latency_ipi_buckets,
		interrupt_latency_ipi_counts, interrupt_latency_ipi_sum_ns),
	('interrupt_latency_timer', interrupt_latency_timer_buckets,
		interrupt_latency_timer_counts, interrupt_latency_timer_sum_ns)] AS h
WHERE notEmpty(h.2) AND (day, hour_ns) IN (SELECT DISTINCT day, hour_ns FROM vcpuscope.figures
	WHERE received >= (SELECT max(refreshed) FROM vcpuscope.histogram_hours) - INTERVAL 60 SECOND)
GROUP BY hour_ns, host_key, vmm_key, name
SETTINGS do_not_merge_across_partitions_select_final = 1;

CREATE OR REPLACE VIEW vcpuscope.hours AS SELECT * FROM vcpuscope.host_hours FINAL;
-- One row for each bucket of each histogram.
CREATE OR REPLACE VIEW vcpuscope.histograms AS
SELECT hour_ns, host_key, vmm_key, name, bucket, n
FROM vcpuscope.histogram_hours FINAL ARRAY JOIN buckets AS bucket, counts AS n;
CREATE OR REPLACE VIEW vcpuscope.histogram_sums AS
SELECT hour_ns, host_key, vmm_key, name, sum_ns, arraySum(counts) AS n
FROM vcpuscope.histogram_hours FINAL;

-- ---- functions of the queries ----

CREATE OR REPLACE FUNCTION vcpuscope_hours_ago AS (h) -> toUnixTimestamp64Nano(now64(9)) - h * 3600000000000;
-- Where bucket b begins, and its width (docs/fleet.md, Histograms).
CREATE OR REPLACE FUNCTION vcpuscope_bucket_begin AS (b) ->
	if(b < 16, toFloat64(b), (16 + b % 16) * exp2(intDiv(b, 16) - 1));
CREATE OR REPLACE FUNCTION vcpuscope_bucket_width AS (b) -> if(b < 16, 1., exp2(intDiv(b, 16) - 1));

CREATE TABLE IF NOT EXISTS vcpuscope.schema_version (version UInt16, applied DateTime DEFAULT now())
ENGINE = ReplacingMergeTree ORDER BY version;
INSERT INTO vcpuscope.schema_version (version) VALUES (1);
