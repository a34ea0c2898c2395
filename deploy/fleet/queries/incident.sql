-- The record of one incident. begin_ms, written_ms: ms since 1970; null, or an empty text: not known.
-- incident_id is a variable: Grafana replaces it by the id, in which all but letters, digits and -_.~ is encoded.
SELECT incident_id, round(begin_realtime_ns / 1e6) AS begin_ms, round(written_realtime_ns / 1e6) AS written_ms,
	round(duration_ns / 1e6, 3) AS duration_ms, round(time_error_ns / 1e3, 3) AS time_error_us, ongoing, trigger, kind,
	verdict, confidence, runner_up, CAST(missing AS VARCHAR) AS missing, guest_text, guest_task, vcpuscope_version,
	host_id, host_name, host_kernel, host_cpu_model, host_cpu_microcode, coalesce(labels['zone'], '') AS zone,
	coalesce(labels['rack'], '') AS rack, coalesce(labels['ring'], '') AS ring, host_pcpu, host_numa_node,
	vm_name, vm_uuid, trim(concat(coalesce(vm_vmm, ''), ' ', coalesce(vm_vmm_version, ''))) AS vmm, vm_machine_type,
	vm_cgroup, vm_manager, vm_owner, vm_pod_uid, guest_kernel, agent_version, clock_method,
	round(clock_error_ns / 1e3, 3) AS clock_error_us, vcpu, guest_cpu, host_events, host_events_lost, guest_events,
	guest_events_lost, storage_driver, storage_server, storage_pool, storage_source, storage_mount, storage_device,
	evidence_folder, evidence_key, evidence_bytes, evidence_sha256
FROM distinct_incidents WHERE incident_id = '${incident_id:percentencode}';
