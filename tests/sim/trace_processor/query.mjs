// SPDX-License-Identifier: GPL-2.0-only
// Answers SQL about Perfetto traces with Perfetto's own trace_processor, in WebAssembly.
// usage: node query.mjs FOLDER    FOLDER: what ./fetch filled
// Each line of standard input is {"trace": PATH, "sql": {NAME: SQL}}; the answer is one line, {NAME: [ROW...]} or
// {"error": TEXT}. A row is an object; integers that JSON does not hold exactly are strings.
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const folder = path.resolve(process.argv[2]);
const { EngineBase } = await import(pathToFileURL(path.join(folder, "engine.mjs")));

// The bundle expects a web worker: it asks for its program by XMLHttpRequest, and sets onmessage.
const program = fs.readFileSync(path.join(folder, "trace_processor.wasm"));
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: "file:///" };
globalThis.XMLHttpRequest = class {
	open() {}
	send() {
		this.response = program.buffer.slice(program.byteOffset, program.byteOffset + program.length);
		this.status = 200;
	}
};
// It talks of system calls that it does without, and of fields that only its own pages know.
for (const name of ["log", "warn", "error"])
	console[name] = () => {};
// While it loads, it tries a module of 23 bytes that needs 64-bit memory. The package has only the program for 32.
const Module = WebAssembly.Module;
WebAssembly.Module = function (bytes) {
	if (bytes.byteLength < 24)
		throw new Error("no 64-bit memory");
	return new Module(bytes);
};
vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.node.js"), "utf8"));
WebAssembly.Module = Module;
const port = { onmessage: null, postMessage: null };
globalThis.onmessage({ data: port });

class Engine extends EngineBase {
	id = "test";
	constructor() {
		super();
		port.postMessage = (bytes) => this.onRpcResponseBytes(bytes);
	}
	rpcSendRequestBytes(bytes) {
		port.onmessage({ data: bytes });
	}
	begin() {
		return this.resetTraceProcessor({ cropTrackEvents: false, ingestFtraceInRawTable: true,
			analyzeTraceProtoContent: false, ftraceDropUntilAllCpusValid: false });
	}
}

// The program starts later; until then a request throws, and its engine cannot be used again.
let engine, tries = 0;
for (let started = false; !started;) {
	await new Promise((done) => setTimeout(done, 10));
	try {
		engine = new Engine();
		await engine.begin();
		started = true;
	} catch (error) {
		if (++tries > 500)
			throw error;
	}
}

function value(cell) {
	return typeof cell === "bigint" && Number.isSafeInteger(Number(cell)) ? Number(cell) : cell;
}

async function answer(request) {
	await engine.begin();
	await engine.parse(fs.readFileSync(request.trace));
	await engine.notifyEof();
	const answers = {};
	for (const [name, sql] of Object.entries(request.sql)) {
		const result = await engine.query(sql);
		const columns = result.columns(), rows = [];
		for (const it = result.iter({}); it.valid(); it.next())
			rows.push(Object.fromEntries(columns.map((column) => [column, value(it.get(column))])));
		answers[name] = rows;
	}
	return answers;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
	const said = await answer(JSON.parse(line)).catch((error) => ({ error: String(error.message ?? error) }));
	process.stdout.write(JSON.stringify(said, (_, cell) => typeof cell === "bigint" ? String(cell) : cell) + "\n");
}
process.exit(0);
