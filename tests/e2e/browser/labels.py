# SPDX-License-Identifier: GPL-2.0-only
"""Checks that the labels of a page's timelines can be read without hovering. It uses the browser's data about
each label: place, size, elements over it, contrast. For labels that name a culprit it also compares the
painted pixels: those that differ when the label is hidden.
"""
import base64
import json
import struct
import zlib

# The labels of all drawn timelines: text, size in pixels on the screen, whether it can be seen, and its
# contrast (WCAG) with the seam around its letters or, without one, with what is drawn behind it.
# covered: the share of 21 points of it that something lies over; arrows are thin lines and count apart.
LABELS = """(() => {
	const number = (text) => (text.match(/[0-9.]+/g) || []).map(Number);
	const light = (rgb) => {
		const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92
			: Math.pow((v + 0.055) / 1.055, 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
	const paper = number(getComputedStyle(document.body).backgroundColor).slice(0, 3);
	const behind = (text, x, y) => {
		for (const e of document.elementsFromPoint(x, y)) {
			const style = getComputedStyle(e);
			if (e === text || e.classList.contains("window") || e.classList.contains("culprit") ||
			    e.classList.contains("grid") || style.fill === "none" || e.tagName === "text" ||
			    e.classList.contains("arrow"))
				continue;
			if (e.classList.contains("piece"))
				return number(style.fill).slice(0, 3);
			break;
		}
		return paper;
	};
	// What is drawn after the text, or lies over the picture.
	const over = (text, box, picture) => {
		const names = new Set();
		let arrows = 0, others = 0;

		for (const v of [0.3, 0.5, 0.7]) {
			for (const u of [0.02, 0.18, 0.34, 0.5, 0.66, 0.82, 0.98]) {
				const all = document.elementsFromPoint(box.x + u * box.width, box.y + v * box.height);
				const at = all.indexOf(picture);
				const above = all.slice(0, at < 0 ? 1 : at).filter((e) => !picture.contains(e) ||
					text.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING);

				above.forEach((e) => names.add(e.tagName + "." + e.getAttribute("class")));
				if (above.some((e) => !e.classList.contains("arrow")))
					others++;
				else if (above.length)
					arrows++;
			}
		}
		return [others / 21, arrows / 21, [...names].join(" ")];
	};
	const within = (b, frame) => b.left >= frame.left - 1 && b.right <= frame.right + 1 &&
		b.top >= frame.top - 1 && b.bottom <= frame.bottom + 1;
	let n = 0;
	return [...document.querySelectorAll(".timeline-picture")].map((picture) => {
		picture.scrollIntoView({block: "center"});
		return [...picture.querySelectorAll(".piece-label, .who")].map((text) => {
			let b = text.getBoundingClientRect();
			if (b.top < 0 || b.bottom > innerHeight) {
				text.scrollIntoView({block: "center"});
				b = text.getBoundingClientRect();
			}
			const style = getComputedStyle(text), frame = picture.getBoundingClientRect();
			const ink = number(style.fill).slice(0, 3), y = b.y + b.height / 2;
			const seam = style.paintOrder.startsWith("stroke") && parseFloat(style.strokeWidth) >= 2;
			const spots = seam ? [number(style.stroke).slice(0, 3)]
				: [b.x + 1, b.x + b.width / 2, b.right - 1].map((x) => behind(text, x, y));
			const [covered, crossed, above] = over(text, b, picture);

			text.dataset.label = n;
			return {id: n++, text: text.textContent, who: text.classList.contains("who"),
				pixels: parseFloat(style.fontSize) * b.height / text.getBBox().height,
				seen: b.width > 0 && style.visibility === "visible" && Number(style.opacity) === 1,
				inside: within(b, frame) && within(b, picture.parentNode.getBoundingClientRect()) &&
					b.left >= 0 && b.right <= document.documentElement.clientWidth,
				covered, crossed, above, contrast: Math.min(...spots.map((spot) => contrast(ink, spot)))};
		});
	});
})()"""

LEAST_PIXELS, LEAST_CONTRAST = 10, 4.5
MOST_CROSSED = 0.3  # of a label, by arrows


def readable(label):
    """What is wrong with it, "" if nothing."""
    for wrong, what in ((not label["seen"], "is not shown"), (not label["inside"], "is cut off"),
                        (label["pixels"] < LEAST_PIXELS, "is too small"), (label["covered"] > 0, "is covered"),
                        (label["crossed"] > MOST_CROSSED, "lies below an arrow"),
                        (label["contrast"] < LEAST_CONTRAST, "has too little contrast")):
        if wrong:
            return what
    return ""


def png_rows(data):
    """Rows of (r, g, b) of a PNG with 8 bits a channel, as the browser writes it."""
    at, packed, wide, kind = 8, b"", 0, 0
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        if name == b"IHDR":
            wide, _, _, kind = struct.unpack(">IIBB", data[at + 8:at + 18])
        elif name == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += 12 + size
    channels = {2: 3, 6: 4}[kind]
    raw, stride = zlib.decompress(packed), wide * channels
    before, rows = bytearray(stride), []
    for y in range(len(raw) // (stride + 1)):
        method, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            a = line[x - channels] if x >= channels else 0
            b, c = before[x], before[x - channels] if x >= channels else 0
            if method == 4:
                p = a + b - c
                near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, near if method == 4 else 0)[method]) & 255
        rows.append([tuple(line[x:x + 3]) for x in range(0, stride, channels)])
        before = line
    return rows


def light(rgb):
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in rgb))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def painted(page, label):
    """How many pixels of the label's letters are on the screen with enough contrast to what is there when
    the label is hidden, for each letter."""
    find = f"document.querySelector('[data-label=\"{label['id']}\"]')"
    # In the window: what lies beyond it is only painted after a layout of the whole page, which takes seconds.
    box = page.run(f"""(() => {{ const e = {find};
        e.scrollIntoView({{block: "center"}});
        const b = e.getBoundingClientRect();
        return [b.x + scrollX, b.y + scrollY, b.width, b.height]; }})()""")
    clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
    shots = []
    for shown in ("visible", "hidden"):
        page.run(f"{find}.style.visibility = {json.dumps(shown)}")
        shot = page.call("Page.captureScreenshot", format="png", clip=clip)["data"]
        shots.append(png_rows(base64.b64decode(shot)))
    page.run(f"{find}.style.visibility = ''")
    n = 0
    for row, blank in zip(*shots):
        for a, b in zip(row, blank):
            if a != b:
                low, high = sorted((light(a), light(b)))
                n += (high + 0.05) / (low + 0.05) >= LEAST_CONTRAST
    return n / max(1, len(label["text"].replace(" ", "")))
