-- Who caused one incident: VMs, units, cgroups and tasks of the host, and what the guest did itself.
-- incident_id is a variable: Grafana replaces it by the id, in which all but letters, digits and -_.~ is encoded.
SELECT side, role AS did, cause, round(share_ns / 1e6, 3) AS share_ms,
	culprit_vm_name, culprit_vm_uuid, culprit_unit, culprit_cgroup, culprit_comm
FROM culprits WHERE incident_id = '${incident_id:percentencode}'
ORDER BY share_ns DESC, side, did, culprit_vm_uuid, culprit_cgroup, culprit_comm;
