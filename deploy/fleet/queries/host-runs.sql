-- For compare-hosts: rows of the last 24 hours, from the begin of the block of 6 hours (UTC) in which they begin. One row
-- for each figure of a host with its kernel, microcode and ring (side `host`), and of a host and a version of its VMM
-- (side `vmm`).
-- f is the figure as a number: engines group by it much faster than by its name.
WITH counted AS (
	SELECT host_key, vmm_key, CASE name WHEN 'run_delay_wakeup' THEN 0 WHEN 'run_delay_preempted' THEN 1 ELSE 2 END AS f,
		bucket, sum(n) AS n
	FROM histogram_blocks
	WHERE name IN ('run_delay_wakeup', 'run_delay_preempted', 'exit_handling')
		AND block_ns >= vcpuscope_hours_ago(24) - vcpuscope_hours_ago(24) % 21600000000000
	GROUP BY host_key, vmm_key, f, bucket
), merged AS (
	SELECT CASE WHEN side = 1 THEN vmm_key ELSE host_key END AS k, f, bucket, sum(n) AS n
	FROM counted CROSS JOIN (SELECT 1 AS side UNION ALL SELECT 0 AS side) AS sides
	GROUP BY k, f, bucket
), running AS (
	SELECT k, f, n, vcpuscope_bucket_begin(bucket) AS b, vcpuscope_bucket_width(bucket) AS w,
		sum(n) OVER (PARTITION BY k, f ORDER BY bucket) AS upto, sum(n) OVER (PARTITION BY k, f) AS total
	FROM merged
), times AS (
	SELECT k, f, max(total) AS samples, sum(n * (b + w / 2)) / max(total) AS mean,
		min(CASE WHEN upto >= 0.5 * total AND upto - n < 0.5 * total
			THEN b + w * (0.5 * total - (upto - n)) / n END) AS p50,
		min(CASE WHEN upto >= 0.9 * total AND upto - n < 0.9 * total
			THEN b + w * (0.9 * total - (upto - n)) / n END) AS p90,
		min(CASE WHEN upto >= 0.95 * total AND upto - n < 0.95 * total
			THEN b + w * (0.95 * total - (upto - n)) / n END) AS p95,
		min(CASE WHEN upto >= 0.99 * total AND upto - n < 0.99 * total
			THEN b + w * (0.99 * total - (upto - n)) / n END) AS p99,
		min(CASE WHEN upto >= 0.999 * total AND upto - n < 0.999 * total
			THEN b + w * (0.999 * total - (upto - n)) / n END) AS p99_9
	FROM running GROUP BY k, f
), observed AS (
	SELECT side, CASE WHEN side = 'vmm' THEN vmm_key ELSE host_key END AS k, host_id, max(host_kernel) AS kernel,
		max(microcode) AS code, max(ring) AS in_ring, max(vmm) AS vmm_version, sum(observed_ns) AS ns,
		sum(host_events_lost + guest_events_lost) AS lost_events, sum(guest_ns) AS guest, sum(kvm_ns) AS kvm,
		sum(vmm_ns) AS vmm_, sum(runnable_ns) AS runnable, sum(halted_ns) AS halted, sum(blocked_ns) AS blocked,
		sum(throttled_ns) AS throttled, sum(stopped_ns) AS stopped
	FROM hours CROSS JOIN (SELECT 'vmm' AS side UNION ALL SELECT 'host' AS side) AS sides
	WHERE hour_ns >= vcpuscope_hours_ago(24) - vcpuscope_hours_ago(24) % 21600000000000 GROUP BY side, k, host_id
)
SELECT o.side AS side, o.host_id AS host_id, o.kernel AS kernel, o.code AS microcode, o.in_ring AS ring,
	o.vmm_version AS vmm, o.ns AS observed_ns, o.lost_events AS lost_events,
	100.0 * o.guest / o.ns AS guest_pct, 100.0 * o.kvm / o.ns AS kvm_pct, 100.0 * o.vmm_ / o.ns AS vmm_pct,
	100.0 * o.runnable / o.ns AS runnable_pct, 100.0 * o.halted / o.ns AS halted_pct,
	100.0 * o.blocked / o.ns AS blocked_pct, 100.0 * o.throttled / o.ns AS throttled_pct,
	100.0 * o.stopped / o.ns AS stopped_pct,
	CASE t.f WHEN 0 THEN 'run_delay.wakeup' WHEN 1 THEN 'run_delay.preempted' ELSE 'exits' END AS figure,
	t.samples AS samples, t.mean AS mean, t.p50 AS p50, t.p90 AS p90, t.p95 AS p95, t.p99 AS p99, t.p99_9 AS p99_9
FROM observed AS o JOIN times AS t ON t.k = o.k
WHERE o.ns > 0
ORDER BY side, host_id, kernel, microcode, ring, vmm, figure;
