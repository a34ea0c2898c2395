-- Whose VM steals from whom, in the last 24 hours?
-- One row for each VM that ran on a pCPU while another VM waited for it. stolen_s: time that other VMs lost to it.
-- alarm: at least 10 incidents of at least 2 VMs, and at least half of what VMs of its hosts lost to other VMs.
WITH thefts AS (
	SELECT incident_id, host_id, coalesce(culprit_vm_uuid, culprit_vm_name) AS thief,
		culprit_vm_name AS thief_name, coalesce(vm_uuid, vm_name) AS victim, vm_name AS victim_name, share_ns
	FROM culprits
	WHERE begin_realtime_ns >= vcpuscope_hours_ago(24) AND side = 'host'
		AND coalesce(culprit_vm_uuid, culprit_vm_name) IS NOT NULL
		AND coalesce(culprit_vm_uuid, culprit_vm_name) <> coalesce(vm_uuid, vm_name, '')
), pairs AS (
	SELECT thief, max(thief_name) AS named, victim, max(victim_name) AS victim_named,
		count(DISTINCT incident_id) AS times, sum(share_ns) / 1e9 AS lost_s
	FROM thefts GROUP BY thief, victim
), host_totals AS (
	SELECT host_id, sum(share_ns) / 1e9 AS stolen_s FROM thefts GROUP BY host_id
), thief_hosts AS (
	SELECT DISTINCT thief, host_id FROM thefts
), around AS (
	SELECT t.thief AS thief, count(*) AS hosts, max(h.host_id) AS a_host_id, sum(h.stolen_s) AS stolen_s
	FROM thief_hosts AS t JOIN host_totals AS h ON h.host_id = t.host_id GROUP BY t.thief
), thieves AS (
	SELECT thief, max(named) AS thief_name, count(*) AS victims, sum(times) AS incidents,
		sum(lost_s) AS stolen_s, argMax(victim, lost_s) AS worst_victim,
		argMax(victim_named, lost_s) AS worst_victim_name, max(lost_s) AS worst_victim_s
	FROM pairs GROUP BY thief
)
SELECT v.thief AS thief, v.thief_name AS thief_name, v.victims AS victims, v.incidents AS incidents,
	round(v.stolen_s, 3) AS stolen_s, round(100 * v.stolen_s / a.stolen_s, 1) AS share_of_hosts_pct,
	v.worst_victim AS worst_victim, v.worst_victim_name AS worst_victim_name,
	round(v.worst_victim_s, 3) AS worst_victim_s, a.a_host_id AS host_id,
	v.incidents >= 10 AND v.victims >= 2 AND v.stolen_s >= 0.5 * a.stolen_s AS alarm
FROM thieves AS v JOIN around AS a ON a.thief = v.thief
ORDER BY alarm DESC, stolen_s DESC, thief;
