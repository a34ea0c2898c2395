-- Who lost how much to whom, in the last 24 hours? Culprits are VMs, units, cgroups and tasks of the host.
WITH pairs AS (
	SELECT incident_id, cause, share_ns, role, vm_owner AS owner, vm_uuid AS victim_uuid,
		culprit_vm_uuid AS culprit_uuid, coalesce(vm_name, vm_uuid, 'unknown') AS victim,
		coalesce(culprit_vm_name, culprit_vm_uuid, culprit_unit, culprit_cgroup, culprit_comm, 'unknown') AS culprit
	FROM culprits WHERE begin_realtime_ns >= vcpuscope_hours_ago(24) AND side = 'host'
)
SELECT culprit, max(culprit_uuid) AS culprit_vm_uuid, victim, max(victim_uuid) AS victim_vm_uuid,
	max(owner) AS victim_owner, max(role) AS did, cause, count(DISTINCT incident_id) AS incidents,
	round(sum(share_ns) / 1e9, 3) AS lost_s, round(max(share_ns) / 1e6, 1) AS longest_ms
FROM pairs
GROUP BY culprit, victim, cause
ORDER BY lost_s DESC, culprit, victim, cause
LIMIT 1000;
