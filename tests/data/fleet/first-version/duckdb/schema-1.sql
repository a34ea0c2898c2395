-- SPDX-License-Identifier: GPL-2.0-only
-- Test data: deploy/fleet/duckdb/schema-1.sql as it was in commit 9f4e5b6c, the last one with the first version of the schema.
-- DuckDB (1.3 or newer): schema for one machine or some hundred hosts, version 1. docs/fleet.md describes the columns.
--   duckdb fleet.db -f schema-1.sql
-- It can be executed again. A later version is a file schema-2.sql with the changes. load.sql fills the tables.
CREATE TABLE IF NOT EXISTS incidents (
	"schema" VARCHAR,
	"record" VARCHAR,
	incident_id VARCHAR,
	seq USMALLINT,
	"count" UBIGINT,
	begin_realtime_ns BIGINT,
	end_realtime_ns BIGINT,
	duration_ns UBIGINT,
	time_error_ns UBIGINT,
	host_clock_error_ns UBIGINT,
	written_realtime_ns BIGINT,
	ongoing BOOLEAN,
	vcpuscope_version VARCHAR,
	host_id VARCHAR,
	host_boot_id VARCHAR,
	host_name VARCHAR,
	host_kernel VARCHAR,
	host_cpu_model VARCHAR,
	host_cpu_microcode VARCHAR,
	labels MAP(VARCHAR, VARCHAR),
	host_pcpu USMALLINT,
	host_numa_node USMALLINT,
	vm_name VARCHAR,
	vm_uuid VARCHAR,
	vm_vmm VARCHAR,
	vm_vmm_version VARCHAR,
	vm_machine_type VARCHAR,
	vm_cgroup VARCHAR,
	vm_manager VARCHAR,
	vm_owner VARCHAR,
	vm_pod_uid VARCHAR,
	guest_kernel VARCHAR,
	agent_version VARCHAR,
	clock_method VARCHAR,
	clock_error_ns UBIGINT,
	vcpu USMALLINT,
	guest_cpu USMALLINT,
	"trigger" VARCHAR,
	kind VARCHAR,
	verdict VARCHAR,
	confidence VARCHAR,
	runner_up VARCHAR,
	causes STRUCT("verdict" VARCHAR, "share_ns" BIGINT)[],
	breakdown_ns MAP(VARCHAR, UBIGINT),
	missing VARCHAR[],
	host_events UBIGINT,
	host_events_lost UBIGINT,
	guest_events UBIGINT,
	guest_events_lost UBIGINT,
	culprits STRUCT("side" VARCHAR, "role" VARCHAR, "cause" VARCHAR, "share_ns" BIGINT, "tasks" BIGINT,
		"pid" BIGINT, "comm" VARCHAR, "vm_name" VARCHAR, "vm_uuid" VARCHAR, "vm_vcpu" BIGINT,
		"vm_claimed_by_uid" BIGINT, "cgroup" VARCHAR, "unit" VARCHAR)[],
	storage_driver VARCHAR,
	storage_server VARCHAR,
	storage_pool VARCHAR,
	storage_source VARCHAR,
	storage_mount VARCHAR,
	storage_device VARCHAR,
	evidence_folder VARCHAR,
	evidence_key VARCHAR,
	evidence_bytes UBIGINT,
	evidence_sha256 VARCHAR,
	guest_text VARCHAR,
	guest_task VARCHAR,
	verdicts MAP(VARCHAR, UBIGINT),
	vms UBIGINT,
	lost_incidents UBIGINT,
	lost_figures UBIGINT,
	lost_evidence UBIGINT,
	loss_reason VARCHAR,
	truncated BOOLEAN
);

CREATE TABLE IF NOT EXISTS figures (
	"schema" VARCHAR,
	figures_id VARCHAR,
	begin_realtime_ns BIGINT,
	end_realtime_ns BIGINT,
	interval_ns UBIGINT,
	vcpuscope_version VARCHAR,
	host_id VARCHAR,
	host_boot_id VARCHAR,
	host_name VARCHAR,
	host_kernel VARCHAR,
	host_cpu_model VARCHAR,
	host_cpu_microcode VARCHAR,
	labels MAP(VARCHAR, VARCHAR),
	vm_name VARCHAR,
	vm_uuid VARCHAR,
	vm_vmm VARCHAR,
	vm_vmm_version VARCHAR,
	vm_machine_type VARCHAR,
	vm_cgroup VARCHAR,
	vm_manager VARCHAR,
	vm_owner VARCHAR,
	vm_pod_uid VARCHAR,
	guest_kernel VARCHAR,
	agent_version VARCHAR,
	clock_method VARCHAR,
	clock_error_ns UBIGINT,
	"level" VARCHAR,
	vcpus UBIGINT,
	observed_ns UBIGINT,
	states_ns MAP(VARCHAR, UBIGINT),
	agent_up BOOLEAN,
	host_events UBIGINT,
	host_events_lost UBIGINT,
	guest_events UBIGINT,
	guest_events_lost UBIGINT,
	incidents MAP(VARCHAR, UBIGINT),
	incident_ns MAP(VARCHAR, UBIGINT),
	exits MAP(VARCHAR, UBIGINT),
	exits_ns MAP(VARCHAR, UBIGINT),
	interrupts_late UBIGINT,
	interrupts_lost UBIGINT,
	run_delay_wakeup_buckets USMALLINT[],
	run_delay_wakeup_counts UBIGINT[],
	run_delay_wakeup_sum_ns UBIGINT,
	run_delay_preempted_buckets USMALLINT[],
	run_delay_preempted_counts UBIGINT[],
	run_delay_preempted_sum_ns UBIGINT,
	exit_handling_buckets USMALLINT[],
	exit_handling_counts UBIGINT[],
	exit_handling_sum_ns UBIGINT,
	interrupt_latency_unknown_buckets USMALLINT[],
	interrupt_latency_unknown_counts UBIGINT[],
	interrupt_latency_unknown_sum_ns UBIGINT,
	interrupt_latency_msi_buckets USMALLINT[],
	interrupt_latency_msi_counts UBIGINT[],
	interrupt_latency_msi_sum_ns UBIGINT,
	interrupt_latency_gsi_buckets USMALLINT[],
	interrupt_latency_gsi_counts UBIGINT[],
	interrupt_latency_gsi_sum_ns UBIGINT,
	interrupt_latency_ipi_buckets USMALLINT[],
	interrupt_latency_ipi_counts UBIGINT[],
	interrupt_latency_ipi_sum_ns UBIGINT,
	interrupt_latency_timer_buckets USMALLINT[],
	interrupt_latency_timer_counts UBIGINT[],
	interrupt_latency_timer_sum_ns UBIGINT,
	interrupt_raise_buckets USMALLINT[],
	interrupt_raise_counts UBIGINT[],
	interrupt_raise_sum_ns UBIGINT,
	interrupt_wake_buckets USMALLINT[],
	interrupt_wake_counts UBIGINT[],
	interrupt_wake_sum_ns UBIGINT,
	interrupt_schedule_buckets USMALLINT[],
	interrupt_schedule_counts UBIGINT[],
	interrupt_schedule_sum_ns UBIGINT,
	interrupt_wait_buckets USMALLINT[],
	interrupt_wait_counts UBIGINT[],
	interrupt_wait_sum_ns UBIGINT,
	interrupt_enter_buckets USMALLINT[],
	interrupt_enter_counts UBIGINT[],
	interrupt_enter_sum_ns UBIGINT,
	interrupt_deliver_buckets USMALLINT[],
	interrupt_deliver_counts UBIGINT[],
	interrupt_deliver_sum_ns UBIGINT,
	interrupt_handle_buckets USMALLINT[],
	interrupt_handle_counts UBIGINT[],
	interrupt_handle_sum_ns UBIGINT,
	interrupt_softirq_wait_buckets USMALLINT[],
	interrupt_softirq_wait_counts UBIGINT[],
	interrupt_softirq_wait_sum_ns UBIGINT,
	interrupt_softirq_run_buckets USMALLINT[],
	interrupt_softirq_run_counts UBIGINT[],
	interrupt_softirq_run_sum_ns UBIGINT,
	interrupt_service_buckets USMALLINT[],
	interrupt_service_counts UBIGINT[],
	interrupt_service_sum_ns UBIGINT
);

-- Segments that are loaded: they never change.
CREATE TABLE IF NOT EXISTS segments (file VARCHAR, loaded TIMESTAMP, lines UBIGINT, refused UBIGINT);

-- ---- one row for each record ----

-- load.sql keeps one row for each id.
CREATE OR REPLACE VIEW distinct_incidents AS SELECT * FROM incidents;
CREATE OR REPLACE VIEW distinct_figures AS SELECT * FROM figures;

-- One row for each culprit of each incident.
CREATE OR REPLACE VIEW culprits AS
SELECT incident_id, begin_realtime_ns, end_realtime_ns, host_id, host_name, labels, vm_uuid, vm_name, vm_owner,
	verdict, c.side AS side, c.role AS role, c.cause AS cause, c.share_ns AS share_ns, c.comm AS culprit_comm,
	c.vm_uuid AS culprit_vm_uuid, c.vm_name AS culprit_vm_name, c.cgroup AS culprit_cgroup,
	c.unit AS culprit_unit
FROM (SELECT * EXCLUDE (culprits), unnest(culprits) AS c FROM incidents);

-- ---- sums of an hour and a host ----

-- host_key stands for a host with its kernel, microcode and ring, vmm_key for a host and a version of its VMM:
-- engines group by a number much faster than by texts.

CREATE TABLE IF NOT EXISTS hours (
	hour_ns BIGINT, host_key UBIGINT, vmm_key UBIGINT, host_id VARCHAR, host_name VARCHAR, host_kernel VARCHAR, microcode VARCHAR, vmm VARCHAR,
	ring VARCHAR, vms UBIGINT, observed_ns UBIGINT, vcpu_ns UBIGINT, guest_ns UBIGINT, kvm_ns UBIGINT,
	vmm_ns UBIGINT, runnable_ns UBIGINT, halted_ns UBIGINT, blocked_ns UBIGINT, throttled_ns UBIGINT,
	stopped_ns UBIGINT, host_events UBIGINT, host_events_lost UBIGINT, guest_events UBIGINT,
	guest_events_lost UBIGINT, agents UBIGINT, agents_down UBIGINT, interrupts_late UBIGINT,
	interrupts_lost UBIGINT, last_end_ns BIGINT
);

-- One row for each bucket of each histogram.
CREATE TABLE IF NOT EXISTS histograms (
	hour_ns BIGINT, host_key UBIGINT, vmm_key UBIGINT, name VARCHAR, bucket USMALLINT, n UBIGINT
);

CREATE TABLE IF NOT EXISTS histogram_sums (
	hour_ns BIGINT, host_key UBIGINT, vmm_key UBIGINT, name VARCHAR, sum_ns UBIGINT, n UBIGINT
);

-- ---- functions of the queries ----

CREATE OR REPLACE MACRO vcpuscope_hours_ago(h) AS epoch_ns(now()) - CAST(h * 3600000000000 AS BIGINT);
-- Where bucket b begins, and its width (docs/fleet.md, Histograms).
CREATE OR REPLACE MACRO vcpuscope_bucket_begin(b) AS
	CASE WHEN b < 16 THEN CAST(b AS DOUBLE) ELSE (16 + b % 16) * power(2., b // 16 - 1) END;
CREATE OR REPLACE MACRO vcpuscope_bucket_width(b) AS CASE WHEN b < 16 THEN 1. ELSE power(2., b // 16 - 1) END;

CREATE TABLE IF NOT EXISTS schema_version (version USMALLINT, applied TIMESTAMP);
INSERT INTO schema_version SELECT 1, now() WHERE 1 NOT IN (SELECT version FROM schema_version);
