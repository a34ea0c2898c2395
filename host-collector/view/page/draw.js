// SPDX-License-Identifier: GPL-2.0-only
// What the other scripts of a report page draw with: elements, texts, figures. Every text of the
// data goes through show() and textContent, never through markup.
"use strict";

const SVG_NS = "http://www.w3.org/2000/svg";

// Characters that would steer, hide or reorder what stands beside them (util/escape.c).
const UNSAFE = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f" +
	"\\u2028-\\u202e\\u2060-\\u206f\\ufe00-\\ufe0f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}]",
	"gu");

function show(text) {
	return String(text).replace(UNSAFE, (c) => {
		const code = c.codePointAt(0);

		return code === 10 ? "\\n" : "\\u{" + code.toString(16) + "}";
	});
}

function fill(node, attributes, children) {
	for (const [key, value] of Object.entries(attributes || {})) {
		if (key === "text")
			node.textContent = show(value);
		else if (key.startsWith("on"))
			node.addEventListener(key.slice(2), value);
		else if (value !== null && value !== undefined && value !== false)
			node.setAttribute(key, value === true ? "" : value);
	}
	for (const child of children) {
		if (child !== null && child !== undefined)
			node.append(typeof child === "string" ? show(child) : child);
	}
	return node;
}

// el("p", {class: "note"}, "text", node, ...)
function el(name, attributes, ...children) {
	return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
	return fill(document.createElementNS(SVG_NS, name), attributes, children);
}

// "0x24", as vectors are written everywhere.
function hex(number) {
	return "0x" + Number(number).toString(16).padStart(2, "0");
}

// As printf("%.*f"): exact, and of two equally near the even one, unlike toFixed().
function fixed(value, digits) {
	const scale = Math.pow(10, digits), low = Math.floor(value * scale);
	const halves = value * Math.pow(2, digits + 1);

	if (value * scale - low !== 0.5 || !Number.isInteger(halves))
		return value.toFixed(digits);
	return ((low % 2 ? low + 1 : low) / scale).toFixed(digits);
}

// As the text report prints a duration (util/duration.c): the same figure everywhere.
function duration(ns) {
	const us = ns / 1e3;

	return us < 1e3 ? fixed(us, 0) + " us" : us < 1e5 ? fixed(us / 1e3, 1) + " ms"
		: us < 1e7 ? fixed(us / 1e3, 0) + " ms" : fixed(us / 1e6, 1) + " s";
}

// "3.52 ms", "833 ns": three digits, for what only the picture shows: places and pieces.
function fine(ns) {
	const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
	const size = Math.abs(ns);

	for (const [unit, name] of units) {
		if (size < unit && unit > 1)
			continue;
		const value = ns / unit;
		const digits = unit === 1 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;

		return value.toFixed(digits) + " " + name;
	}
	return "0";
}

function count(n) {
	return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function percent(part, whole) {
	return whole ? fixed(100 * part / whole, 1) + " %" : "-";
}

function plural(n, one, many) {
	return count(n) + " " + (n === 1 ? one : many || one + "s");
}

// The name that the data gives, or the number.
function task(names, pid) {
	if (!pid)
		return "idle";
	return names && names[pid] !== undefined ? names[pid] + " (" + pid + ")" : "task " + pid;
}

// The last index whose begin is not after t; -1 none.
function find_last(begins, t) {
	let low = 0, high = begins.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (begins[middle] <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

// A tooltip that follows the pointer and stays inside the window.
const tip = {
	node: null,
	show(event, lines) {
		if (!this.node) {
			this.node = el("div", {class: "tip", role: "tooltip"});
			document.body.append(this.node);
		}
		this.node.replaceChildren(...lines.map((line, i) =>
			el("div", {class: i ? "" : "tip-head", text: line})));
		this.node.hidden = false;
		const box = this.node.getBoundingClientRect();
		const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
		const y = event.clientY + 18 + box.height > window.innerHeight
			? event.clientY - box.height - 10 : event.clientY + 18;

		this.node.style.left = Math.max(4, x) + "px";
		this.node.style.top = Math.max(4, y) + "px";
	},
	hide() {
		if (this.node)
			this.node.hidden = true;
	},
};

// Calls `draw` with the width of `box` now and whenever it changes.
function draw_to_width(box, draw) {
	let width = 0;

	new ResizeObserver(() => {
		const now = Math.floor(box.clientWidth);

		if (now && now !== width) {
			width = now;
			draw(now);
		}
	}).observe(box);
}

// Round steps for an axis from..until with about `wanted` ticks.
function ticks(from, until, wanted) {
	const raw = (until - from) / Math.max(1, wanted);
	const power = Math.pow(10, Math.floor(Math.log10(raw)));
	const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
	const all = [];

	for (let t = Math.ceil(from / step) * step; t <= until; t += step)
		all.push(t);
	return {step, all};
}
