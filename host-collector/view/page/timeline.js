// SPDX-License-Identifier: GPL-2.0-only
// The interactive timeline of one scene: rows of pieces, arrows between them, zoom, hover, keys.
"use strict";

const ROW_HEIGHT = 20, ROW_GAP = 5, AXIS_HEIGHT = 30, WHO_HEIGHT = 16;
const ROWS_ALL = 12; // of more rows only those that concern the incident are drawn at first
const GROUP_GAP = 6; // what interrupts a task for fewer pixels does not split its label
const LETTER = 6.6; // pixels of a label's letter

// Flat arrays of a row, for binary search. Adjacent pieces that say the same become one: a capture
// ends a piece also where it only read its ring.
function row_decode(raw, state_count) {
	const row = {kind: raw.kind, number: raw.number, n: 0, begin: [], end: [], state: [], pid: [],
		what: [], where: [], shares: []};
	let t = 0, merged = 0;

	for (let at = 0; at < raw.pieces.length; at += 6) {
		const [gap, length, state, pid, what, where] = raw.pieces.slice(at, at + 6);
		const last = row.n - 1;

		t += gap;
		if (last >= 0 && state >= 0 && !gap && row.state[last] === state && row.pid[last] === pid &&
			row.what[last] === what && row.where[last] === where) {
			row.end[last] = t += length;
			continue;
		}
		row.begin.push(t);
		row.end.push(t += length);
		row.state.push(state);
		row.pid.push(pid);
		row.what.push(what);
		row.where.push(where);
		row.shares.push(state < 0 ? raw.shares.slice(merged, merged + state_count) : null);
		merged += state < 0 ? state_count : 0;
		row.n++;
	}
	return row;
}

class Timeline {
	// context: {names (of states), begin, end (of the incident), error, error_ns, guest_cpu, vcpu,
	// culprits, because, title}; times of `context` count from the report's begin.
	constructor(scene, context) {
		this.scene = scene;
		this.context = context;
		this.rows = [...scene.rows.map((raw) => row_decode(raw, context.names[raw.kind].length)),
			...scene.lanes.map(lane_decode)];
		this.every = [...this.rows.keys()].filter((i) => this.rows[i].n).sort((a, b) => this.rank(a) - this.rank(b));
		this.begin = context.begin - scene.begin;
		this.end = context.end - scene.begin;
		this.from = 0;
		this.until = scene.length;
		this.arrows = "own";
		this.own = this.own_arrows();
		this.groups = new Map();
		this.order = this.every.filter((i) => !is_lane(this.rows[i])).length > ROWS_ALL
			? this.concerned() : this.every;
		this.focus = {row: 0, piece: -1};
		this.box = el("div", {class: "timeline"});
		this.picture = svg("svg", {class: "timeline-picture", tabindex: "0", role: "img"});
		this.status = el("p", {class: "status", "aria-live": "polite"});
		this.build();
	}

	// pCPUs above, then each vCPU with the guest CPU that it runs and its lanes, then the VM's lanes.
	rank(index) {
		const row = this.rows[index];

		if (is_lane(row)) {
			const vcpu = this.rows.findIndex((r) => r.kind === "vcpu" && r.number === row.vcpu);
			const guest = vcpu >= 0 && this.rows[vcpu + 1].kind === "guest" ? vcpu + 1 : vcpu;

			return vcpu < 0 ? 2000 + index : 1000 + guest + index / 1000;
		}
		return (this.rows[index].kind === "pcpu" ? 0 : 1000) + index;
	}

	// The rows of the incident's vCPU.
	is_own(row) {
		return is_lane(row) && row.vcpu === this.context.vcpu ||
			row.kind === "vcpu" && row.number === this.context.vcpu ||
			row.kind === "guest" && row.number === this.context.guest_cpu;
	}

	// How long a culprit was on this row's CPU during the incident.
	culprit_ns(row) {
		let ns = 0;

		for (let i = 0; i < row.n; i++)
			if (this.is_culprit(row, i))
				ns += Math.max(0, Math.min(row.end[i], this.end) - Math.max(row.begin[i], this.begin));
		return ns;
	}

	is_culprit(row, i) {
		const side = row.kind === "guest" ? "guest" : "host";

		return row.kind !== "vcpu" && !is_lane(row) && row.pid[i] > 0 && !(row.kind === "guest" &&
			row.state[i] > 1) && this.context.culprits.some((c) => c.side === side &&
			c.pid === row.pid[i]);
	}

	// How long a culprit kept this vCPU off its pCPU during the incident.
	kept_off_ns(row) {
		let ns = 0;

		for (let i = 0; row.kind === "vcpu" && i < row.n; i++)
			if (row.state[i] >= 0 && row.pid[i] > 0 && this.context.culprits.some((c) =>
				c.side === "host" && c.pid === row.pid[i]))
				ns += Math.max(0, Math.min(row.end[i], this.end) - Math.max(row.begin[i], this.begin));
		return ns;
	}

	// Of many rows those that explain the incident: its vCPU and guest CPU, the pCPUs that the vCPU
	// was on, where a culprit was, the vCPU that it kept from running most, and both ends of the
	// incident's arrows.
	concerned() {
		const rows = this.rows, wanted = new Set(), pcpus = new Set(), a = this.scene.arrows;

		for (const index of this.every.filter((k) => this.is_own(rows[k]))) {
			wanted.add(index);
			for (let i = 0; rows[index].kind === "vcpu" && i < rows[index].n; i++)
				if (rows[index].end[i] > this.begin && rows[index].begin[i] < this.end)
					pcpus.add(rows[index].where[i]);
		}
		const guilty = this.every.map((k) => [this.culprit_ns(rows[k]), k]).filter(([ns]) => ns)
			.sort((x, y) => y[0] - x[0]).slice(0, 4).map(([, k]) => k);

		for (const index of guilty)
			wanted.add(index);
		const kept = this.every.map((k) => [this.kept_off_ns(rows[k]), k])
			.sort((x, y) => y[0] - x[0]).filter(([ns]) => ns * 2 > this.end - this.begin)[0];

		if (kept)
			wanted.add(kept[1]);
		for (const index of this.every.filter((k) => rows[k].kind === "pcpu"))
			if (pcpus.has(rows[index].number) && wanted.size < ROWS_ALL)
				wanted.add(index);
		for (const i of this.own)
			if (wanted.size < ROWS_ALL)
				wanted.add(a[i + 1]).add(a[i + 3]);
		return this.every.filter((k) => wanted.has(k));
	}

	// Arrows of the incident: at its vCPU or guest CPU, and they took a tenth of it or ended it.
	own_arrows() {
		const a = this.scene.arrows, length = this.end - this.begin, own = [];

		for (let i = 0; i < a.length; i += 7) {
			const [, from_row, from, to_row, to] = a.slice(i, i + 5);

			if ((this.is_own(this.rows[from_row]) || this.is_own(this.rows[to_row])) &&
				from < this.end + length / 50 && to > this.begin &&
				(to - from >= length / 10 || Math.abs(to - this.end) <= length / 100))
				own.push(i);
		}
		return own.sort((x, y) => (a[y + 4] - a[y + 2]) - (a[x + 4] - a[x + 2])).slice(0, 20);
	}

	build() {
		const button = (label, text, action) =>
			el("button", {type: "button", "aria-label": label, title: label, onclick: action}, text);
		const frame = el("div", {class: "timeline-frame"}, this.picture);

		this.range = el("output", {class: "range"});
		fill(this.box, {}, [
			el("div", {class: "controls", role: "toolbar", "aria-label": "timeline"},
				button("zoom in (+)", "+", () => this.zoom(0.5)),
				button("zoom out (-)", "\u2212", () => this.zoom(2)),
				button("earlier (left arrow)", "\u25c0", () => this.pan(-0.25)),
				button("later (right arrow)", "\u25b6", () => this.pan(0.25)),
				button("show the incident (i)", "incident", () => this.show_incident()),
				button("show all (0)", "all", () => this.reset()),
				this.rows_switch(), this.arrow_switch(), this.range),
			frame, this.legend(), this.status, this.notes(), this.table()]);
		this.picture.addEventListener("keydown", (event) => this.key(event));
		this.picture.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
		this.picture.addEventListener("pointermove", (event) => this.hover(event));
		this.picture.addEventListener("pointerleave", () => tip.hide());
		this.picture.addEventListener("blur", () => tip.hide());
		this.picture.addEventListener("pointerdown", (event) => this.drag_begin(event));
		this.picture.addEventListener("pointerup", (event) => this.drag_end(event));
		this.picture.addEventListener("dblclick", () => this.reset());
		draw_to_width(frame, (width) => {
			this.width = width;
			this.draw();
		});
	}

	arrow_switch() {
		if (!this.scene.arrows.length)
			return null;
		const all = this.scene.arrows.length / 7;
		const box = el("select", {"aria-label": "arrows"},
			el("option", {value: "own"}, "the incident's arrows (" + this.own.length + ")"),
			el("option", {value: "all"}, "all arrows (" + count(all) + ")"),
			el("option", {value: "none"}, "no arrows"));

		box.addEventListener("change", () => {
			this.arrows = box.value;
			this.draw();
		});
		return box;
	}

	rows_switch() {
		if (this.order.length === this.every.length)
			return null;
		const few = this.order;
		const box = el("button", {type: "button", class: "rows", "aria-pressed": "false"},
			"all " + this.every.length + " rows");

		box.addEventListener("click", () => {
			const all = this.order === few;

			this.order = all ? this.every : few;
			this.focus = {row: 0, piece: -1};
			box.setAttribute("aria-pressed", String(all));
			this.draw();
		});
		return box;
	}

	notes() {
		const s = this.scene, notes = [];

		if (s.grain_ns)
			notes.push("Detail is thinned: neighbouring pieces shorter than " +
				fine(s.grain_ns) + " are drawn as one, split by their shares.");
		if (s.cut)
			notes.push("The beginning is longer ago than what is kept: it is empty.");
		if (s.rows_left_out)
			notes.push(plural(s.rows_left_out, "more vCPU or pCPU is", "more vCPUs and pCPUs are") +
				" not drawn.");
		if (s.arrows_left_out)
			notes.push(plural(s.arrows_left_out, "more arrow is", "more arrows are") + " not drawn.");
		notes.push(...lane_notes(this.rows.filter(is_lane), s.marks_left_out));
		return notes.length ? el("p", {class: "note"}, notes.join(" ")) : null;
	}

	legend() {
		const seen = new Map();

		for (const row of this.rows.filter((r) => !is_lane(r))) {
			for (let i = 0; i < row.n; i++) {
				const states = row.state[i] >= 0 ? [row.state[i]]
					: [...row.shares[i].keys()].filter((s) => row.shares[i][s]);

				for (const s of states)
					seen.set(row.kind + s, [row.kind, s]);
			}
		}
		const list = el("ul", {class: "legend"});

		for (const kind of ["pcpu", "vcpu", "guest"]) {
			const title = {pcpu: "pCPU", vcpu: "vCPU", guest: "guest CPU"}[kind];
			const items = [...seen.values()].filter(([k]) => k === kind).sort((a, b) => a[1] - b[1]);

			if (items.length)
				list.append(el("li", {class: "legend-head"}, title + ":"));
			for (const [k, s] of items) {
				const [name, meaning] = this.context.names[k][s];

				list.append(el("li", {title: meaning},
					el("span", {class: "swatch " + k + "-" + s}), name));
			}
		}
		for (const [kind, text] of [["event", "chosen event"], ["pair", "pair of events"]])
			if (this.every.some((i) => this.rows[i].kind === kind))
				list.append(el("li", {}, el("span", {class: "swatch lane-" + kind}), text));
		if (this.context.error_ns)
			list.append(el("li", {title: "where in the host's time a guest's stamp may lie"},
				el("span", {class: "swatch-arrow clock-error"}), "clock error \u00b1" +
				this.context.error));
		const kinds = new Set(this.scene.arrows.filter((_, i) => i % 7 === 0));

		for (const kind of [...kinds].sort()) {
			const [name, meaning] = this.context.names.arrows[kind];

			list.append(el("li", {title: meaning},
				el("span", {class: "swatch-arrow arrow-" + kind}), name));
		}
		return list;
	}

	// The same for who does not see the picture: what lasted longest.
	table() {
		const all = [];

		for (const index of this.every) {
			const row = this.rows[index];

			for (let i = 0; i < row.n; i++)
				all.push([row.end[i] - row.begin[i], index, i]);
		}
		all.sort((a, b) => b[0] - a[0]);
		const body = el("tbody");

		for (const [length, index, i] of all.slice(0, 25)) {
			const row = this.rows[index];

			body.append(el("tr", {}, el("td", {text: this.label(row)}),
				el("td", {text: this.offset(row.begin[i])}), el("td", {text: fine(length)}),
				el("td", {text: this.describe(row, i)[0]})));
		}
		const head = el("thead", {}, el("tr", {}, ...["row", "from the incident's begin", "length",
			"what"].map((text) => el("th", {scope: "col", text}))));

		return el("details", {class: "longest"}, el("summary", {}, "Its longest pieces as a table"),
			el("div", {class: "scroll"}, el("table", {}, head, body)));
	}

	label(row) {
		if (is_lane(row))
			return row.name + (row.vcpu === undefined ? "" : ", vCPU " + row.vcpu);
		return {pcpu: "pCPU ", vcpu: "vCPU ", guest: "guest CPU "}[row.kind] + row.number;
	}

	// Time in the scene as people read it: from the incident's begin.
	offset(t) {
		const ns = t - this.begin;

		return (ns < 0 ? "\u2212" : "+") + fine(Math.abs(ns));
	}

	name_of(row, i) {
		const s = this.scene, state = row.state[i];

		if (row.kind === "pcpu")
			return state === 0 ? "idle" : state === 3 ? "" : task(s.host, row.pid[i]);
		if (row.kind === "vcpu")
			return this.context.names.vcpu[state][0];
		if (state === 1)
			return task(s.guest, row.pid[i]);
		if (state === 2 || state === 3) {
			const key = state + ":" + row.where[i] + ":" + row.what[i];

			return s.interrupts[key] || (state === 2 ? "irq " : "softirq ") + row.what[i];
		}
		return this.context.names.guest[state][0];
	}

	// The lines that a piece's tooltip has.
	describe(row, i) {
		if (is_lane(row))
			return lane_lines(row, [i], (t) => this.offset(t));
		const names = this.context.names[row.kind], length = row.end[i] - row.begin[i];
		const lines = [];

		if (row.state[i] < 0) {
			const parts = names.map(([name], s) => [row.shares[i][s], name]).filter(([n]) => n)
				.sort((a, b) => b[0] - a[0]);

			lines.push("several: " + parts.map(([n, name]) =>
				name + " " + Math.round(n / 2.55) + " %").join(", "));
		} else if (row.kind === "vcpu") {
			const [name, meaning] = names[row.state[i]];

			lines.push(name + ": " + meaning);
			if ((name === "runnable" || name === "throttled") && row.pid[i])
				lines.push("longest on its pCPU meanwhile: " + task(this.scene.host, row.pid[i]));
			if ((name === "blocked" || name === "halted" || name === "stopped") && row.what[i])
				lines.push("waited for " + this.context.names.waits[row.what[i]][1]);
			if (name !== "unknown")
				lines.push("pCPU " + row.where[i]);
		} else if (row.kind === "guest") {
			const name = names[row.state[i]][0], what = this.name_of(row, i);

			lines.push(name === what ? what : name + " " + what);
			if (row.state[i] > 1 && row.state[i] < 4)
				lines.push("in " + task(this.scene.guest, row.pid[i]));
		} else {
			const [name, meaning] = names[row.state[i]];

			lines.push(row.state[i] === 1 || row.state[i] === 2
				? name + ": " + this.name_of(row, i) : name + ": " + meaning);
		}
		lines.push(this.label(row) + ", " + this.offset(row.begin[i]) + " for " + fine(length));
		if (row.kind === "guest")
			lines.push("guest times \u00b1" + this.context.error);
		return lines;
	}

	// Who or what a piece is labelled with; pieces of one key are one bar. A merged piece is its
	// longest task's.
	group_key(row, i) {
		const state = row.state[i] >= 0 ? row.state[i]
			: row.shares[i].indexOf(Math.max(...row.shares[i]));

		if (row.kind === "vcpu")
			return state + ":" + row.pid[i];
		if (row.kind === "guest" ? state === 1 : state === 1 || state === 2)
			return state + ":" + row.pid[i];
		return row.state[i] < 0 ? null : state + ":" + row.where[i] + ":" + row.what[i];
	}

	// The bars of a row, as they are seen at this zoom: {i (its longest piece), x1, x2, own (pixels
	// of its own), ns, n}.
	bars(row) {
		const open = new Map(), all = [], last = this.width - 6;

		for (let i = Math.max(0, find_last(row.begin, this.from)); i < row.n &&
			row.begin[i] < this.until; i++) {
			const x1 = Math.max(this.left, this.x_of(row.begin[i]));
			const x2 = Math.min(last, this.x_of(row.end[i]));
			const key = this.group_key(row, i), ns = row.end[i] - row.begin[i];
			let bar = open.get(key);

			if (x2 <= x1 || key === null)
				continue;
			if (!bar || x1 - bar.x2 > GROUP_GAP) {
				bar = {i, x1, x2, own: 0, ns: 0, n: 0, from: row.begin[i], merged: false};
				open.set(key, bar);
				all.push(bar);
			}
			if (ns > row.end[bar.i] - row.begin[bar.i])
				bar.i = i;
			bar.merged = bar.merged || row.state[i] < 0;
			bar.x2 = x2;
			bar.until = row.end[i];
			bar.own += x2 - x1;
			bar.ns += ns;
			bar.n++;
		}
		return all;
	}

	// Labels that fit, those of the longest first.
	labels_of(row, bars) {
		const placed = [];

		for (const bar of bars.filter((b) => b.x2 - b.x1 >= 28 && b.own >= 0.6 * (b.x2 - b.x1))
			.sort((a, b) => b.own - a.own)) {
			const room = Math.floor((bar.x2 - bar.x1 - 8) / LETTER);
			const names = this.label_names(row, bar);
			const name = names.find((text) => text.length <= room) ||
				(room > 3 && names.length ? names[names.length - 1].slice(0, room - 1) + "\u2026" : "");

			if (name && placed.every((p) => p.bar.x2 <= bar.x1 + 1 || p.bar.x1 >= bar.x2 - 1))
				placed.push({bar, name});
		}
		return placed;
	}

	// From the longest to the shortest.
	label_names(row, bar) {
		if (row.state[bar.i] < 0)
			return row.kind === "vcpu" || !row.pid[bar.i] ? [] : ["mostly " +
				task(row.kind === "guest" ? this.scene.guest : this.scene.host, row.pid[bar.i])];
		const name = this.name_of(row, bar.i), mostly = bar.merged ? "mostly " : "";

		if (row.kind === "vcpu" && ["runnable", "throttled"].includes(name) && row.pid[bar.i])
			return [name + ", pCPU held by " + task(this.scene.host, row.pid[bar.i]), name];
		return name ? [mostly + name, mostly + name.replace(/ \(\d+\)$/, "")] : [];
	}

	x_of(t) {
		return this.left + (t - this.from) / (this.until - this.from) *
			(this.width - this.left - 6);
	}

	t_of(x) {
		return this.from + (x - this.left) / (this.width - this.left - 6) *
			(this.until - this.from);
	}

	y_of(index) {
		return this.top + this.order.indexOf(index) * (ROW_HEIGHT + ROW_GAP);
	}

	set_view(from, until) {
		const length = Math.min(Math.max(until - from, 200), this.scene.length);

		from = Math.min(Math.max(from, 0), this.scene.length - length);
		this.from = from;
		this.until = from + length;
		this.draw();
	}

	zoom(factor, around) {
		const at = around === undefined ? (this.from + this.until) / 2 : around;

		this.set_view(at - (at - this.from) * factor, at + (this.until - at) * factor);
	}

	pan(share) {
		const by = (this.until - this.from) * share;

		this.set_view(this.from + by, this.until + by);
	}

	reset() {
		this.set_view(0, this.scene.length);
	}

	show_incident() {
		const margin = (this.end - this.begin) / 20;

		this.set_view(this.begin - margin, this.end + margin);
	}

	// ---- drawing ----

	draw() {
		if (!this.width)
			return;
		this.left = this.width < 640 ? 88 : 132;
		this.who = this.who_lines();
		this.top = AXIS_HEIGHT + WHO_HEIGHT * this.who.length;
		const height = this.top + this.order.length * (ROW_HEIGHT + ROW_GAP) + 4;

		this.picture.replaceChildren();
		this.picture.setAttribute("viewBox", "0 0 " + this.width + " " + height);
		this.picture.setAttribute("height", height);
		this.picture.setAttribute("aria-label", this.context.title + ": " +
			this.order.map((i) => this.label(this.rows[i])).join(", ") +
			". Arrow keys move, plus and minus zoom, up and down choose a row, " +
			"page up and page down its pieces.");
		this.draw_axis(height);
		this.draw_window(height);
		for (const index of this.order)
			this.draw_row(index);
		this.draw_errors();
		this.draw_arrows();
		this.draw_who();
		this.draw_focus();
		this.range.textContent = fine(this.until - this.from) + " from " +
			this.offset(this.from);
	}

	draw_axis(height) {
		const {step, all} = ticks(this.from - this.begin, this.until - this.begin,
			(this.width - this.left) / 110);
		const unit = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "us"]
			: [1, "ns"];

		for (const t of all) {
			const x = this.x_of(t + this.begin);

			this.picture.append(svg("line", {class: "grid", x1: x, x2: x, y1: this.top - 8,
				y2: height}));
			this.picture.append(svg("text", {class: "tick", x: Math.min(x, this.width - 40),
				y: this.top - 12, "text-anchor": "middle"},
				String(Math.round(t / unit[0] * 1000) / 1000) + " " + unit[1]));
		}
	}

	clip(x) {
		return Math.min(Math.max(x, this.left), this.width - 6);
	}

	// The incident.
	draw_window(height) {
		const x1 = this.clip(this.x_of(this.begin)), x2 = this.clip(this.x_of(this.end));

		if (x2 > x1)
			this.picture.append(svg("rect", {class: "window", x: x1, y: this.top - 8,
				width: x2 - x1, height: height - this.top + 8}));
	}

	// Error bars: where in the host's time the edges of the incident, as the guest stamped them,
	// may lie.
	draw_errors() {
		const error = this.context.error_ns;

		for (const index of this.order.filter((i) => this.rows[i].kind === "guest" &&
			this.rows[i].number === this.context.guest_cpu)) {
			const y = this.y_of(index) + ROW_HEIGHT / 2;

			for (const edge of [this.begin, this.end]) {
				const x1 = this.clip(this.x_of(edge - error)), x2 = this.clip(this.x_of(edge + error));

				if (x2 - x1 >= 3)
					this.picture.append(svg("path", {class: "clock-error", d: "M" + x1.toFixed(1) +
						" " + (y - 6) + "v12m0-6H" + x2.toFixed(1) + "m0-6v12"}));
			}
		}
	}

	// Marks of an event, or spans of a pair.
	draw_lane(index) {
		const row = this.rows[index], y = this.y_of(index);
		const path = lane_path(row, lane_marks(row, this.from, this.until), (t) =>
			Math.max(this.left, this.x_of(t)), this.width - 6, y, ROW_HEIGHT);

		this.groups.set(index, []);
		this.picture.append(svg("text", {class: "row-label", x: this.left - 8,
			y: y + ROW_HEIGHT - 6, "text-anchor": "end"}, lane_label(row, this.left - 12)));
		if (path)
			this.picture.append(svg("path", {class: "lane-" + row.kind, d: path}));
	}

	draw_row(index) {
		if (is_lane(this.rows[index])) {
			this.draw_lane(index);
			return;
		}
		const row = this.rows[index], y = this.y_of(index);
		const paths = this.context.names[row.kind].map(() => []);
		const last = this.width - 6;
		let pixel = -1, sums = null, i = Math.max(0, find_last(row.begin, this.from));
		const rect = (s, x, w, top, h) => paths[s].push("M" + x.toFixed(2) + " " + top.toFixed(2) +
			"h" + w.toFixed(2) + "v" + h.toFixed(2) + "h-" + w.toFixed(2) + "z");
		const stack = (shares, x, w) => {
			const all = shares.reduce((a, b) => a + b, 0);
			let top = y + ROW_HEIGHT;

			shares.forEach((n, s) => {
				const h = all ? ROW_HEIGHT * n / all : 0;

				top -= h;
				if (h)
					rect(s, x, w, top, h);
			});
		};
		const flush = () => {
			if (sums)
				stack(sums, pixel, 1);
			sums = null;
		};

		this.picture.append(svg("text", {class: "row-label", x: this.left - 8,
			y: y + ROW_HEIGHT - 6, "text-anchor": "end"}, this.label(row)));
		for (; i < row.n && row.begin[i] < this.until; i++) {
			const x1 = Math.max(this.left, this.x_of(row.begin[i]));
			const x2 = Math.min(last, this.x_of(row.end[i]));

			if (x2 <= x1)
				continue;
			if (x2 - x1 < 1) { // what shares a pixel is stacked in it
				if (Math.floor(x1) !== pixel || !sums) {
					flush();
					pixel = Math.floor(x1);
					sums = new Array(paths.length).fill(0);
				}
				if (row.state[i] >= 0)
					sums[row.state[i]] += x2 - x1;
				else
					row.shares[i].forEach((n, s) => sums[s] += n / 255 * (x2 - x1));
				continue;
			}
			flush();
			if (row.state[i] >= 0)
				rect(row.state[i], x1, x2 - x1, y, ROW_HEIGHT);
			else
				stack(row.shares[i], x1, x2 - x1);
		}
		flush();
		paths.forEach((path, s) => {
			if (path.length)
				this.picture.append(svg("path", {class: "piece " + row.kind + "-" + s,
					d: path.join("")}));
		});
		this.draw_bars(index, row, y);
	}

	// What the bars are called; a culprit's are framed.
	draw_bars(index, row, y) {
		const bars = this.bars(row);

		this.groups.set(index, bars);
		for (const bar of bars.filter((b) => this.is_culprit(row, b.i)))
			this.picture.append(svg("rect", {class: "culprit", x: bar.x1, y: y - 1.5,
				width: Math.max(2, bar.x2 - bar.x1), height: ROW_HEIGHT + 3}));
		for (const {bar, name} of this.labels_of(row, bars)) {
			const shares = row.shares[bar.i];
			const s = shares ? shares.indexOf(Math.max(...shares)) : row.state[bar.i];

			this.picture.append(svg("text", {class: "piece-label on-" + row.kind + "-" + s,
				x: bar.x1 + 4, y: y + ROW_HEIGHT - 6}, name));
		}
	}

	// The culprits' names stand in the picture even if their bars are too short for them. Without a
	// culprit it is the reason.
	who_lines() {
		const room = Math.floor((this.width - 14) / (LETTER + 1)), lines = [];
		const cut = (text) => text.length <= room ? text : text.slice(0, room - 1) + "\u2026";

		if (this.context.lost)
			return [cut(this.who_lost(room))];
		if (!this.context.culprits.length && this.context.because)
			return [cut(show(this.context.because))];

		for (const c of this.context.culprits.slice(0, 3)) {
			const who = show(c.pid ? (c.comm || "task") + " (" + c.pid + ")" : c.what);
			const more = [c.role, "in the " + c.side, c.pid && c.what ? show(c.what) : ""];
			let text = who;

			for (const part of more.filter((p) => p))
				if ((text + ", " + part + ", " + duration(c.share_ns)).length <= room)
					text += ", " + part;
			text += ", " + duration(c.share_ns);
			lines.push(cut(text));
		}
		return lines;
	}

	// The interrupt that was lost, and who raised it.
	who_lost(room) {
		const lost = this.context.lost, by = lost.raised_by;
		const raised = by && by.comm ? "raised by " + by.comm + " (" + by.pid + ")" : "";
		let text = "interrupt " + hex(lost.vector);

		if ((text + ", " + raised).length > room)
			text = hex(lost.vector);
		for (const part of [raised, "not handled for " + duration(lost.pending_ns),
			lost.irq === null ? "" : "irq " + lost.irq, "from " + lost.source])
			if (part && (text + ", " + part).length <= room)
				text += ", " + part;
		return show(text);
	}

	draw_who() {
		this.who.forEach((line, i) => this.picture.append(svg("text", {class: "who", x: 8,
			y: 13 + i * WHO_HEIGHT}, line)));
	}

	draw_arrows() {
		const a = this.scene.arrows;
		const group = svg("g", {class: "arrows"});

		const all = Array.from({length: a.length / 7}, (_, i) => 7 * i);

		for (const i of this.arrows === "own" ? this.own : this.arrows === "all" ? all : []) {
			const [kind, from_row, from, to_row, to] = a.slice(i, i + 5);

			if (to < this.from || from > this.until || !this.order.includes(from_row) ||
				!this.order.includes(to_row))
				continue;
			const x1 = Math.max(this.left, this.x_of(from));
			const x2 = Math.min(this.width - 6, this.x_of(to));
			const down = this.y_of(to_row) >= this.y_of(from_row);
			const y1 = this.y_of(from_row) + (from_row === to_row || !down ? 2 : ROW_HEIGHT - 2);
			const y2 = this.y_of(to_row) + (from_row === to_row || down ? 2 : ROW_HEIGHT - 2);
			const bend = from_row === to_row ? -12 : 0;
			const side = bend || y2 > y1 ? -1 : 1;
			const path = "M" + x1.toFixed(1) + " " + y1 + "Q" + ((x1 + x2) / 2).toFixed(1) + " " +
				((y1 + y2) / 2 + bend) + " " + x2.toFixed(1) + " " + y2 + "m-3 " + 5 * side + "l3 " +
				-5 * side + "l3 " + 5 * side;

			group.append(svg("path", {class: "arrow arrow-" + kind, d: path, "data-arrow": i}));
		}
		this.picture.append(group);
	}

	draw_focus() {
		if (this.focus.piece < 0)
			return;
		const index = this.order[this.focus.row], row = this.rows[index];
		const x1 = Math.max(this.left, this.x_of(row.begin[this.focus.piece]));
		const x2 = Math.min(this.width - 6, this.x_of(row.end[this.focus.piece]));

		this.picture.append(svg("rect", {class: "focus", x: x1 - 1, y: this.y_of(index) - 1,
			width: Math.max(3, x2 - x1 + 2), height: ROW_HEIGHT + 2}));
	}

	// ---- input ----

	point(event) {
		const box = this.picture.getBoundingClientRect();

		return [(event.clientX - box.left) * this.width / box.width,
			(event.clientY - box.top) * this.width / box.width];
	}

	arrow_lines(i) {
		const [kind, , from, to_row, to, pid, what] = this.scene.arrows.slice(i, i + 7);
		const [name, meaning] = this.context.names.arrows[kind];
		const lines = [name + ": " + meaning];

		if (name === "interrupt")
			lines.push("vector " + hex(what) + " on " + this.label(this.rows[to_row]));
		else
			lines.push(task(name === "kick" ? this.scene.host : this.scene.guest, pid));
		lines.push(this.offset(from) + ", " + fine(to - from) + " later at its end");
		return lines;
	}

	hover(event) {
		const [x, y] = this.point(event);
		const arrow = event.target.getAttribute && event.target.getAttribute("data-arrow");
		const index = this.order[Math.floor((y - this.top) / (ROW_HEIGHT + ROW_GAP))];

		this.drag_move(x);
		if (arrow !== null)
			return tip.show(event, this.arrow_lines(Number(arrow)));
		if (index === undefined || y < this.top || x < this.left)
			return tip.hide();
		const row = this.rows[index], t = this.t_of(x), i = find_last(row.begin, t);

		if (is_lane(row)) {
			const near = lane_marks(row, this.t_of(x - LANE_NEAR), this.t_of(x + LANE_NEAR));

			return near.length ? tip.show(event, lane_lines(row, near, (at) => this.offset(at)))
				: tip.hide();
		}
		if (i < 0 || row.end[i] < t)
			return tip.hide();
		return tip.show(event, [...this.describe(row, i), ...this.bar_lines(index, x)]);
	}

	// The sum of the bar that the pointer is in, if it is of several pieces.
	bar_lines(index, x) {
		const row = this.rows[index];
		const bar = this.groups.get(index).filter((b) => b.n > 1 && b.x1 <= x && x <= b.x2)
			.sort((a, b) => b.own - a.own)[0];

		if (!bar)
			return [];
		const name = this.label_names(row, bar)[0];

		return name ? [name + ": " + fine(bar.ns) + " in " + count(bar.n) + " pieces, " +
			this.offset(bar.from) + " to " + this.offset(bar.until)] : [];
	}

	drag_begin(event) {
		const [x] = this.point(event);

		if (event.button || x < this.left)
			return;
		this.dragged = x;
		this.picture.setPointerCapture(event.pointerId);
	}

	drag_move(x) {
		if (this.dragged === undefined)
			return;
		if (!this.band) {
			this.band = svg("rect", {class: "band", y: 0, height: "100%"});
			this.picture.append(this.band);
		}
		this.band.setAttribute("x", Math.min(x, this.dragged));
		this.band.setAttribute("width", Math.abs(x - this.dragged));
	}

	drag_end(event) {
		const [x] = this.point(event);
		const from = this.dragged;

		this.dragged = undefined;
		if (this.band)
			this.band.remove();
		this.band = null;
		if (from !== undefined && Math.abs(x - from) > 4)
			this.set_view(this.t_of(Math.min(x, from)), this.t_of(Math.max(x, from)));
	}

	wheel(event) {
		if (!event.ctrlKey && !event.metaKey)
			return;
		event.preventDefault();
		this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.t_of(this.point(event)[0]));
	}

	// Says the piece that the keyboard is at.
	focus_on(row_step, piece_step) {
		const rows = this.order.length;

		this.focus.row = Math.min(Math.max(this.focus.row + row_step, 0), rows - 1);
		const row = this.rows[this.order[this.focus.row]];

		if (!row.n)
			return;
		if (row_step || this.focus.piece < 0)
			this.focus.piece = Math.max(0, find_last(row.begin, (this.from + this.until) / 2));
		else
			this.focus.piece = Math.min(Math.max(this.focus.piece + piece_step, 0), row.n - 1);
		const begin = row.begin[this.focus.piece];

		if (begin < this.from || begin > this.until)
			this.set_view(begin - (this.until - this.from) / 2, begin + (this.until - this.from) / 2);
		else
			this.draw();
		this.status.textContent = this.describe(row, this.focus.piece).map(show).join("; ");
	}

	key(event) {
		const actions = {
			"+": () => this.zoom(0.5, this.chosen()), "=": () => this.zoom(0.5, this.chosen()),
			"-": () => this.zoom(2, this.chosen()),
			ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25),
			ArrowUp: () => this.focus_on(-1, 0), ArrowDown: () => this.focus_on(1, 0),
			PageUp: () => this.focus_on(0, -1), PageDown: () => this.focus_on(0, 1),
			"0": () => this.reset(), Home: () => this.reset(), i: () => this.show_incident(),
			Escape: () => this.reset(),
		};

		if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key])
			return;
		event.preventDefault();
		tip.hide();
		actions[event.key]();
	}

	// The middle of the piece that the keyboard is at, if it is in view.
	chosen() {
		const row = this.rows[this.order[this.focus.row]], i = this.focus.piece;
		const middle = i < 0 ? NaN : (row.begin[i] + row.end[i]) / 2;

		return middle > this.from && middle < this.until ? middle : undefined;
	}
}
