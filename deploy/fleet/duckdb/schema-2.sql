-- SPDX-License-Identifier: GPL-2.0-only
-- DuckDB: schema, version 2. Execute schema-1.sql before it.
--   duckdb fleet.db -f schema-2.sql
-- It can be executed again. It adds sums of 6 hours, which queries over a day read much faster than those of an hour.

-- One row for each bucket of each histogram of 6 hours, from 00:00, 06:00, 12:00 and 18:00 UTC.
CREATE TABLE IF NOT EXISTS histogram_blocks (
	block_ns BIGINT, host_key UBIGINT, vmm_key UBIGINT, name VARCHAR, bucket USMALLINT, n UBIGINT
);
-- Those of hours that were loaded before.
INSERT INTO histogram_blocks
SELECT hour_ns - hour_ns % 21600000000000 AS block_ns, host_key, vmm_key, name, bucket, sum(n)
FROM histograms WHERE NOT EXISTS (SELECT 1 FROM histogram_blocks)
GROUP BY block_ns, host_key, vmm_key, name, bucket;

INSERT INTO schema_version SELECT 2, now() WHERE 2 NOT IN (SELECT version FROM schema_version);
