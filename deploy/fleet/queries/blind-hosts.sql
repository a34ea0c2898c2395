-- Which hosts are blind, in the last 24 hours?
-- silent_minutes: since the last interval of any VM of the host. blind_pct: vCPU time without a known state.
-- lost_*: records and recordings that the host's outbox had to drop. agents_down: intervals that end without the
-- guest's agent. alarm: silent for 20 minutes, 1 % of the time or 1 % of the events lost, or records lost.
WITH seen AS (
	SELECT host_id, max(host_name) AS host_name, max(last_end_ns) AS last_end_ns, sum(vcpu_ns) AS vcpu_ns,
		sum(observed_ns) AS observed_ns, sum(host_events) AS host_events, sum(host_events_lost) AS host_events_lost,
		sum(guest_events) AS guest_events, sum(guest_events_lost) AS guest_events_lost,
		sum(agents) AS agents, sum(agents_down) AS agents_down
	FROM hours WHERE hour_ns >= vcpuscope_hours_ago(24) GROUP BY host_id
), losses AS (
	SELECT host_id, sum(lost_incidents) AS lost_incidents, sum(lost_figures) AS lost_figures,
		sum(lost_evidence) AS lost_evidence
	FROM distinct_incidents WHERE record = 'loss' AND begin_realtime_ns >= vcpuscope_hours_ago(24)
	GROUP BY host_id
), judged AS (
	SELECT s.host_id AS host_id, s.host_name AS host_name,
		(vcpuscope_hours_ago(0) - s.last_end_ns) / 6e10 AS silent_minutes,
		100 * (1 - least(s.observed_ns / nullif(s.vcpu_ns, 0), 1)) AS blind_pct,
		100 * s.host_events_lost / nullif(s.host_events + s.host_events_lost, 0) AS host_events_lost_pct,
		100 * s.guest_events_lost / nullif(s.guest_events + s.guest_events_lost, 0) AS guest_events_lost_pct,
		100 * s.agents_down / nullif(s.agents, 0) AS agents_down_pct,
		coalesce(l.lost_incidents, 0) AS lost_incidents, coalesce(l.lost_figures, 0) AS lost_figures,
		coalesce(l.lost_evidence, 0) AS lost_evidence
	FROM seen AS s LEFT JOIN losses AS l ON l.host_id = s.host_id
)
SELECT host_id, host_name, round(silent_minutes, 1) AS silent_minutes, round(coalesce(blind_pct, 0), 2) AS blind_pct,
	round(coalesce(host_events_lost_pct, 0), 3) AS host_events_lost_pct,
	round(coalesce(guest_events_lost_pct, 0), 3) AS guest_events_lost_pct,
	round(coalesce(agents_down_pct, 0), 1) AS agents_down_pct, lost_incidents, lost_figures, lost_evidence,
	silent_minutes >= 20 OR coalesce(blind_pct, 0) >= 1 OR coalesce(host_events_lost_pct, 0) >= 1
		OR coalesce(guest_events_lost_pct, 0) >= 1 OR lost_incidents + lost_figures > 0 AS alarm
FROM judged
ORDER BY alarm DESC, lost_incidents + lost_figures DESC, coalesce(blind_pct, 0) + coalesce(host_events_lost_pct, 0)
	+ coalesce(guest_events_lost_pct, 0) DESC, silent_minutes DESC, host_id
LIMIT 1000;
