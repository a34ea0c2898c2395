// SPDX-License-Identifier: GPL-2.0-only
// Draws a report page from the data in it. Computes nothing but places and colours.
"use strict";

const VERDICT_WORDS = {
	undetermined: "Cause not determined",
	vcpu_not_scheduled: "The vCPU waited for a physical CPU",
	lock_holder_preempted: "The holder of a lock was not running",
	ipi_target_preempted: "The target of an interrupt between vCPUs was not running",
	cgroup_throttled: "The vCPU was out of its CPU quota",
	vmm_lock: "The vCPU waited for QEMU's lock",
	storage_backend: "The vCPU waited for the host's storage",
	mmu_contention: "The vCPU waited for a lock of its memory map",
	demand_paging: "The vCPU waited for a page of its memory",
	migration: "The VM was stopped to be migrated",
	vm_paused: "The VM was paused",
	clock_jump: "The guest's clock jumped",
	split_lock: "The vCPU was slowed down for a split lock",
	interrupt_lost: "An interrupt was lost",
	timer_late: "A timer came late",
	device_no_completion: "A device did not answer",
	host_memory: "The vCPU waited for the host's memory",
	host_lockup: "The host's own CPU stood still",
	nested_unobservable: "The cause lies in an outer host",
	guest_irq_storm: "The guest was busy with interrupts",
	guest_spin: "The guest itself kept its CPU busy",
};
const TABLE_WORDS = {
	vcpu: ["vCPUs", "What each vCPU did, and how long it waited whenever it wanted a pCPU."],
	tasks: ["Victims: guest tasks", "How long each believed that it ran, and what it was denied."],
	culprits: ["Culprits: host tasks", "Who held a pCPU that a vCPU wanted."],
	pcpu: ["pCPUs", "How long vCPUs ran and waited on each."],
	exits: ["VM exits", "By reason: how often, how long, where that time went."],
	irq: ["Guest interrupts", "By the guest's own account; time in the handler."],
	halts: ["Halts", "What KVM's polling before a halted vCPU slept was worth."],
	faults: ["Guest page faults", "By 2 MiB of the guest's memory."],
	chains: ["Stages of an interrupt's way", "How long each took, from what raised it to its end."],
	slowest: ["The slowest interrupts", "With the time that each stage took."],
	overdue: ["Interrupts that were lost or late", "One by one."],
	ticks: ["Timer ticks", "That came late to a busy guest CPU."],
	delays: ["Where interrupts were delayed", "From what raised them to the guest's handler."],
	steal: ["Steal time", "What the guest was told, and what was measured."],
};
const LATENCY_WORDS = {
	vcpu_wait: "vCPU latency: wait for a pCPU",
	interrupt: "Interrupt latency: raised to handler",
	handler: "Time in guest interrupt handlers",
};
const OPEN_INCIDENTS = 3; // more are folded until somebody asks

const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report;

function verdict_text(incident) {
	if (incident.healthy)
		return "Long, but nothing was denied";
	return VERDICT_WORDS[incident.verdict] || incident.verdict.replaceAll("_", " ");
}

// What the guest CPU was doing.
function doing(incident) {
	const who = (incident.task.comm || "task") + " (" + incident.task.pid + ")";

	if (incident.kind === "idle")
		return "idle";
	if (incident.kind === "unknown")
		return "the guest's side is not known";
	if (incident.kind === "task")
		return "task " + who;
	return (incident.kind === "softirq" ? "softirq " : "interrupt ") + incident.interrupt.name +
		" in " + who;
}

// Wall time of a time on the timeline, or seconds since the recording began.
function wall(t_ns, with_date) {
	if (report.begin_realtime_ns === undefined)
		return "+" + ((t_ns - report.begin_ns) / 1e9).toFixed(6) + " s";
	const ns = report.begin_realtime_ns + (t_ns - report.begin_ns);
	const date = new Date(ns / 1e6);
	const two = (n) => String(n).padStart(2, "0");
	const micros = Math.floor((ns / 1e3) % 1e6);
	const time = two(date.getHours()) + ":" + two(date.getMinutes()) + ":" +
		two(date.getSeconds()) + "." + String(micros).padStart(6, "0");

	return with_date ? date.getFullYear() + "-" + two(date.getMonth() + 1) + "-" +
		two(date.getDate()) + " " + time : time;
}

// Where the error of an event saturates, it says nothing.
function error_text(ns) {
	return ns >= 4294967295 ? "unbounded" : "\u00b1" + duration(ns);
}

function clock_of(vm) {
	return report.clock.find((clock) => clock.vm === vm);
}

function section(id, title, ...children) {
	return el("section", {id, "aria-labelledby": id + "-title"},
		el("h2", {id: id + "-title"}, title), ...children);
}

// ---- head ----

function head() {
	const stalls = report.incidents.filter((i) => !i.healthy);
	const total = stalls.length + data.incidents_left_out;
	const longest = stalls.reduce((a, b) => !a || b.duration_ns > a.duration_ns ? b : a, null);
	const badges = el("p", {class: "badges"});
	const box = el("header", {}, el("h1", {}, "Why did the guest stall?"),
		el("p", {class: "source"}, data.recording, ", " + wall(report.begin_ns, true) + ", " +
			duration(report.end_ns - report.begin_ns) + " long; stalls of " +
			duration(report.threshold_ns) + " or more"));

	if (report.simulated)
		badges.append(el("span", {class: "badge"}, "simulated: made by the simulator, not by a machine"));
	if (report.imported)
		badges.append(el("span", {class: "badge"}, "imported: another tracer's recording, " +
			"which may not hold all that vcpuscope would have captured"));
	if (!report.complete)
		badges.append(el("span", {class: "badge"}, "cut: this is what is whole of the recording"));
	if (badges.childNodes.length)
		box.append(badges);
	if (longest)
		box.append(el("p", {class: "answer"}, el("strong", {}, plural(total, "stall") + "."),
			(total > 1 ? " The longest, " : " ") + duration(longest.duration_ns) + " on guest CPU " +
			longest.guest_cpu + " of VM " + longest.vm + ": " + longest.because + "."));
	else
		box.append(el("p", {class: "answer"}, el("strong", {}, "No stall")," of " +
			duration(report.threshold_ns) + " or more in " +
			duration(report.end_ns - report.begin_ns) + "."));
	return box;
}

function verdict_list() {
	const groups = new Map();

	for (const [index, incident] of report.incidents.entries()) {
		const key = [incident.vm, incident.healthy ? "" : incident.verdict,
			incident.confidence].join("\n");

		if (!groups.has(key))
			groups.set(key, []);
		groups.get(key).push(index);
	}
	const list = el("ol", {class: "verdicts"});

	for (const indices of groups.values()) {
		const all = indices.map((i) => report.incidents[i]);
		const worst = indices.reduce((a, b) =>
			report.incidents[b].duration_ns > report.incidents[a].duration_ns ? b : a);
		const first = report.incidents[worst];
		const sum = all.reduce((ns, i) => ns + i.duration_ns, 0);

		list.append(el("li", {class: first.healthy ? "healthy" : first.confidence},
			el("a", {href: "#incident-" + worst}, verdict_text(first)),
			first.healthy ? null : el("span", {class: "confidence " + first.confidence},
				first.confidence),
			el("span", {class: "amount"}, (all.length > 1 ? all.length + " times, " +
				duration(sum) + " in all, the longest " : "") + duration(first.duration_ns)),
			el("p", {}, "VM " + first.vm + ": " + (first.healthy ? doing(first)
				: first.because || "what is missing: " + first.missing.join(", ")))));
	}
	return list;
}

// All incidents over the whole recording, a row for each VM.
function overview() {
	const box = el("div", {class: "overview"});
	const vms = [...new Set(report.incidents.map((i) => i.vm))];
	const span = report.end_ns - report.begin_ns;

	if (!vms.length || !span)
		return null;
	draw_to_width(box, (width) => {
		const height = 24 * vms.length + 24, x = (t) => 110 + (t / span) * (width - 120);
		const picture = svg("svg", {viewBox: "0 0 " + width + " " + height, height, role: "img",
			"aria-label": "When the stalls were: " + plural(report.incidents.length, "mark") +
			" in " + duration(span)});

		for (const [row, vm] of vms.entries()) {
			picture.append(svg("text", {class: "row-label", x: 102, y: 24 * row + 16,
				"text-anchor": "end"}, vm.length > 14 ? vm.slice(0, 13) + "\u2026" : vm));
			picture.append(svg("rect", {class: "lane", x: 110, y: 24 * row + 2, width: width - 120,
				height: 20}));
		}
		for (const [index, i] of report.incidents.entries()) {
			const mark = svg("a", {href: "#incident-" + index, "aria-label": verdict_text(i) + ", " +
				duration(i.duration_ns)}, svg("rect", {class: "mark " + (i.healthy ? "healthy"
				: i.confidence), x: x(i.begin_ns - report.begin_ns), y: 24 * vms.indexOf(i.vm) + 3,
				width: Math.max(2.5, i.duration_ns / span * (width - 120)), height: 18}));

			mark.addEventListener("pointermove", (event) => tip.show(event, [verdict_text(i),
				wall(i.begin_ns) + ", " + duration(i.duration_ns) + ", guest CPU " + i.guest_cpu]));
			mark.addEventListener("pointerleave", () => tip.hide());
			picture.append(mark);
		}
		const {step, all} = ticks(0, span, (width - 120) / 120);

		for (const t of all)
			picture.append(svg("text", {class: "tick", x: Math.min(x(t), width - 22),
				y: height - 6, "text-anchor": "middle"},
				step >= 1e9 ? Math.round(t / 1e9) + " s" : duration(t)));
		box.replaceChildren(picture);
	});
	return box;
}

// ---- one incident ----

// The states that have any of the time, in the order of the model.
function states_of(ns_by_name) {
	return data.names.vcpu.map(([name, meaning], s) =>
		({name, meaning, s, ns: ns_by_name[name] || 0})).filter((state) => state.ns);
}

function state_bar(states, all, label) {
	return el("div", {class: "bar", role: "img", "aria-label": label + ": " +
		states.map((state) => state.name + " " + percent(state.ns, all)).join(", ")},
	...states.map(({name, meaning, s, ns}) => el("span", {class: "swatch vcpu-" + s,
		style: "width:" + 100 * ns / all + "%", title: name + ", " + duration(ns) + ", " +
			percent(ns, all) + ": " + meaning})));
}

function breakdown(incident) {
	const states = states_of(incident.breakdown_ns), all = incident.duration_ns || 1;
	const body = el("tbody");

	for (const {name, meaning, s, ns} of states)
		body.append(el("tr", {}, el("th", {scope: "row"}, el("span", {class: "swatch vcpu-" + s}),
			name), el("td", {class: "number"}, duration(ns)),
			el("td", {class: "number"}, percent(ns, all)), el("td", {class: "meaning"}, meaning)));
	return el("div", {class: "breakdown"}, el("h4", {}, "What the vCPU did meanwhile"),
		state_bar(states, all, "what the vCPU did"), el("table", {class: "plain"}, body));
}

// Every vCPU from its first to its last instant.
function accounts() {
	if (!report.vcpus.length)
		return null;
	const seen = new Map();
	const grid = el("div", {class: "accounts"});

	for (const v of report.vcpus) {
		const label = "VM " + v.vm + ", vCPU " + v.vcpu, states = states_of(v.states_ns);

		states.forEach((state) => seen.set(state.s, state));
		grid.append(el("span", {}, label), state_bar(states, (v.end_ns - v.begin_ns) || 1, label));
	}
	return el("details", {class: "figures", open: report.vcpus.length <= 32}, el("summary", {},
		el("h3", {}, "Where every vCPU's time went"), el("span", {class: "amount"},
			"over the whole recording")), grid,
	el("ul", {class: "legend"}, ...[...seen.values()].sort((a, b) => a.s - b.s).map((state) =>
		el("li", {title: state.meaning}, el("span", {class: "swatch vcpu-" + state.s}), state.name))),
	data.vcpus_left_out ? el("p", {class: "note"}, plural(data.vcpus_left_out, "more vCPU") +
		": vcpuscope report --format json.") : null);
}

function stack_list(title, frames) {
	if (!frames)
		return null;
	return el("details", {class: "stack"}, el("summary", {}, title + ": " +
		plural(frames.length, "frame")), el("ol", {}, ...frames.map((frame) =>
		el("li", {class: frame.kernel ? "kernel" : "user"}, frame.symbol
			? frame.symbol + "+0x" + frame.offset.toString(16)
			: (frame.module || "?") + "+0x" + frame.offset.toString(16)))));
}

function evidence(incident) {
	if (!incident.evidence.length)
		return null;
	const list = el("ul", {class: "evidence"});

	for (const e of incident.evidence)
		list.append(el("li", {}, el("time", {}, wall(e.t_ns)), " ", el("span", {class: "amount"},
			e.duration_ns ? duration(e.duration_ns) : ""), " ", e.text,
			stack_list("where it waited", e.waiter_stack),
			stack_list("who woke it", e.waker_stack)));
	return el("div", {}, el("h4", {}, "Evidence"), list);
}

function culprits(incident) {
	if (!incident.culprits.length)
		return null;
	return el("div", {}, el("h4", {}, "Who"), el("ul", {}, ...incident.culprits.map((c) =>
		el("li", {}, el("strong", {}, (c.comm || "task") + (c.pid ? " (" + c.pid + ")" : "")),
			" in the " + c.side + ": " + c.role + ", " + duration(c.share_ns)))));
}

function watchdog_lines(index) {
	const lines = report.guest_watchdog.filter((w) => w.incident === index);
	const opinions = {right: "which is right", wrong: "which is innocent",
		unproven: "which is not proven"};

	return lines.map((w) => el("p", {class: "note"}, "The guest's watchdog said, at dmesg " +
		w.dmesg.toFixed(6) + ": CPU#" + w.guest_cpu + " stuck for " + w.stuck_s + " s, blaming " +
		w.blames.comm + " (" + w.blames.pid + "), " + opinions[w.opinion] + "."));
}

function lost_text(lost) {
	return "from " + lost.source + ", vector " + lost.vector + (lost.irq === null ? ""
		: ", irq " + lost.irq) + ", pending for " + duration(lost.pending_ns) + (lost.handled
		? ", handled later" : "") + (lost.raised_by && lost.raised_by.comm ? ", raised by " +
		lost.raised_by.comm + " (" + lost.raised_by.pid + ")" : "");
}

function detectors(incident) {
	const words = {scheduler: "tasks that wait", ticks: "timer ticks",
		guest_watchdog: "the guest's watchdog"};

	if (!incident.detectors || !incident.detectors.length)
		return null;
	return el("div", {}, el("h4", {}, "Who saw it"), el("ul", {}, ...incident.detectors.map((d) =>
		el("li", {}, el("strong", {}, words[d.name] || d.name), d.saw === null ? " could not see it: "
			: d.saw ? " saw it: " : " did not: ", d.why))));
}

function facts(incident) {
	const list = el("dl", {class: "facts"});
	const add = (name, text) => text && list.append(el("dt", {}, name), el("dd", {}, text));

	add("when", wall(incident.begin_ns, true) + ", for " + duration(incident.duration_ns) +
		(incident.ongoing ? " so far" : ""));
	if (incident.dmesg_begin_s !== undefined)
		add("guest dmesg", incident.dmesg_begin_s.toFixed(6) + " to " +
			incident.dmesg_end_s.toFixed(6));
	add("where", "VM " + incident.vm + ", guest CPU " + incident.guest_cpu + " (vCPU " +
		incident.vcpu + "), " + doing(incident));
	add("denied", incident.denied);
	if (!incident.healthy && incident.runner_up)
		add("next best", VERDICT_WORDS[incident.runner_up] || incident.runner_up);
	const clock = clock_of(incident.vm);

	add("clock", (clock ? "guest times by " + clock.method + ", " : "") +
		error_text(incident.error_ns));
	if (incident.lost_interrupt)
		add("lost interrupt", lost_text(incident.lost_interrupt));
	if (incident.missing.length)
		add("not known", incident.missing.map((name) => data.names.missing[name] || name).join("; "));
	return list;
}

function timeline(index) {
	const incident = report.incidents[index], scene = data.scenes[data.incident_scenes[index]];

	if (!scene)
		return el("p", {class: "note"}, "No timeline: the page holds those of the longest " +
			"incidents. A higher --than leaves room for it.");
	const view = new Timeline(scene, {
		names: data.names, begin: incident.begin_ns - report.begin_ns,
		end: incident.end_ns - report.begin_ns, error: error_text(incident.error_ns).replace(
			"\u00b1", ""),
		error_ns: incident.error_ns >= 4294967295 ? scene.length : incident.error_ns,
		guest_cpu: incident.guest_cpu,
		title: "Timeline of VM " + incident.vm + " around the stall",
	});

	return el("div", {}, el("h4", {}, "Timeline"), view.box);
}

function incident_article(index, open) {
	const incident = report.incidents[index];
	const body = el("div", {class: "incident-body"});
	const article = el("details", {class: "incident", id: "incident-" + index, open},
		el("summary", {}, el("h3", {}, verdict_text(incident)),
			el("span", {class: "confidence " + (incident.healthy ? "healthy" : incident.confidence)},
				incident.healthy ? "healthy" : incident.confidence),
			el("span", {class: "amount"}, duration(incident.duration_ns) + ", VM " + incident.vm +
				", guest CPU " + incident.guest_cpu)), body);
	const draw = () => {
		if (body.childNodes.length || !article.open)
			return;
		if (!incident.healthy)
			body.append(el("p", {class: "because"}, incident.because));
		fill(body, {}, [el("div", {class: "columns"}, facts(incident), breakdown(incident)),
			timeline(index), el("div", {class: "columns"}, evidence(incident),
			el("div", {}, culprits(incident), detectors(incident))),
			...watchdog_lines(index)]);
	};

	article.addEventListener("toggle", draw);
	draw();
	return article;
}

function incidents_section() {
	if (!report.incidents.length)
		return null;
	const box = section("incidents", "Incidents");
	const by_length = [...report.incidents.keys()].filter((i) => !report.incidents[i].healthy)
		.sort((a, b) => report.incidents[b].duration_ns - report.incidents[a].duration_ns);
	const open = new Set(by_length.slice(0, OPEN_INCIDENTS));

	if (data.incidents_left_out)
		box.append(el("p", {class: "note"}, plural(data.incidents_left_out, "shorter stall is",
			"shorter stalls are") + " not on this page; vcpuscope report --format json has all " +
			"that a report holds."));
	if (report.dropped_incidents)
		box.append(el("p", {class: "note"}, plural(report.dropped_incidents, "more stall") +
			" than a report holds."));
	for (const index of report.incidents.keys())
		box.append(incident_article(index, open.has(index)));
	return box;
}

// ---- latencies ----

function latency_figure(map) {
	const rows_ns = data.latencies.rows_ns;
	const cells = map.cells, by_row = new Map();
	let low = Infinity, high = 0, most = 0, most_row = 0;

	for (let i = 0; i < cells.length; i += 3) {
		const [, row, n] = cells.slice(i, i + 3);

		low = Math.min(low, row);
		high = Math.max(high, row);
		most = Math.max(most, n);
		by_row.set(row, (by_row.get(row) || 0) + n);
	}
	for (const n of by_row.values())
		most_row = Math.max(most_row, n);
	const names = ["p50", "p95", "p99", "p99.9", "max"];
	const summary = names.map((name, i) => name + " " + duration(map.quantiles[i])).join(", ");
	const box = el("div", {class: "latency-picture"});
	const figure = el("figure", {class: "latency"}, el("figcaption", {},
		el("strong", {}, LATENCY_WORDS[map.kind] || map.kind), ", VM " + map.vm + ": " +
		plural(map.count, "time") + "; " + summary), box, latency_table(by_row, rows_ns, map));

	draw_to_width(box, (width) => {
		const h = 11, top = 6, left = 66, histogram = Math.min(260, width * 0.28);
		const right = width - histogram - 16, rows = high - low + 1;
		const height = top + rows * h + 26, span = map.columns * map.column_ns;
		const w = (right - left) / map.columns, y = (row) => top + (high - row) * h;
		const picture = svg("svg", {viewBox: "0 0 " + width + " " + height, height, role: "img",
			"aria-label": (LATENCY_WORDS[map.kind] || map.kind) + ", over time and in all: " +
			summary});
		const levels = Array.from({length: 8}, () => []);

		for (let row = low; row <= high; row++) {
			if (row % 4 === 0 || rows < 8)
				picture.append(svg("text", {class: "tick", x: left - 6, y: y(row) + h,
					"text-anchor": "end"}, "\u2265" + duration(rows_ns[row])));
		}
		picture.append(svg("rect", {class: "lane", x: left, y: top, width: right - left,
			height: rows * h}));
		for (let i = 0; i < cells.length; i += 3) {
			const [column, row, n] = cells.slice(i, i + 3);
			const level = most > 1 ? Math.min(7, Math.floor(8 * Math.log1p(n) /
				Math.log1p(most + 1))) : 7;

			levels[level].push("M" + (left + column * w).toFixed(1) + " " + y(row) + "h" +
				Math.max(1, w).toFixed(1) + "v" + h + "h-" + Math.max(1, w).toFixed(1) + "z");
		}
		levels.forEach((path, level) => path.length &&
			picture.append(svg("path", {class: "heat heat-" + level, d: path.join("")})));
		for (const [row, n] of by_row)
			picture.append(svg("rect", {class: "histogram", x: right + 16, y: y(row) + 1,
				width: Math.max(1, Math.log1p(n) / Math.log1p(most_row) * (histogram - 60)),
				height: h - 2}), svg("text", {class: "tick", x: right + 20 + Math.log1p(n) /
				Math.log1p(most_row) * (histogram - 60), y: y(row) + h - 2}, count(n)));
		for (const t of ticks(0, span, (right - left) / 110).all)
			picture.append(svg("text", {class: "tick", x: Math.min(left + t / span * (right - left),
				right - 12), y: height - 8, "text-anchor": "middle"}, duration(t)));
		picture.addEventListener("pointermove", (event) => {
			const place = picture.getBoundingClientRect();
			const x = event.clientX - place.left, at = event.clientY - place.top;
			const row = high - Math.floor((at - top) / h);
			const column = Math.floor((x - left) / w);
			const upper = rows_ns[row + 1];
			let n = 0;

			if (row < low || row > high || x < left)
				return tip.hide();
			const what = duration(rows_ns[row]) + " to " + duration(upper);

			if (x > right)
				return tip.show(event, [what, plural(by_row.get(row) || 0, "time") + " in all"]);
			for (let i = 0; i < cells.length; i += 3)
				n += cells[i] === column && cells[i + 1] === row ? cells[i + 2] : 0;
			return tip.show(event, [what, plural(n, "time") + " from +" +
				duration(map.begin + column * map.column_ns) + " on, in " +
				duration(map.column_ns)]);
		});
		picture.addEventListener("pointerleave", () => tip.hide());
		box.replaceChildren(picture);
	});
	return figure;
}

function latency_table(by_row, rows_ns, map) {
	const rows = [...by_row.entries()].sort((a, b) => a[0] - b[0]);

	return el("details", {}, el("summary", {}, "As a table"), el("table", {class: "plain"},
		el("thead", {}, el("tr", {}, el("th", {scope: "col"}, map.meaning),
			el("th", {scope: "col"}, "how often"))), el("tbody", {}, ...rows.map(([row, n]) =>
			el("tr", {}, el("td", {}, duration(rows_ns[row]) + " to " + duration(rows_ns[row + 1])),
				el("td", {class: "number"}, count(n)))))));
}

function latency_section() {
	if (!data.latencies.maps.length)
		return null;
	return section("latency", "Latencies", el("p", {class: "note"}, "Left: over the recording, " +
		"stronger where more often. Right: all together. Both scales of counts are logarithmic." +
		(data.latencies.vms_left_out ? " More VMs than shown have latencies: the first eight " +
			"are drawn." : "")), ...data.latencies.maps.map(latency_figure));
}

// ---- tables ----

function cell_text(value, type) {
	if (value === null)
		return "n/a";
	if (type === "time")
		return wall(report.begin_ns + value);
	return type === "ns" ? (value ? duration(value) : "-") : type === "percent"
		? value.toFixed(1) + " %" : type === "count" ? count(value) : value;
}

// Columns in which there is something. The others are named below the table.
function columns_in_use(table) {
	const all = [...table.columns.keys()];

	return table.rows.length ? all.filter((c) => table.rows.some((row) => row[c])) : all;
}

function table_rows(table, shown, rows) {
	return rows.map((row) => el("tr", {}, ...shown.map((c) => el("td",
		{class: table.columns[c].type === "text" ? "" : "number"},
		cell_text(row[c], table.columns[c].type)))));
}

function table_heads(table, shown, body) {
	const heads = shown.map((c) => el("th", {scope: "col",
		class: table.columns[c].type === "text" ? "" : "number"}));
	const sort = (th, c) => {
		const down = th.getAttribute("aria-sort") !== "descending";
		const order = (a, b) => a[c] === b[c] ? 0 : a[c] === null ? 1 : b[c] === null ? -1
			: (a[c] < b[c]) === down ? 1 : -1;

		heads.forEach((other) => other.removeAttribute("aria-sort"));
		th.setAttribute("aria-sort", down ? "descending" : "ascending");
		body.replaceChildren(...table_rows(table, shown, [...table.rows].sort(order)));
	};

	shown.forEach((c, i) => heads[i].append(el("button", {type: "button",
		onclick: () => sort(heads[i], c)}, table.columns[c].head)));
	return heads;
}

function table_figure(table) {
	const [title, about] = TABLE_WORDS[table.name] || [table.name, ""];
	const shown = columns_in_use(table);
	const empty = table.columns.filter((_, c) => !shown.includes(c)).map((column) => column.head);
	const body = el("tbody", {}, ...table_rows(table, shown, table.rows));
	const box = el("details", {class: "figures", id: "table-" + table.name,
		open: table.rows.length > 0}, el("summary", {}, el("h3", {}, title),
		el("span", {class: "amount"}, about)));

	if (!table.rows.length)
		return fill(box, {}, [el("p", {class: "note"}, "Nothing observed.")]);
	return fill(box, {}, [el("div", {class: "scroll", tabindex: "0", role: "region",
		"aria-label": title}, el("table", {}, el("thead", {}, el("tr", {},
		...table_heads(table, shown, body))), body)), empty.length
		? el("p", {class: "note"}, "Nothing, or not observed: " + empty.join(", ") + ".") : null,
	table.rows_cut ? el("p", {class: "note"}, plural(table.rows_cut, "more row") +
		": vcpuscope report RUN.vcs " + table.name + " --top 0.") : null]);
}

function tables_section() {
	if (!data.tables.length)
		return null;
	return section("figures", "Victims, culprits and figures", ...data.tables.map(table_figure));
}

// ---- what it rests on ----

// [key, head, shown even if there are none]
const LOSS_PARTS = [["emitted", "emitted", true], ["delivered", "delivered", true],
	["dropped_kernel", "dropped in the kernel", true], ["dropped_user", "dropped later", true],
	["lost_channel", "lost on the way", true], ["overdelivered", "delivered twice"],
	["missed", "probes not run"], ["unplaced", "before any clock"], ["lost_frames", "frames lost"],
	["nonsense_frames", "frames without sense"], ["damaged_bytes", "bytes damaged"],
	["late", "too late"]];

// When events were lost, and by whom.
function lost_when() {
	const words = {dropped_kernel: "in the kernel", dropped_user: "later",
		lost_channel: "on the way"};
	const rows = Object.entries(report.loss).flatMap(([name, l]) => (l.spans || []).map((span) =>
		el("tr", {}, el("th", {scope: "row"}, name), el("td", {}, wall(span.begin_ns)),
			el("td", {class: "number"}, duration(span.end_ns - span.begin_ns)), el("td", {},
				Object.entries(words).filter(([key]) => span[key]).map(([key, text]) =>
					count(span[key]) + " " + text).join(", ")))));

	if (!rows.length)
		return null;
	return el("details", {}, el("summary", {}, "When they were lost: " + plural(rows.length,
		"span")), el("div", {class: "scroll"}, el("table", {}, el("thead", {}, el("tr", {},
		...["from", "at", "somewhere within", "events"].map((text) => el("th", {scope: "col",
			text})))), el("tbody", {}, ...rows))), data.loss_spans_left_out ? el("p",
		{class: "note"}, plural(data.loss_spans_left_out, "more span") + ".") : null);
}

function quality_section() {
	const clocks = report.clock.map((c) => el("tr", {}, el("th", {scope: "row"}, c.vm),
		el("td", {}, c.method), el("td", {class: "number"}, c.method === "none" ? "n/a"
			: error_text(c.error_ns)), el("td", {class: "number"}, count(c.causality_pairs)),
		el("td", {class: "number"}, count(c.causality_violations)),
		el("td", {class: "number"}, count(c.epochs)),
		el("td", {class: "number"}, count(c.disagreements || 0))));
	const parts = LOSS_PARTS.filter(([key, , always]) => always ||
		Object.values(report.loss).some((l) => l[key]));
	const losses = Object.entries(report.loss).map(([name, l]) => el("tr", {},
		el("th", {scope: "row"}, name), ...parts.map(([key]) => el("td",
			{class: "number" + (l[key] && key !== "emitted" && key !== "delivered" ? " bad" : "")}, count(l[key])))));
	const table = (heads, rows) => el("div", {class: "scroll"}, el("table", {}, el("thead", {},
		el("tr", {}, ...heads.map((text) => el("th", {scope: "col", text})))),
		el("tbody", {}, ...rows)));
	const alone = report.guest_watchdog.filter((w) => w.incident === null);

	return section("quality", "What this rests on", el("h3", {}, "Clocks"),
		clocks.length ? table(["VM", "guest times by", "error", "order checked", "violated",
			"epochs", "contradictions"], clocks) : el("p", {class: "note"}, "No VM was recorded."),
		el("h3", {}, "Events and losses"), table(["from", ...parts.map(([, head]) => head)],
		losses), lost_when(), ...alone.map((w) => el("p", {class: "note"}, "The guest's watchdog of VM " +
			w.vm + " complained of CPU#" + w.guest_cpu + " (" + w.blames.comm + "), which no " +
			"stall on this page explains.")));
}

// ---- the page ----

function navigation(sections) {
	return el("nav", {"aria-label": "sections"}, el("ul", {}, ...sections.map((s) =>
		el("li", {}, el("a", {href: "#" + s.id}, s.querySelector("h2").textContent)))));
}

// A link to a folded incident opens it.
function follow_hash() {
	const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));

	if (target && target.tagName === "DETAILS" && !target.open) {
		target.open = true;
		target.scrollIntoView();
	}
}

function main() {
	const summary = section("verdicts", "Verdicts", ...[verdict_list(), overview(), accounts()]
		.filter((part) => part));
	const sections = [report.incidents.length || report.vcpus.length ? summary : null, incidents_section(),
		latency_section(), tables_section(), quality_section()].filter((s) => s);

	document.title = "vcpuscope: " + show(data.recording);
	document.getElementById("page").append(head(), navigation(sections),
		el("main", {}, ...sections), el("footer", {}, el("p", {}, "Made by vcpuscope. Times of " +
			"the guest are on the host's clock, with the stated error.")));
	window.addEventListener("hashchange", follow_hash);
	window.addEventListener("beforeprint", () => document.querySelectorAll("details.incident")
		.forEach((d, i) => i < 20 && (d.open = true)));
	follow_hash();
}

main();
