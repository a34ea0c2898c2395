// SPDX-License-Identifier: GPL-2.0-only
// Zoom, search and hover of a flame graph; frames are found by their place, as in flamegraph.pl.
"use strict";

const svg = document.documentElement;
const by_id = (id) => document.getElementById(id);
const MATCH = "rgb(230,0,230)";
let frames = [], zoomed = null, here = -1, ignore_case = false, term = "";

function frame_read(g) {
	const rect = g.querySelector("rect"), title = g.querySelector("title").textContent;

	const at = Number(rect.getAttribute("x"));

	// `at` is its place in the file, which a URL holds; x depends on the window's width.
	return {g, rect, text: g.querySelector("text"), title, name: title.slice(0, title.lastIndexOf(" (")),
		at, x: at, y: Number(rect.getAttribute("y")),
		width: Number(rect.getAttribute("width")), fill: rect.getAttribute("fill")};
}

// ---- labels ----

function label_fit(f, x, width) {
	const room = Math.floor((width - 4) / (CONFIG.font * CONFIG.glyph));
	const letters = [...f.name];

	if (room < 3) {
		if (f.text)
			f.text.textContent = "";
		return;
	}
	if (!f.text) {
		f.text = document.createElementNS(svg.namespaceURI, "text");
		f.text.setAttribute("y", f.y + CONFIG.frame - 4.5);
		f.g.append(f.text);
	}
	f.text.setAttribute("x", x + 3);
	f.text.textContent = letters.length <= room ? f.name
		: letters.slice(0, room - 2).join("") + "..";
}

function frame_place(f, x, width) {
	f.rect.setAttribute("x", x.toFixed(2));
	f.rect.setAttribute("width", Math.max(0, width).toFixed(2));
	label_fit(f, x, width);
}

// ---- zoom ----

const EDGE = 0.02; // places have two decimals

function is_above(f, of) {
	return CONFIG.inverted ? f.y > of.y : f.y < of.y;
}

function zoom(target) {
	const ratio = (CONFIG.width - 2 * CONFIG.pad) / target.width;

	zoomed = target;
	by_id("unzoom").classList.add("show");
	for (const f of frames) {
		const below = f !== target && !is_above(f, target);
		const parent = below && f.y !== target.y && f.x <= target.x + EDGE &&
			f.x + f.width >= target.x + target.width - EDGE;
		const inside = f.x >= target.x - EDGE && f.x + f.width <= target.x + target.width + EDGE;
		const shown = parent || f === target || (!below && inside);

		f.g.classList.toggle("parent", parent);
		f.g.classList.toggle("gone", !shown);
		if (parent)
			frame_place(f, CONFIG.pad, CONFIG.width - 2 * CONFIG.pad);
		else if (shown)
			frame_place(f, CONFIG.pad + (f.x - target.x) * ratio, f.width * ratio);
	}
	search_count();
	state_keep();
}

function unzoom() {
	zoomed = null;
	by_id("unzoom").classList.remove("show");
	for (const f of frames) {
		f.g.classList.remove("parent", "gone");
		frame_place(f, f.x, f.width);
	}
	search_count();
	state_keep();
}

// ---- the window's width ----

const WIDTH_LEAST = 820; // room for the legend; a narrower window scrolls

// Places are stretched, heights and letters are not.
function width_follow() {
	const wide = Math.max(WIDTH_LEAST, window.innerWidth), was = CONFIG.width;
	const ratio = (wide - 2 * CONFIG.pad) / (was - 2 * CONFIG.pad);
	const height = svg.getAttribute("height");

	if (!CONFIG.follows || !window.innerWidth || wide === was)
		return;
	CONFIG.width = wide;
	svg.setAttribute("width", wide);
	svg.setAttribute("viewBox", "0 0 " + wide + " " + height);
	for (const [id, x] of [["title", wide / 2], ["subtitle", wide / 2], ["empty", wide / 2],
		["search", wide - CONFIG.pad - 30], ["ignorecase", wide - CONFIG.pad],
		["matched", wide - CONFIG.pad]])
		if (by_id(id))
			by_id(id).setAttribute("x", x);
	for (const f of frames) {
		f.x = CONFIG.pad + (f.x - CONFIG.pad) * ratio;
		f.width *= ratio;
		frame_place(f, f.x, f.width);
	}
	if (zoomed)
		zoom(zoomed);
}

// ---- search ----

function pattern() {
	try {
		return term ? new RegExp(term, ignore_case ? "i" : "") : null;
	} catch (error) {
		return undefined;
	}
}

// Paints what matches; the share of all that lies in matching frames, none counted twice.
function search(text) {
	term = text;
	const wanted = pattern();

	for (const f of frames) {
		f.matches = Boolean(wanted) && wanted.test(f.name);
		f.rect.setAttribute("fill", f.matches ? MATCH : f.fill);
	}
	by_id("search").classList.toggle("show", Boolean(term));
	by_id("search").textContent = term ? "Reset Search" : "Search";
	by_id("ignorecase").classList.toggle("show", ignore_case);
	search_count();
	state_keep();
	return wanted !== undefined;
}

function search_count() {
	const matched = by_id("matched");
	const from = zoomed ? zoomed.x : -Infinity, until = zoomed ? zoomed.x + zoomed.width : Infinity;
	const whole = zoomed || frames[0];
	let reached = -Infinity, sum = 0;

	if (!term || !whole) {
		matched.textContent = " ";
		return;
	}
	// By place, the widest first: what a match covers is not counted again.
	const all = frames.filter((f) => f.matches).sort((a, b) => a.x - b.x || b.width - a.width);

	for (const f of all) {
		const begin = Math.max(f.x, reached, from), end = Math.min(f.x + f.width, until);

		if (end > begin)
			sum += end - begin;
		reached = Math.max(reached, end);
	}
	matched.textContent = "Matched: " + (pattern() === undefined ? "no valid expression"
		: (100 * sum / whole.width).toFixed(1) + "%");
}

// ---- the search box ----

let box = null;

function box_close() {
	if (box)
		box.remove();
	box = null;
}

function box_open() {
	const html = "http://www.w3.org/1999/xhtml";
	const input = document.createElementNS(html, "input");

	box_close();
	box = document.createElementNS(svg.namespaceURI, "foreignObject");
	for (const [key, value] of Object.entries({x: CONFIG.width - CONFIG.pad - 250, y: 30,
		width: 250, height: 30}))
		box.setAttribute(key, value);
	input.setAttribute("class", "find");
	input.setAttribute("type", "text");
	input.setAttribute("aria-label", "Search: a regular expression");
	input.setAttribute("placeholder", "regular expression, e.g. ^vfs_");
	input.value = term;
	input.addEventListener("input", () => input.classList.toggle("bad", !search(input.value)));
	input.addEventListener("keydown", (event) => {
		event.stopPropagation();
		if (event.key === "Enter")
			box_close();
		if (event.key === "Escape") {
			search("");
			box_close();
		}
		if (is_find(event) || is_case(event))
			key(event);
	});
	box.append(input);
	svg.append(box);
	input.focus();
	input.select();
}

function search_click() {
	if (term)
		search("");
	else
		box_open();
}

function case_click() {
	ignore_case = !ignore_case;
	search(term);
}

// ---- state in the URL ----

function state_keep() {
	const state = new URLSearchParams();

	if (zoomed) {
		state.set("x", zoomed.at.toFixed(2));
		state.set("y", zoomed.y);
	}
	if (term)
		state.set("s", term);
	if (term && ignore_case)
		state.set("ic", "1");
	try {
		const query = state.toString();

		history.replaceState(null, "", query ? "?" + query : location.pathname);
	} catch (error) {
		// A page that holds this graph may forbid it.
	}
}

function state_restore() {
	const state = new URLSearchParams(location.search);
	const x = Number(state.get("x")), y = Number(state.get("y"));
	const target = state.has("x") && frames.find((f) => Math.abs(f.at - x) < EDGE &&
		Math.abs(f.y - y) < EDGE && f !== frames[0]);
	const text = state.get("s") || "";

	ignore_case = state.get("ic") === "1";
	if (target)
		zoom(target);
	if (text)
		search(text);
}

// ---- hover and keys ----

function details(f) {
	by_id("details").textContent = f ? "Function: " + f.title : " ";
}

function frame_of(event) {
	const g = event.target.closest && event.target.closest("g.f");

	return g ? frames[g.index] : null;
}

function go(index) {
	if (here >= 0)
		frames[here].g.classList.remove("here");
	here = index;
	frames[here].g.classList.add("here");
	details(frames[here]);
}

// The nearest shown frame in a direction: up and down by level, left and right within one.
function walk(dx, dy) {
	const now = frames[Math.max(0, here)];
	const step = CONFIG.inverted ? dy : -dy;
	const place = (f) => Number(f.rect.getAttribute("x"));
	const shown = frames.map((f, i) => [f, i]).filter(([f]) => !f.g.classList.contains("gone"));
	const level = shown.filter(([f]) => Math.abs(f.y - now.y - step * CONFIG.frame) < 1);
	const side = dx ? level.filter(([f]) => (place(f) - place(now)) * dx > 0) : level;

	if (here < 0)
		return go(0);
	side.sort(([a], [b]) => Math.abs(place(a) - place(now)) - Math.abs(place(b) - place(now)));
	if (dy > 0) { // to a child: the widest of its own
		const own = side.filter(([f]) => f.x >= now.x - EDGE && f.x + f.width <= now.x + now.width +
			EDGE).sort(([a], [b]) => b.width - a.width);

		return own.length ? go(own[0][1]) : undefined;
	}
	if (dy < 0) {
		const parent = side.find(([f]) => f.x <= now.x + EDGE && f.x + f.width >= now.x + now.width -
			EDGE);

		return parent ? go(parent[1]) : undefined;
	}
	return side.length ? go(side[0][1]) : undefined;
}

const is_find = (event) => event.key === "F3" || (event.ctrlKey && event.key === "f");
const is_case = (event) => event.ctrlKey && event.key === "i";

function key(event) {
	const actions = {
		Escape: () => { search(""); unzoom(); },
		Enter: () => here >= 0 && (here ? zoom(frames[here]) : unzoom()),
		ArrowUp: () => walk(0, CONFIG.inverted ? -1 : 1),
		ArrowDown: () => walk(0, CONFIG.inverted ? 1 : -1),
		ArrowLeft: () => walk(-1, 0), ArrowRight: () => walk(1, 0),
	};

	if (is_find(event))
		box_open();
	else if (is_case(event))
		case_click();
	else if (!event.ctrlKey && !event.metaKey && !event.altKey && actions[event.key])
		actions[event.key]();
	else
		return;
	event.preventDefault();
}

function main() {
	frames = [...document.querySelectorAll("#frames > .f")].map(frame_read);
	frames.forEach((f, i) => {
		f.g.index = i;
	});
	by_id("details").setAttribute("aria-live", "polite");
	by_id("frames").addEventListener("click", (event) => {
		const f = frame_of(event);

		if (f && f === frames[0])
			unzoom();
		else if (f)
			zoom(f);
	});
	by_id("frames").addEventListener("mouseover", (event) => details(frame_of(event)));
	by_id("frames").addEventListener("mouseout", () => details(null));
	by_id("unzoom").addEventListener("click", unzoom);
	by_id("search").addEventListener("click", search_click);
	by_id("ignorecase").addEventListener("click", case_click);
	document.addEventListener("keydown", key);
	window.addEventListener("resize", width_follow);
	width_follow();
	state_restore();
}

main();
