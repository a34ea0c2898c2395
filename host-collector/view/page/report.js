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
// Verdicts of one family have one colour.
const FAMILIES = [
	["of-host", "no pCPU", ["vcpu_not_scheduled", "lock_holder_preempted", "ipi_target_preempted",
		"cgroup_throttled", "host_lockup", "split_lock", "nested_unobservable"]],
	["of-wait", "waited in the host", ["vmm_lock", "storage_backend", "mmu_contention",
		"demand_paging", "host_memory", "device_no_completion"]],
	["of-stop", "stopped", ["vm_paused", "migration", "clock_jump"]],
	["of-interrupt", "interrupt lost or late", ["interrupt_lost", "timer_late"]],
	["of-guest", "the guest itself", ["guest_spin", "guest_irq_storm"]],
	["of-unknown", "not determined", ["undetermined"]],
	["of-healthy", "healthy", []],
];
const OBSERVED_LINES = 6; // more are folded, unless they say that too little was observed
const FILTER_FROM = 4; // incidents; fewer are found without a filter
const OPEN_INCIDENTS = 3; // more are folded until somebody asks

const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report;

function verdict_text(incident) {
	if (incident.healthy)
		return "Long, but nothing was denied";
	return VERDICT_WORDS[incident.verdict] || incident.verdict.replaceAll("_", " ");
}

function family_of(incident) {
	if (incident.healthy)
		return "of-healthy";
	const found = FAMILIES.find(([, , verdicts]) => verdicts.includes(incident.verdict));

	return found ? found[0] : "of-unknown";
}

// The first culprit, if there is one.
function culprit_text(incident) {
	const first = incident.culprits[0];

	if (!first)
		return "";
	return first.pid ? (first.comm || "task") + " (" + first.pid + ")" : first.what;
}

// What the guest CPU was doing.
function doing(incident) {
	const who = (incident.task.comm || "task") + " (" + incident.task.pid + ")";

	if (incident.kind === "idle")
		return "idle";
	if (incident.kind === "unknown" && incident.lost_interrupt)
		return "interrupt " + hex(incident.lost_interrupt.vector) + " not handled";
	if (incident.kind === "unknown" && incident.short_waits)
		return incident.short_waits + " short waits";
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
		two(date.getDate()) + " " + time + zone(date) : time;
}

// "+01:00": the zone of whoever reads the page, at that time.
function zone(date) {
	const minutes = -date.getTimezoneOffset(), two = (n) => String(n).padStart(2, "0");

	return (minutes < 0 ? "-" : "+") + two(Math.floor(Math.abs(minutes) / 60)) + ":" +
		two(Math.abs(minutes) % 60);
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
	const [first, ...others] = data.headline;
	const bold = first.search(/, |: |\.$/);

	box.append(el("p", {class: "answer"}, el("strong", {}, first.slice(0, bold)), first.slice(bold)));
	const observed = el("ul", {class: "observed"}, ...others.map((line) => el("li", {}, line)));

	if (others.length <= OBSERVED_LINES)
		box.append(observed);
	else
		box.append(el("details", {open: !report.coverage.supported}, el("summary", {},
			"How much was observed, of each VM"), observed));
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

		list.append(el("li", {class: family_of(first)},
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
				duration(i.duration_ns)}, svg("rect", {class: "mark " + family_of(i), x: x(i.begin_ns - report.begin_ns), y: 24 * vms.indexOf(i.vm) + 3,
				width: Math.max(2.5, i.duration_ns / span * (width - 120)), height: 18}));

			mark.addEventListener("pointermove", (event) => tip.show(event, [verdict_text(i),
				culprit_text(i), wall(i.begin_ns) + ", " + duration(i.duration_ns) +
				", guest CPU " + i.guest_cpu].filter((line) => line)));
			mark.addEventListener("pointerleave", () => tip.hide());
			picture.append(mark);
		}
		const {step, all} = ticks(0, span, (width - 120) / 120);

		for (const t of all)
			picture.append(svg("text", {class: "tick", x: Math.min(x(t), width - 22),
				y: height - 6, "text-anchor": "middle"},
				step >= 1e9 ? Math.round(t / 1e9) + " s" : fine(t)));
		box.replaceChildren(picture, overview_legend());
	});
	return box;
}

function overview_legend() {
	const seen = new Set(report.incidents.map(family_of));

	return el("ul", {class: "legend"}, ...FAMILIES.filter(([name]) => seen.has(name)).map(
		([name, text]) => el("li", {}, el("span", {class: "swatch mark " + name}), text)));
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
	const name = (c) => c.pid ? (c.comm || "task") + " (" + c.pid + ")" : c.what;

	return el("div", {}, el("h4", {}, "Who"), el("ul", {}, ...incident.culprits.map((c) =>
		el("li", {}, el("strong", {}, name(c)), c.pid && c.what ? ", " + c.what + "," : "",
			" in the " + c.side + ": " + c.role + ", " + duration(c.share_ns))),
		...(incident.culprit_cgroups || []).map((g) => el("li", {}, "cgroup " + g.cgroup + ": " +
			duration(g.share_ns) + " (" + g.tasks + (g.tasks === 1 ? " task)" : " tasks)")))));
}

// A text whose `names` are set as code.
function with_code(text) {
	return text.split("`").map((part, i) => i % 2 ? el("code", {}, part) : part);
}

// What to do, and what shows more. --around counts the stalls of a report with the default threshold.
function next_steps(index) {
	const incident = report.incidents[index], n = incident.number;
	const file = /^[\w.+-]+$/.test(data.recording) ? data.recording : "RUN.vcs";
	const code = (text) => el("li", {}, el("code", {}, text));
	const commands = n && report.threshold_ns === 100000000
		? el("ul", {class: "commands"},
			code("vcpuscope export " + file + " --to perfetto --around " + n + " -o stall-" + n + ".pftrace"),
			code("vcpuscope flame " + file + " --around " + n + " -o stall-" + n + ".svg")) : null;

	if (!data.advice[index])
		return null;
	return el("div", {}, el("h4", {}, "Next steps"), el("p", {}, ...with_code(data.advice[index])), commands &&
		el("p", {class: "note"}, "This stall in Perfetto (ui.perfetto.dev), and as a flame graph with samples:"),
	commands);
}

function watchdog_lines(index) {
	const lines = report.guest_watchdog.filter((w) => w.incident === index);
	const opinions = {right: "which is right", wrong: "which is not to blame",
		unproven: "which is not proven"};

	return lines.map((w) => el("p", {class: "note"}, "The guest's watchdog said, at dmesg " +
		w.dmesg.toFixed(6) + ": CPU#" + w.guest_cpu + " stuck for " + w.stuck_s + " s, blaming " +
		w.blames.comm + " (" + w.blames.pid + "), " + opinions[w.opinion] + "."));
}

function lost_text(lost) {
	return "from " + lost.source + ", vector " + hex(lost.vector) + (lost.irq === null ? ""
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
			: d.saw ? " saw it: " : " saw none: ", d.why))));
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

	if (clock && clock.method === "none")
		add("clock", incident.error_ns ? "guest times by arrival, " + error_text(incident.error_ns)
			: "the host's");
	else
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
		guest_cpu: incident.guest_cpu, vcpu: incident.vcpu, culprits: incident.culprits,
		because: incident.because, lost: incident.lost_interrupt,
		title: "Timeline of VM " + incident.vm + " around the stall",
	});

	return el("div", {}, el("h4", {}, "Timeline"), view.box, incident_flame(view, incident));
}

function incident_article(index, open) {
	const incident = report.incidents[index];
	const body = el("div", {class: "incident-body"});
	const article = el("details", {class: "incident", id: "incident-" + index, open},
		el("summary", {}, el("span", {class: "swatch mark " + family_of(incident)}),
			el("time", {}, wall(incident.begin_ns).replace(/(\.\d{3})\d+/, "$1")),
			el("h3", {}, verdict_text(incident)),
			el("span", {class: "confidence " + (incident.healthy ? "healthy" : incident.confidence)},
				incident.healthy ? "healthy" : incident.confidence),
			el("span", {class: "amount"}, [duration(incident.duration_ns), culprit_text(incident),
				"VM " + incident.vm, "guest CPU " + incident.guest_cpu].filter((t) => t)
				.join(", "))), body);
	const draw = () => {
		if (body.childNodes.length || !article.open)
			return;
		if (!incident.healthy)
			body.append(el("p", {class: "because"}, incident.because));
		fill(body, {}, [el("div", {class: "columns"}, facts(incident), breakdown(incident)),
			timeline(index), el("div", {class: "columns"}, evidence(incident),
			el("div", {}, culprits(incident), next_steps(index), detectors(incident))),
			...watchdog_lines(index)]);
	};

	article.addEventListener("toggle", draw);
	draw();
	return article;
}

// Shows the incidents whose line holds every word, in the order that is asked for.
function incident_filter(box, articles) {
	const all = [...report.incidents.keys()], by = (key) => (a, b) =>
		key(report.incidents[a]) < key(report.incidents[b]) ? -1 : 1;
	const orders = {
		time: all, length: [...all].sort(by((i) => -i.duration_ns)),
		verdict: [...all].sort(by((i) => i.verdict)), culprit: [...all].sort(by(culprit_text)),
	};
	const input = el("input", {type: "search", size: 30, placeholder: "time, culprit, VM, verdict",
		"aria-label": "show only incidents with these words"});
	const order = el("select", {"aria-label": "order"}, ...Object.keys(orders).map((name) =>
		el("option", {value: name}, "by " + name)));
	const shown = el("output", {"aria-live": "polite"}, plural(all.length, "incident"));
	const update = () => {
		const words = input.value.toLowerCase().split(/\s+/);
		let n = 0;

		articles.forEach((article, i) => {
			const line = (article.querySelector("summary").textContent + " " +
				report.incidents[i].verdict).toLowerCase();

			article.hidden = !words.every((word) => line.includes(word));
			n += !article.hidden;
		});
		box.append(...orders[order.value].map((i) => articles[i]));
		shown.textContent = count(n) + " of " + plural(all.length, "incident");
	};

	input.addEventListener("input", update);
	order.addEventListener("change", update);
	return el("div", {class: "filter", role: "search"}, input, order, shown);
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
	const articles = [...report.incidents.keys()].map((i) => incident_article(i, open.has(i)));

	if (articles.length >= FILTER_FROM)
		box.append(incident_filter(box, articles));
	box.append(...articles);
	return box;
}

// ---- the page ----

function navigation(sections) {
	return el("nav", {"aria-label": "sections"}, el("ul", {}, ...sections.map((s) =>
		el("li", {}, el("a", {href: "#" + s.id}, s.querySelector("h2").textContent)))));
}

// A link to a folded incident opens it.
function follow_hash() {
	const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));

	if (target && target.tagName === "DETAILS" && (!target.open || target.hidden)) {
		target.hidden = false;
		target.open = true;
		target.scrollIntoView();
	}
}

function main() {
	const summary = section("verdicts", "Verdicts", ...[verdict_list(), overview(), accounts()]
		.filter((part) => part));
	const sections = [report.incidents.length || report.vcpus.length ? summary : null, incidents_section(),
		latency_section(), pairs_section(), tables_section(), quality_section()].filter((s) => s);

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
