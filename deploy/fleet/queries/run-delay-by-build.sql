-- Which kernel, VMM or microcode made run delay worse, in the last 24 hours?
-- Each host has one 99th percentile for each build that ran on it. A build's hosts are compared with all other hosts,
-- weighted by observed seconds, on the logarithm. worse_pct: how much worse the build's hosts are;
-- worse_at_least_pct: the lower end of the 95 % interval, by which the rows are sorted; null with less than 8 hosts
-- on either side. alarm: it is at least 3.
WITH counted AS (
	SELECT host_key, vmm_key, bucket, sum(n) AS n FROM histograms
	WHERE name IN ('run_delay_wakeup', 'run_delay_preempted') AND hour_ns >= vcpuscope_hours_ago(24)
	GROUP BY host_key, vmm_key, bucket
), merged AS (
	SELECT CASE WHEN side = 'vmm' THEN vmm_key ELSE host_key END AS k, bucket, sum(n) AS n
	FROM counted CROSS JOIN (SELECT 'vmm' AS side UNION ALL SELECT 'host' AS side) AS sides GROUP BY k, bucket
), running AS (
	SELECT k, bucket, n, sum(n) OVER (PARTITION BY k ORDER BY bucket) AS upto, sum(n) OVER (PARTITION BY k) AS total
	FROM merged
), quantiles AS (
	SELECT k, total AS waits,
		vcpuscope_bucket_begin(bucket) + vcpuscope_bucket_width(bucket) * (0.99 * total - (upto - n)) / n AS p99_ns
	FROM running WHERE upto >= 0.99 * total AND upto - n < 0.99 * total
), observed AS (
	SELECT kind, CASE WHEN kind = 'vmm' THEN vmm_key ELSE host_key END AS k,
		CASE kind WHEN 'kernel' THEN host_kernel WHEN 'vmm' THEN vmm ELSE microcode END AS build,
		sum(observed_ns) / 3.6e12 AS w
	FROM hours CROSS JOIN (SELECT 'kernel' AS kind UNION ALL SELECT 'vmm' AS kind
		UNION ALL SELECT 'microcode' AS kind) AS kinds
	WHERE hour_ns >= vcpuscope_hours_ago(24) GROUP BY kind, k, build
), sums AS (
	SELECT o.kind AS kind, o.build AS build, count(*) AS hosts, sum(q.waits) AS waits, sum(o.w) AS w,
		sum(o.w * ln(q.p99_ns)) AS wx, sum(o.w * o.w) AS ww, sum(o.w * o.w * ln(q.p99_ns)) AS wwx,
		sum(o.w * o.w * ln(q.p99_ns) * ln(q.p99_ns)) AS wwxx
	FROM quantiles AS q JOIN observed AS o ON o.k = q.k
	WHERE q.p99_ns > 0 AND q.waits >= 500 AND o.w > 0 GROUP BY o.kind, o.build
), sides AS (
	SELECT *, sum(hosts) OVER (PARTITION BY kind) - hosts AS other_hosts, sum(w) OVER (PARTITION BY kind) - w AS w0,
		sum(wx) OVER (PARTITION BY kind) - wx AS wx0, sum(ww) OVER (PARTITION BY kind) - ww AS ww0,
		sum(wwx) OVER (PARTITION BY kind) - wwx AS wwx0, sum(wwxx) OVER (PARTITION BY kind) - wwxx AS wwxx0
	FROM sums
), means AS (
	SELECT kind, build, hosts, other_hosts, waits, w, wx / w AS mean,
		CASE WHEN other_hosts > 0 THEN wx0 / w0 END AS mean0,
		greatest(wwxx - 2 * wx / w * wwx + wx / w * wx / w * ww, 0) / (w * w) AS variance,
		CASE WHEN other_hosts > 0 THEN
			greatest(wwxx0 - 2 * wx0 / w0 * wwx0 + wx0 / w0 * wx0 / w0 * ww0, 0) / (w0 * w0) END AS variance0
	FROM sides
)
SELECT kind, build, hosts, other_hosts, round(w, 1) AS observed_vcpu_hours, waits,
	round(exp(mean) / 1000, 1) AS p99_us, round(exp(mean0) / 1000, 1) AS others_p99_us,
	round(100 * (exp(mean - mean0) - 1), 1) AS worse_pct,
	CASE WHEN hosts >= 8 AND other_hosts >= 8 THEN
		round(100 * (exp(mean - mean0 - 1.96 * sqrt(variance + variance0)) - 1), 1) END AS worse_at_least_pct,
	hosts >= 8 AND other_hosts >= 8
		AND exp(mean - mean0 - 1.96 * sqrt(variance + variance0)) >= 1.03 AS alarm
FROM means
ORDER BY alarm DESC, worse_at_least_pct DESC NULLS LAST, kind, build;
