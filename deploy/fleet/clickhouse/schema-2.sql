-- SPDX-License-Identifier: GPL-2.0-only
-- ClickHouse: schema of the fleet, version 2. Execute schema-1.sql before it.
--   clickhouse-client --multiquery < schema-2.sql
-- It can be executed again. It adds sums of 6 hours, which queries over a day read much faster than those of an hour.

-- Histograms of 6 hours, from 00:00, 06:00, 12:00 and 18:00 UTC. As with the tables of an hour, a block with an hour
-- that was computed again is computed again, from the sums of hours, and replaces its rows. The overlap of 10 minutes
-- takes hours that became visible while the blocks were computed.
CREATE TABLE IF NOT EXISTS vcpuscope.histogram_six_hours (
	block_ns Int64, host_key UInt64, vmm_key UInt64, name LowCardinality(String), buckets Array(UInt16), counts Array(UInt64),
	refreshed DateTime64(3)
) ENGINE = ReplacingMergeTree(refreshed) ORDER BY (host_key, vmm_key, block_ns, name);

CREATE MATERIALIZED VIEW IF NOT EXISTS vcpuscope.histogram_six_hours_refresh
REFRESH EVERY 5 MINUTE APPEND TO vcpuscope.histogram_six_hours AS
SELECT hour_ns - hour_ns % 21600000000000 AS block_ns, host_key, vmm_key, name,
	tupleElement(sumMap(h.buckets, h.counts), 1) AS buckets, tupleElement(sumMap(h.buckets, h.counts), 2) AS counts,
	now64(3) AS refreshed
FROM vcpuscope.histogram_hours AS h FINAL
WHERE hour_ns - hour_ns % 21600000000000 IN (
	SELECT DISTINCT hour_ns - hour_ns % 21600000000000 FROM vcpuscope.histogram_hours
	WHERE refreshed >= (SELECT max(refreshed) FROM vcpuscope.histogram_six_hours) - INTERVAL 10 MINUTE)
GROUP BY block_ns, host_key, vmm_key, name;

-- One row for each bucket of each histogram of 6 hours.
CREATE OR REPLACE VIEW vcpuscope.histogram_blocks AS
SELECT block_ns, host_key, vmm_key, name, bucket, n
FROM vcpuscope.histogram_six_hours FINAL ARRAY JOIN buckets AS bucket, counts AS n;

INSERT INTO vcpuscope.schema_version (version) VALUES (2);
