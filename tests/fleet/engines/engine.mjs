// SPDX-License-Identifier: GPL-2.0-only
// An engine for tests: reads lines {"sql": "..."} and answers each with
// {"rows": [...], "columns": [...], "wall_s", "cpu_s"} or {"error": "..."}. Usage: node engine.mjs duckdb|clickhouse NODE_MODULES DATABASE
import { createRequire } from 'node:module';
import readline from 'node:readline';

const [engine, modules, database] = process.argv.slice(2);
const require = createRequire(modules + '/');

async function duckdb() {
	const { DuckDBInstance } = require('@duckdb/node-api');
	const instance = await DuckDBInstance.create(database, { threads: '2' });
	const connection = await instance.connect();
	return async (sql) => {
		const read = await connection.runAndReadAll(sql);
		return { rows: read.getRowObjectsJson(), columns: read.columnNames() };
	};
}

async function clickhouse() {
	const { Session } = require('chdb');
	const session = new Session(database);
	session.query('SET max_threads = 2, output_format_json_quote_64bit_integers = 1');
	return async (sql) => {
		const text = session.query(sql, 'JSON');
		const { data, meta } = text.trim() ? JSON.parse(text) : { data: [], meta: [] };
		return { rows: data, columns: meta.map((column) => column.name) };
	};
}

const query = await { duckdb, clickhouse }[engine]();
for await (const line of readline.createInterface({ input: process.stdin })) {
	const begin = performance.now(), cpu = process.cpuUsage();
	let answer;
	try {
		answer = await query(JSON.parse(line).sql);
	} catch (error) {
		answer = { error: String(error.message ?? error) };
	}
	const used = process.cpuUsage(cpu);
	answer.wall_s = (performance.now() - begin) / 1000;
	answer.cpu_s = (used.user + used.system) / 1e6;
	process.stdout.write(JSON.stringify(answer) + '\n');
}
process.exit(0);
