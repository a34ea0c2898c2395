// SPDX-License-Identifier: GPL-2.0-only
// Lanes of a timeline: marks of one chosen event, or spans of one pair of events. They are rows like
// those of the CPUs, but a mark has no state, and pairs of different keys may overlap.
"use strict";

const LANE_LEVELS = 3; // overlapping spans are drawn beside each other in so many levels
const LANE_NEAR = 3; // pixels: marks so near the pointer are told together
const LANE_NUMBERS = 4; // of a mark in the page's data

function is_lane(row) {
	return row.kind === "event" || row.kind === "pair";
}

// Flat arrays, as of row_decode(). count: how many a mark stands for; sum: their lengths.
function lane_decode(raw, number) {
	const lane = {kind: raw.kind, number, name: raw.name, vcpu: raw.vcpu, cut: raw.cut, n: 0, begin: [],
		end: [], count: [], sum: [], level: [], levels: 1, all: 0, longest: 0};
	const ends = [];

	for (let at = 0; at < raw.marks.length; at += LANE_NUMBERS) {
		const [begin, length, n, sum] = raw.marks.slice(at, at + LANE_NUMBERS);
		let level = ends.findIndex((end) => end <= begin);

		if (level < 0)
			level = ends.length < LANE_LEVELS ? ends.length : 0;
		ends[level] = begin + length;
		lane.begin.push(begin);
		lane.end.push(begin + length);
		lane.count.push(n);
		lane.sum.push(sum);
		lane.level.push(level);
		lane.longest = Math.max(lane.longest, length);
		lane.all += n;
		lane.n++;
	}
	lane.levels = Math.max(1, ends.length);
	return lane;
}

// The marks that can be seen between two times, by their places.
function lane_marks(lane, from, until) {
	const found = [];

	// Longer ones may have begun before.
	for (let i = Math.max(0, find_last(lane.begin, from - lane.longest)); i < lane.n &&
		lane.begin[i] <= until; i++)
		if (lane.end[i] >= from)
			found.push(i);
	return found;
}

// "guest:block:block_rq_issue" in the room of a row's label: its last part, and that cut.
function lane_label(lane, pixels) {
	const room = Math.floor(pixels / (LETTER + 0.6)), text = show(lane.name.split(":").pop());

	return text.length <= room ? text : text.slice(0, Math.max(1, room - 1)) + "\u2026";
}

// What a tooltip says of some of its marks. offset: writes a time.
function lane_lines(lane, marks, offset) {
	const n = marks.reduce((sum, i) => sum + lane.count[i], 0), pair = lane.kind === "pair";
	const first = Math.min(...marks.map((i) => lane.begin[i]));
	const last = Math.max(...marks.map((i) => pair ? lane.end[i] : lane.begin[i]));
	const lines = [lane.name + (lane.vcpu === undefined ? "" : ", vCPU " + lane.vcpu)];

	if (n === 1)
		lines.push(pair ? offset(first) + " for " + fine(lane.sum[marks[0]]) : offset(first));
	else if (pair)
		lines.push(plural(n, "pair") + ", " + fine(marks.reduce((ns, i) => ns + lane.sum[i], 0)) +
			" in all, the longest " + fine(Math.max(...marks.map((i) => lane.end[i] - lane.begin[i]))),
		offset(first) + " to " + offset(last));
	else
		lines.push(plural(n, "event") + ", " + offset(first) + " to " + offset(last));
	return lines;
}

// Draws the marks in view: of those that begin in one pixel of a level, the longest. Returns the
// drawn path.
function lane_path(lane, marks, x_of, last, y, height) {
	const columns = new Map(), path = [], step = height / lane.levels;

	for (const i of marks) {
		const x1 = x_of(lane.begin[i]), x2 = Math.max(x_of(lane.end[i]), x1 + 2);
		const column = lane.level[i] + ":" + Math.floor(x1), drawn = columns.get(column);

		if (!drawn || drawn.x2 < x2)
			columns.set(column, {x1, x2: Math.min(x2, last), level: lane.level[i]});
	}
	for (const {x1, x2, level} of columns.values())
		path.push("M" + x1.toFixed(1) + " " + (y + level * step).toFixed(1) + "h" +
			Math.max(1, x2 - x1).toFixed(1) + "v" + (step - 1).toFixed(1) + "h-" +
			Math.max(1, x2 - x1).toFixed(1) + "z");
	return path.join("");
}

// What the notes below a timeline say of its lanes.
function lane_notes(lanes, left_out) {
	const notes = [], folded = lanes.filter((lane) => lane.all > lane.n);
	const all = folded.reduce((n, lane) => n + lane.all, 0);

	if (folded.length)
		notes.push("Of " + count(all) + " marks of " + [...new Set(folded.map((l) => l.name))].join(", ") +
			", " + count(folded.reduce((n, lane) => n + lane.n, 0)) + " are here: each stands for those " +
			"around it.");
	if (lanes.some((lane) => lane.cut))
		notes.push("Older marks of " + [...new Set(lanes.filter((l) => l.cut).map((l) => l.name))].join(", ") +
			" were not kept.");
	if (left_out)
		notes.push(plural(left_out, "more mark is", "more marks are") + " not drawn.");
	return notes;
}
