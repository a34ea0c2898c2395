// SPDX-License-Identifier: GPL-2.0-only
// The interactive timeline of one scene: rows of pieces, arrows between them, zoom, hover, keys.
"use strict";

const ROW_HEIGHT = 20, ROW_GAP = 5, AXIS_HEIGHT = 30, LABEL_WIDTH = 132;

// Flat arrays of a row, for binary search.
function row_decode(raw, state_count) {
	const n = raw.pieces.length / 6;
	const row = {kind: raw.kind, number: raw.number, n, begin: new Array(n), end: new Array(n),
		state: new Array(n), pid: new Array(n), what: new Array(n), where: new Array(n),
		shares: new Array(n)};
	let t = 0, merged = 0;

	for (let i = 0; i < n; i++) {
		const at = 6 * i;

		row.begin[i] = t += raw.pieces[at];
		row.end[i] = t += raw.pieces[at + 1];
		row.state[i] = raw.pieces[at + 2];
		row.pid[i] = raw.pieces[at + 3];
		row.what[i] = raw.pieces[at + 4];
		row.where[i] = raw.pieces[at + 5];
		if (row.state[i] < 0) {
			row.shares[i] = raw.shares.slice(merged, merged + state_count);
			merged += state_count;
		}
	}
	return row;
}

class Timeline {
	// context: {names (of states), wall(ns) or null, begin, end (of the incident), error, vm,
	// title}; times of `context` count from the report's begin.
	constructor(scene, context) {
		this.scene = scene;
		this.context = context;
		this.rows = scene.rows.map((raw) => row_decode(raw, context.names[raw.kind].length));
		this.order = [...this.rows.keys()].sort((a, b) => this.rank(a) - this.rank(b));
		this.begin = context.begin - scene.begin;
		this.end = context.end - scene.begin;
		this.from = 0;
		this.until = scene.length;
		this.arrows = true;
		this.focus = {row: 0, piece: -1};
		this.box = el("div", {class: "timeline"});
		this.picture = svg("svg", {class: "timeline-picture", tabindex: "0", role: "img"});
		this.status = el("p", {class: "status", "aria-live": "polite"});
		this.build();
	}

	// pCPUs above, then each vCPU with the guest CPU that it runs.
	rank(index) {
		return (this.rows[index].kind === "pcpu" ? 0 : 1000) + index;
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
				this.arrow_switch(), this.range),
			frame, this.legend(), this.status, this.notes(), this.table()]);
		this.picture.addEventListener("keydown", (event) => this.key(event));
		this.picture.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
		this.picture.addEventListener("pointermove", (event) => this.hover(event));
		this.picture.addEventListener("pointerleave", () => tip.hide());
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
		const box = el("input", {type: "checkbox", checked: true});

		box.addEventListener("change", () => {
			this.arrows = box.checked;
			this.draw();
		});
		return el("label", {class: "switch"}, box, " arrows");
	}

	notes() {
		const s = this.scene, notes = [];

		if (s.grain_ns)
			notes.push("Detail is thinned: neighbouring pieces shorter than " +
				duration(s.grain_ns) + " are drawn as one, split by their shares.");
		if (s.cut)
			notes.push("The beginning is longer ago than what is kept: it is empty.");
		if (s.rows_left_out)
			notes.push(plural(s.rows_left_out, "more vCPU or pCPU is", "more vCPUs and pCPUs are") +
				" not drawn.");
		if (s.arrows_left_out)
			notes.push(plural(s.arrows_left_out, "more arrow is", "more arrows are") + " not drawn.");
		return notes.length ? el("p", {class: "note"}, notes.join(" ")) : null;
	}

	legend() {
		const seen = new Map();

		for (const row of this.rows) {
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

		for (const index of this.order) {
			const row = this.rows[index];

			for (let i = 0; i < row.n; i++)
				all.push([row.end[i] - row.begin[i], index, i]);
		}
		all.sort((a, b) => b[0] - a[0]);
		const body = el("tbody");

		for (const [length, index, i] of all.slice(0, 25)) {
			const row = this.rows[index];

			body.append(el("tr", {}, el("td", {text: this.label(row)}),
				el("td", {text: this.offset(row.begin[i])}), el("td", {text: duration(length)}),
				el("td", {text: this.describe(row, i)[0]})));
		}
		const head = el("thead", {}, el("tr", {}, ...["row", "from the incident's begin", "length",
			"what"].map((text) => el("th", {scope: "col", text}))));

		return el("details", {class: "longest"}, el("summary", {}, "Its longest pieces as a table"),
			el("div", {class: "scroll"}, el("table", {}, head, body)));
	}

	label(row) {
		return {pcpu: "pCPU ", vcpu: "vCPU ", guest: "guest CPU "}[row.kind] + row.number;
	}

	// Time in the scene as people read it: from the incident's begin.
	offset(t) {
		const ns = t - this.begin;

		return (ns < 0 ? "\u2212" : "+") + duration(Math.abs(ns));
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
		lines.push(this.label(row) + ", " + this.offset(row.begin[i]) + " for " + duration(length));
		if (row.kind === "guest")
			lines.push("guest times \u00b1" + this.context.error);
		return lines;
	}

	x_of(t) {
		return LABEL_WIDTH + (t - this.from) / (this.until - this.from) *
			(this.width - LABEL_WIDTH - 6);
	}

	t_of(x) {
		return this.from + (x - LABEL_WIDTH) / (this.width - LABEL_WIDTH - 6) *
			(this.until - this.from);
	}

	y_of(index) {
		return AXIS_HEIGHT + this.order.indexOf(index) * (ROW_HEIGHT + ROW_GAP);
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
		const height = AXIS_HEIGHT + this.order.length * (ROW_HEIGHT + ROW_GAP) + 4;

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
		if (this.arrows)
			this.draw_arrows();
		this.draw_focus();
		this.range.textContent = duration(this.until - this.from) + " from " +
			this.offset(this.from);
	}

	draw_axis(height) {
		const {step, all} = ticks(this.from - this.begin, this.until - this.begin,
			(this.width - LABEL_WIDTH) / 110);
		const unit = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "us"]
			: [1, "ns"];

		for (const t of all) {
			const x = this.x_of(t + this.begin);

			this.picture.append(svg("line", {class: "grid", x1: x, x2: x, y1: AXIS_HEIGHT - 8,
				y2: height}));
			this.picture.append(svg("text", {class: "tick", x: Math.min(x, this.width - 40),
				y: AXIS_HEIGHT - 12, "text-anchor": "middle"},
				String(Math.round(t / unit[0] * 1000) / 1000) + " " + unit[1]));
		}
	}

	clip(x) {
		return Math.min(Math.max(x, LABEL_WIDTH), this.width - 6);
	}

	// The incident.
	draw_window(height) {
		const x1 = this.clip(this.x_of(this.begin)), x2 = this.clip(this.x_of(this.end));

		if (x2 > x1)
			this.picture.append(svg("rect", {class: "window", x: x1, y: AXIS_HEIGHT - 8,
				width: x2 - x1, height: height - AXIS_HEIGHT + 8}));
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

	draw_row(index) {
		const row = this.rows[index], y = this.y_of(index);
		const paths = this.context.names[row.kind].map(() => []);
		const texts = [], last = this.width - 6;
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

		this.picture.append(svg("text", {class: "row-label", x: LABEL_WIDTH - 8,
			y: y + ROW_HEIGHT - 6, "text-anchor": "end"}, this.label(row)));
		for (; i < row.n && row.begin[i] < this.until; i++) {
			const x1 = Math.max(LABEL_WIDTH, this.x_of(row.begin[i]));
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
			if (row.state[i] >= 0 && x2 - x1 > 44)
				texts.push([x1, x2 - x1, this.name_of(row, i), row.state[i]]);
		}
		flush();
		paths.forEach((path, s) => {
			if (path.length)
				this.picture.append(svg("path", {class: "piece " + row.kind + "-" + s,
					d: path.join("")}));
		});
		for (const [x, width, name, s] of texts) {
			const room = Math.floor((width - 8) / 6.6);
			const text = name.length <= room ? name : room > 3 ? name.slice(0, room - 1) + "\u2026" : "";

			if (text)
				this.picture.append(svg("text", {class: "piece-label on-" + row.kind + "-" + s,
					x: x + 4, y: y + ROW_HEIGHT - 6}, text));
		}
	}

	draw_arrows() {
		const a = this.scene.arrows;
		const group = svg("g", {class: "arrows"});

		for (let i = 0; i < a.length; i += 7) {
			const [kind, from_row, from, to_row, to] = a.slice(i, i + 5);

			if (to < this.from || from > this.until)
				continue;
			const x1 = Math.max(LABEL_WIDTH, this.x_of(from));
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
		const x1 = Math.max(LABEL_WIDTH, this.x_of(row.begin[this.focus.piece]));
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
		lines.push(this.offset(from) + ", " + duration(to - from) + " later at its end");
		return lines;
	}

	hover(event) {
		const [x, y] = this.point(event);
		const arrow = event.target.getAttribute && event.target.getAttribute("data-arrow");
		const index = this.order[Math.floor((y - AXIS_HEIGHT) / (ROW_HEIGHT + ROW_GAP))];

		this.drag_move(x);
		if (arrow !== null)
			return tip.show(event, this.arrow_lines(Number(arrow)));
		if (index === undefined || y < AXIS_HEIGHT || x < LABEL_WIDTH)
			return tip.hide();
		const row = this.rows[index], t = this.t_of(x), i = find_last(row.begin, t);

		if (i < 0 || row.end[i] < t)
			return tip.hide();
		return tip.show(event, this.describe(row, i));
	}

	drag_begin(event) {
		const [x] = this.point(event);

		if (event.button || x < LABEL_WIDTH)
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
			"+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
			ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25),
			ArrowUp: () => this.focus_on(-1, 0), ArrowDown: () => this.focus_on(1, 0),
			PageUp: () => this.focus_on(0, -1), PageDown: () => this.focus_on(0, 1),
			"0": () => this.reset(), Home: () => this.reset(), i: () => this.show_incident(),
			Escape: () => this.reset(),
		};

		if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key])
			return;
		event.preventDefault();
		actions[event.key]();
	}
}
