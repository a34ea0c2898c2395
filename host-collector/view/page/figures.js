// SPDX-License-Identifier: GPL-2.0-only
// The figures of a report page: latencies over time, tables, and what all of it rests on.
"use strict";

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

// ---- latencies ----

// words: the title, and what the map is of.
function latency_figure(map, words) {
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
		el("strong", {}, words.title), words.of + "; " + summary), box,
	latency_table(by_row, rows_ns, words.meaning));

	draw_to_width(box, (width) => {
		const h = 11, top = 6, left = 66, histogram = Math.min(260, width * 0.28);
		const right = width - histogram - 16, rows = high - low + 1;
		const height = top + rows * h + 26, span = map.columns * map.column_ns;
		const w = (right - left) / map.columns, y = (row) => top + (high - row) * h;
		const picture = svg("svg", {viewBox: "0 0 " + width + " " + height, height, role: "img",
			"aria-label": words.title + ", over time and in all: " + summary});
		const levels = Array.from({length: 8}, () => []);

		for (let row = low; row <= high; row++) {
			if (row % 4 === 0 || rows < 8)
				picture.append(svg("text", {class: "tick", x: left - 6, y: y(row) + h,
					"text-anchor": "end"}, "\u2265" + fine(rows_ns[row])));
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
				right - 12), y: height - 8, "text-anchor": "middle"}, fine(t)));
		picture.addEventListener("pointermove", (event) => {
			const place = picture.getBoundingClientRect();
			const x = event.clientX - place.left, at = event.clientY - place.top;
			const row = high - Math.floor((at - top) / h);
			const column = Math.floor((x - left) / w);
			const upper = rows_ns[row + 1];
			let n = 0;

			if (row < low || row > high || x < left)
				return tip.hide();
			const what = fine(rows_ns[row]) + " to " + fine(upper);

			if (x > right)
				return tip.show(event, [what, plural(by_row.get(row) || 0, "time") + " in all"]);
			for (let i = 0; i < cells.length; i += 3)
				n += cells[i] === column && cells[i + 1] === row ? cells[i + 2] : 0;
			return tip.show(event, [what, plural(n, "time") + " from +" +
				fine(map.begin + column * map.column_ns) + " on, in " +
				fine(map.column_ns)]);
		});
		picture.addEventListener("pointerleave", () => tip.hide());
		box.replaceChildren(picture);
	});
	return figure;
}

function latency_table(by_row, rows_ns, meaning) {
	const rows = [...by_row.entries()].sort((a, b) => a[0] - b[0]);

	return el("details", {}, el("summary", {}, "As a table"), el("table", {class: "plain"},
		el("thead", {}, el("tr", {}, el("th", {scope: "col"}, meaning),
			el("th", {scope: "col"}, "how often"))), el("tbody", {}, ...rows.map(([row, n]) =>
			el("tr", {}, el("td", {}, fine(rows_ns[row]) + " to " + fine(rows_ns[row + 1])),
				el("td", {class: "number"}, count(n)))))));
}

function vm_latency_figure(map) {
	return latency_figure(map, {title: LATENCY_WORDS[map.kind] || map.kind, meaning: map.meaning,
		of: ", VM " + map.vm + ": " + plural(map.count, "time")});
}

const LATENCY_VMS = 2; // of more VMs only those with a stall are open

// The maps of each VM, folded if there are many VMs.
function latency_parts() {
	const vms = [...new Set(data.latencies.maps.map((map) => map.vm))];
	const stalled = new Set(report.incidents.map((i) => i.vm));

	if (vms.length <= LATENCY_VMS)
		return data.latencies.maps.map(vm_latency_figure);
	return vms.map((vm) => {
		const maps = data.latencies.maps.filter((map) => map.vm === vm);

		return el("details", {class: "figures", open: stalled.has(vm)}, el("summary", {},
			el("h3", {}, "VM " + vm), el("span", {class: "amount"}, maps.map((map) =>
				map.kind === "vcpu_wait" ? "waited for a pCPU up to " + duration(map.quantiles[4])
					: map.kind === "interrupt" ? "interrupts up to " + duration(map.quantiles[4])
						: "").filter((text) => text).join(", "))), ...maps.map(vm_latency_figure));
	});
}

function latency_section() {
	if (!data.latencies.maps.length)
		return null;
	return section("latency", "Latencies", el("p", {class: "note"}, "Left: over the recording, " +
		"stronger where more often. Right: all together. Both scales of counts are logarithmic." +
		(data.latencies.vms_left_out ? " More VMs than shown have latencies: the first eight " +
			"are drawn." : "")), ...latency_parts());
}

// ---- pairs of events ----

// The pairs that are no calls, and why.
function pair_note(pair) {
	const parts = [[pair.unpaired_from, "first events without a second"],
		[pair.unpaired_to, "second events without a first"], [pair.incomplete, "incomplete"],
		[pair.ambiguous, "ambiguous"]].filter(([n]) => n);

	return parts.length ? el("p", {class: "note"}, "Not counted: " + parts.map(([n, what]) =>
		count(n) + " " + what).join(", ") + ".") : null;
}

function pair_figure(pair) {
	const title = pair.name + ": " + pair.from + " \u2192 " + pair.to;

	return el("div", {class: "pair"}, pair.count ? latency_figure(pair, {title,
		of: ": " + plural(pair.count, "call") + ", " + duration(pair.total_ns) + " in all",
		meaning: "from the first event to the second"})
		: el("p", {}, el("strong", {}, title), ": no calls"), pair_note(pair));
}

function pairs_section() {
	if (!data.pairs.length)
		return null;
	return section("pairs", "Pairs of events", el("p", {class: "note"}, "Drawn like the latencies. The " +
		"timelines show each pair as a span, from its first event to its second."),
	...data.pairs.map(pair_figure));
}

// ---- tables ----

// Numbers of something, not how many: not grouped by thousands.
const identities = new Set(["pid", "vm", "vcpu", "guest_cpu", "pcpu", "irq", "number"]);

function cell_text(value, column) {
	const type = identities.has(column.name) ? "text" : column.type;

	if (value === null)
		return "n/a";
	if (type === "time")
		return wall(value);
	return type === "ns" ? (value ? duration(value) : "-") : type === "percent"
		? fixed(value, 1) + " %" : type === "count" ? count(value) : value;
}

// More columns than this are set closer together.
const WIDE = 14;
// Tables that are open from the beginning: who suffered, and who did it.
const OPEN_TABLES = ["tasks", "culprits"];
const FILTER_ROWS = 8; // fewer rows need no filter

// Columns in which there is something. The others are named below the table.
function columns_in_use(table) {
	const all = [...table.columns.keys()];
	// Which vCPU it is, is said also of number 0.
	const says = (value, c) => value || value === 0 && identities.has(table.columns[c].name);

	return table.rows.length ? all.filter((c) => table.rows.some((row) => says(row[c], c))) : all;
}

function table_rows(table, shown, rows) {
	return rows.map((row) => el("tr", {}, ...shown.map((c) => el("td",
		{class: table.columns[c].type === "text" ? "" : "number"},
		cell_text(row[c], table.columns[c])))));
}

// Rows that hold every word of the filter.
function rows_with(table, shown, text) {
	const words = text.toLowerCase().split(/\s+/);

	return table.rows.filter((row) => {
		const line = shown.map((c) => cell_text(row[c], table.columns[c])).join(" ").toLowerCase();

		return words.every((word) => line.includes(word));
	});
}

function table_filter(table, shown, state, draw) {
	if (table.rows.length < FILTER_ROWS)
		return null;
	const title = (TABLE_WORDS[table.name] || [table.name])[0];
	const output = el("output", {"aria-live": "polite"}, plural(table.rows.length, "row"));
	const input = el("input", {type: "search", placeholder: "filter",
		"aria-label": title + ": show only rows with these words"});

	input.addEventListener("input", () => {
		state.rows = rows_with(table, shown, input.value);
		output.textContent = count(state.rows.length) + " of " + plural(table.rows.length, "row");
		draw();
	});
	return el("div", {class: "filter", role: "search"}, input, output);
}

function table_heads(table, shown, state, draw) {
	const heads = shown.map((c) => el("th", {scope: "col",
		class: table.columns[c].type === "text" ? "" : "number"}));
	const sort = (th, c) => {
		const down = th.getAttribute("aria-sort") !== "descending";
		state.order = (a, b) => a[c] === b[c] ? 0 : a[c] === null ? 1 : b[c] === null ? -1
			: (a[c] < b[c]) === down ? 1 : -1;

		heads.forEach((other) => other.removeAttribute("aria-sort"));
		th.setAttribute("aria-sort", down ? "descending" : "ascending");
		draw();
	};

	shown.forEach((c, i) => heads[i].append(el("button", {type: "button",
		onclick: () => sort(heads[i], c)}, table.columns[c].head)));
	return heads;
}

function table_figure(table) {
	const [title, about] = TABLE_WORDS[table.name] || [table.name, ""];
	const shown = columns_in_use(table);
	const empty = table.columns.filter((_, c) => !shown.includes(c)).map((column) => column.head);
	const body = el("tbody"), state = {rows: table.rows, order: () => 0};
	const draw = () => body.replaceChildren(...table_rows(table, shown,
		[...state.rows].sort(state.order)));
	const box = el("details", {class: "figures", id: "table-" + table.name,
		open: table.rows.length > 0 && OPEN_TABLES.includes(table.name)}, el("summary", {},
		el("h3", {}, title), el("span", {class: "amount"}, about + " (" +
		plural(table.rows.length, "row") + ")")));

	draw();
	if (!table.rows.length)
		return fill(box, {}, [el("p", {class: "note"}, "Nothing observed.")]);
	return fill(box, {}, [table_filter(table, shown, state, draw),
	el("div", {class: "scroll", tabindex: "0", role: "region",
		"aria-label": title}, el("table", {class: shown.length > WIDE ? "wide" : ""},
		el("thead", {}, el("tr", {}, ...table_heads(table, shown, state, draw))), body)), empty.length
		? el("p", {class: "note"}, "Nothing, or not observed: " + empty.join(", ") + ".") : null,
	table.rows_cut ? el("p", {class: "note"}, plural(table.rows_cut, "more row") +
		": vcpuscope report RUN.vcs " + table.name + " --top 0.") : null]);
}

function tables_section() {
	if (!data.tables.length)
		return null;
	const first = (table) => OPEN_TABLES.includes(table.name) ? 0 : 1;

	return section("figures", "Victims, culprits and figures", ...[...data.tables].sort((a, b) =>
		first(a) - first(b)).map(table_figure));
}

// ---- what it rests on ----

// [key, head, shown even if there are none]
const LOSS_PARTS = [["emitted", "emitted", true], ["delivered", "delivered", true],
	["dropped_kernel", "dropped in the kernel", true], ["dropped_user", "dropped later", true],
	["lost_channel", "lost on the way", true], ["overdelivered", "delivered twice"],
	["missed", "probes not run"], ["unplaced", "before any clock"], ["lost_frames", "frames lost"],
	["unknown_events", "of unknown type"], ["unknown_frames", "frames of unknown kind"],
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
		el("td", {}, c.method + (c.protection ? ", because the guest is protected (" +
			c.protection + ")" : "")), el("td", {class: "number"}, c.method === "none" ? "n/a"
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
