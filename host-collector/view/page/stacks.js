// SPDX-License-Identifier: GPL-2.0-only
// The flame graph of one incident, opened in place: what its guest CPU did by the guest's kernel,
// below that what the vCPU did at the same time, below that the host's stack if one was recorded.
// It joins two rows of the timeline; `vcpuscope flame` has the samples too.
"use strict";

const FLAME_ROW = 17;

// The parts of a piece: [state, share]. One, unless it is merged.
function piece_parts(row, i) {
	if (row.state[i] >= 0)
		return [[row.state[i], 1]];
	const all = row.shares[i].reduce((a, b) => a + b, 0);

	return row.shares[i].map((n, s) => [s, n / all]).filter(([, share]) => share);
}

// The frames of a guest CPU's piece, and their colour.
function guest_frames(view, row, i, state) {
	const name = data.names.guest[state][0];

	if (row.state[i] < 0)
		return [[name, "guest-" + state]];
	if (state === 2 || state === 3)
		return [[task(view.scene.guest, row.pid[i]), "guest-1"],
			[view.name_of(row, i), "guest-" + state]];
	return [[view.name_of(row, i), "guest-" + state]];
}

function stack_frames(stack, colour) {
	return (stack || []).map((frame) => [frame.symbol || (frame.module || "?") + "+0x" +
		frame.offset.toString(16), colour]);
}

// Those of a vCPU's piece. What it waited for comes from the evidence of that time.
function vcpu_frames(view, row, i, state, incident) {
	const name = data.names.vcpu[state][0], colour = "vcpu-" + state;
	const at = report.begin_ns + view.scene.begin + (row.begin[i] + row.end[i]) / 2;
	const found = incident.evidence.find((e) => e.waiter_stack && e.t_ns <= at &&
		at <= e.t_ns + e.duration_ns);
	let label = "vCPU " + name;

	if (row.state[i] >= 0 && (name === "runnable" || name === "throttled") && row.pid[i])
		label += ": pCPU held by " + task(view.scene.host, row.pid[i]);
	if (row.state[i] >= 0 && name === "blocked" && row.what[i])
		label += ": waits for " + data.names.waits[row.what[i]][1];
	if (!found || !["blocked", "stopped", "halted"].includes(name))
		return [[label, colour]];
	return [[label, colour], ...stack_frames(found.waiter_stack, "pcpu-2").reverse(),
		...(found.waker_stack ? [["--", "pcpu-0"]] : []),
		...stack_frames(found.waker_stack, "guest-3")];
}

function stacks_add(root, frames, ns) {
	let node = root;

	node.ns += ns;
	for (const [name, colour] of frames) {
		if (!node.children.has(name))
			node.children.set(name, {name, colour, ns: 0, children: new Map()});
		node = node.children.get(name);
		node.ns += ns;
	}
}

// The tree, or null if one of the two rows was not recorded.
function incident_stacks(view, incident) {
	const guest = view.rows.find((r) => r.kind === "guest" && r.number === incident.guest_cpu);
	const vcpu = view.rows.find((r) => r.kind === "vcpu" && r.number === incident.vcpu);
	const root = {name: "guest CPU " + incident.guest_cpu, colour: "pcpu-0", ns: 0,
		children: new Map()};

	if (!vcpu)
		return null;
	for (let k = 0, g = 0; k < vcpu.n; k++) {
		const cut = (from, until, frames) => {
			const ns = Math.min(until, vcpu.end[k], view.end) -
				Math.max(from, vcpu.begin[k], view.begin);

			if (ns > 0)
				for (const [state, share] of piece_parts(vcpu, k))
					for (const [top, part] of frames)
						stacks_add(root, [...top, ...vcpu_frames(view, vcpu, k, state, incident)],
							ns * share * part);
		};

		if (!guest || !guest.n) {
			cut(vcpu.begin[k], vcpu.end[k], [[[["guest side unknown", "guest-4"]], 1]]);
			continue;
		}
		while (g > 0 && guest.begin[g] > vcpu.begin[k])
			g--;
		for (; g < guest.n && guest.begin[g] < vcpu.end[k]; g++)
			cut(guest.begin[g], guest.end[g], piece_parts(guest, g).map(([state, share]) =>
				[guest_frames(view, guest, g, state), share]));
		g = Math.max(0, g - 1);
	}
	return root.ns ? root : null;
}

function flame_depth(node) {
	return 1 + Math.max(0, ...[...node.children.values()].map(flame_depth));
}

// What is widest, as text.
function flame_lines(node, all, above = []) {
	const children = [...node.children.values()].sort((a, b) => b.ns - a.ns);

	if (!children.length)
		return [[node.ns, [...above, node.name]]];
	return children.flatMap((child) => flame_lines(child, all, [...above, node.name]));
}

function flame_draw(box, root) {
	const width = Math.floor(box.clientWidth), depth = flame_depth(root);
	const picture = svg("svg", {viewBox: "0 0 " + width + " " + (depth * FLAME_ROW + 2),
		height: depth * FLAME_ROW + 2, role: "img", "aria-label": "Flame graph: " +
		flame_lines(root, root.ns).sort((a, b) => b[0] - a[0]).slice(0, 3).map(([ns, names]) =>
			names.slice(1, 4).join(", ") + ": " + duration(ns)).join("; ")});
	const place = (node, x, level) => {
		const w = node.ns / root.ns * width, room = Math.floor((w - 6) / LETTER);
		let next = x;

		if (w < 0.5)
			return;
		const frame = svg("g", {}, svg("rect", {class: node.colour, x, y: level * FLAME_ROW + 1,
			width: w, height: FLAME_ROW - 1}));

		frame.addEventListener("pointermove", (event) => tip.show(event, [node.name,
			fine(node.ns) + ", " + percent(node.ns, root.ns)]));
		if (room > 3)
			frame.append(svg("text", {class: "piece-label on-" + node.colour, x: x + 3,
				y: level * FLAME_ROW + 13}, node.name.length <= room ? node.name
				: node.name.slice(0, room - 1) + "\u2026"));
		picture.append(frame);
		for (const child of [...node.children.values()].sort((a, b) => a.name < b.name ? -1 : 1)) {
			place(child, next, level + 1);
			next += child.ns / root.ns * width;
		}
	};

	place(root, 0, 0);
	picture.addEventListener("pointerleave", () => tip.hide());
	box.replaceChildren(picture);
}

function flame_table(root) {
	const lines = flame_lines(root, root.ns).sort((a, b) => b[0] - a[0]).slice(0, 25);

	return el("details", {class: "longest"}, el("summary", {}, "As a table"), el("div",
		{class: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, ...["time", "share", "stack"]
			.map((text) => el("th", {scope: "col", text})))), el("tbody", {}, ...lines.map(([ns, names]) =>
			el("tr", {}, el("td", {class: "number"}, duration(ns)), el("td", {class: "number"},
				percent(ns, root.ns)), el("td", {}, names.slice(1).join("; "))))))));
}

// Drawn when somebody opens it.
function incident_flame(view, incident) {
	const root = incident_stacks(view, incident);
	const picture = el("div", {class: "flame-picture"});
	const box = el("details", {class: "flame"}, el("summary", {}, "Flame graph of this incident"));

	if (!root)
		return null;
	fill(box, {}, [el("p", {class: "note"}, "What guest CPU " + incident.guest_cpu + " did in these " +
		duration(root.ns) + ", and below it what its vCPU did meanwhile." + (view.scene.grain_ns
		? " Approximate: detail is thinned." : "")), picture, flame_table(root)]);
	box.addEventListener("toggle", () => box.open && draw_to_width(picture, () =>
		flame_draw(picture, root)), {once: true});
	return box;
}
