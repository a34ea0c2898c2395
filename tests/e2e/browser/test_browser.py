#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the HTML report and the flame graphs in a headless Chromium, from disk. They draw without an error
message, load nothing, and zoom, search, hover and reset work. Nothing is cut off or overlaps at 1280 and 2560
pixels, light and dark. Names that contain markup cannot leave their place.

Leaves the pages and screenshots in the output folder. With VCPUSCOPE_TEST_FULL=1, the page of eight VMs with
32 stalls is tested in both colours at both widths, otherwise in one of each. Pages of more than 20,000 pixels
have full screenshots then, otherwise screenshots of their top. Exit status: 0 pass, 1 fail, 77 no Chromium.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import browser as devtools  # noqa: E402
import labels  # noqa: E402
import make_pictures  # noqa: E402
import many_vms  # noqa: E402
sys.path.insert(0, str(HERE.parents[1] / "sim"))
import test_views  # noqa: E402

FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
LONG = 20000  # pixels
CTRL = 2
HOSTILE = ["</script><b>", "<img onerror=", "\"'`&amp;&lt;", "]]><!-- -->", "${alert(1)}",
           "\\u003cscript>", "javascript:x()"]
# Drawn spelled out: a newline, an escape sequence, a change of direction.
SPELLED = ["a\\n", "\\u{1b}", "\\u{202e}"]

# What is cut off or lies over something else. Tables that scroll may be wider than the page.
LAYOUT = """(() => {
	const wrong = [], wide = document.documentElement.clientWidth;
	const name = e => e.tagName + "." + (e.getAttribute("class") || "") + " " +
		(e.textContent || "").slice(0, 40);

	if (document.documentElement.scrollWidth > wide)
		wrong.push("the page is " + document.documentElement.scrollWidth + " wide");
	for (const e of document.querySelectorAll("body *")) {
		const b = e.getBoundingClientRect();
		if (!b.width || !b.height || e.closest(".scroll, .tip, script, noscript"))
			continue;
		if (b.right > wide + 1 || b.left < -1)
			wrong.push("out of the page: " + name(e));
	}
	for (const picture of document.querySelectorAll("svg")) {
		const frame = picture.getBoundingClientRect();
		const texts = [...picture.querySelectorAll("text")].map(e => [e, e.getBoundingClientRect()])
			.filter(([, b]) => b.width);
		for (const [e, b] of texts) {
			if (b.left < frame.left - 1 || b.right > frame.right + 1 ||
			    b.top < frame.top - 1 || b.bottom > frame.bottom + 1)
				wrong.push("out of its picture: " + name(e));
		}
		for (let i = 0; i < texts.length; i++) {
			for (let k = i + 1; k < texts.length; k++) {
				const a = texts[i][1], b = texts[k][1];
				const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
				const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
				if (x > 2 && y > 4)
					wrong.push("overlap: " + name(texts[i][0]) + " / " + name(texts[k][0]));
			}
		}
	}
	return wrong.slice(0, 20);
})()"""

# Everything that is operated or read out has a name.
NAMELESS = """[...document.querySelectorAll("button, a, input, svg[role], [role=region], summary")]
	.filter(e => !(e.textContent.trim() || e.getAttribute("aria-label") ||
		(e.labels && e.labels.length))).map(e => e.outerHTML.slice(0, 80))"""


class Failed(Exception):
    pass


def expect(what, condition, seen=""):
    if not condition:
        raise Failed(f"{what}{': ' if seen != '' else ''}{seen}")


def quiet(page, what):
    expect(f"{what}: the console is silent", not page.complaints, page.complaints)
    loaded = [url for url in page.requests if not url.startswith("file:")]
    expect(f"{what}: nothing is loaded", not loaded, loaded)


def keep(page, path):
    """A screenshot to look at."""
    if not FULL and page.run("document.documentElement.scrollHeight") > LONG:
        page.run("scrollTo(0, 0)")
        page.screenshot(path)
    else:
        page.screenshot(path, full=True)


class Files:
    """The pages under test, made from recordings that are made here."""

    def __init__(self, build, out):
        self.program = build / "host-collector/vcpuscope"
        self.hostile_scene = build / "tests/e2e/browser/hostile_scene"
        self.out = out
        out.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments):
        done = subprocess.run([str(a) for a in arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        # 5: a report was made, and cannot tell whether there was a stall.
        expect(f"{' '.join(map(str, arguments[:2]))} succeeds", done.returncode in (0, 5), done.stderr)

    def simulated(self, scenario, name, *more):
        path = self.out / f"{name}.vcs"
        self.run(self.program, "simulate", scenario, *more, "-o", path)
        return path

    def report(self, recording):
        path = recording.with_suffix(".html")
        self.run(self.program, "report", recording, "--format", "html", "-o", path)
        return path

    def flame(self, name, *arguments):
        path = self.out / f"{name}.svg"
        self.run(self.program, "flame", *arguments, "-o", path)
        return path


# ---- the report ----

def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


ALL_WIDTHS = [(width, shade) for width in (400, 1280, 2560) for shade in ("light", "dark")]


PAINTED = 1.5  # pixels of enough contrast that a letter has at least, on an average


def culprit_named(page, path, what, names, ways=ALL_WIDTHS):
    """In the picture of incident n one of names[n] can be read without hovering, and as the label of
    a bar where `bar` is wanted: at every width, in both colours. Leaves screenshots."""
    for width, shade in ways:
        page.size(width, 1000, shade == "dark")
        page.open(path)
        page.run("document.querySelectorAll('details.incident').forEach(d => d.open = true)")
        page.settle()
        keep(page, path.with_name(f"{path.stem}-{width}-{shade}.png"))
        pictures = page.run(labels.LABELS)
        where = f"{what} at {width}, {shade}"
        expect(f"{where}: each incident has a picture", len(pictures) >= len(names), len(pictures))
        for label in (label for drawn in pictures for label in drawn):
            wrong = labels.readable(label)
            expect(f"{where}: '{label['text']}' can be read", not wrong, (wrong, label))
        for drawn, (name, bar) in zip(pictures, names):
            found = [label for label in drawn if name in label["text"] and (label["who"] or bar)]
            expect(f"{where}: {name} is named", found, drawn)
            # A narrow picture has no room for the name in the bar.
            if bar and width >= 1280:
                expect(f"{where}: {name}'s bar is named",
                       [label for label in found if not label["who"]], drawn)
            for label in found:
                ink = labels.painted(page, label)
                expect(f"{where}: '{label['text']}' is on the screen", ink >= PAINTED, ink)
        wrong = page.run(LAYOUT)
        expect(f"{where}: all in its place", not wrong, wrong)
    page.size(1280, 1000)
    quiet(page, what)


def pictures_name_the_culprit(page, files):
    recording = files.out / "quickstart.vcs"
    shutil.copy(HERE.parents[1] / "data/quickstart.vcs", recording)
    culprit_named(page, files.report(recording), "quickstart",
                  [("vm-stopper", False), ("cpu-hog", True), ("guest-spinner", True)])
    culprit_named(page, files.report(files.simulated("lock_holder_preempted.spin", "lock-holder")),
                  "lock_holder_preempted", [("hog", True)])
    culprit_named(page, files.report(files.simulated("interrupt_lost", "lost")), "interrupt_lost",
                  [("raised by vhost-4100 (4150)", False)])
    incident_has_its_parts(page, files.out / "quickstart.html")


FROM_1280 = [way for way in ALL_WIDTHS if way[0] >= 1280]
# Of the page with most incidents, hundreds of labels are looked at: each width and each colour once.
OF_MOST = FROM_1280 if FULL else [(1280, "light"), (2560, "dark")]


def many_vms_are_readable(page, files):
    """Eight VMs of sixteen vCPUs: one stall among healthy VMs, and 32 stalls in all of them."""
    many = ("--vms", "8", "--vcpus", "16")
    for scenario, name, culprit in (("lock_holder_preempted.spin", "many-lock", ("hog (5300)", True)),
                                    ("interrupt_lost", "many-lost", ("raised by vhost-4100 (4150)", False)),
                                    ("guest_spin.preempt_off", "many-spin", ("batch (701)", True))):
        path = files.report(files.simulated(scenario, name, *many))
        culprit_named(page, path, f"{scenario} in 8 VMs of 16 vCPUs", [culprit], FROM_1280)
    lock = files.out / "many-lock.html"
    page.open(lock)
    drawn = page.run("[...document.querySelectorAll('.timeline .piece-label')].map(e => e.textContent)")
    expect("the lock's owner is drawn: its vCPU waited", "runnable, pCPU held by hog (5300)" in drawn, drawn)
    open_vms = page.run("[...document.querySelectorAll('#latency details.figures[open] h3')]"
                        ".map(e => e.textContent)")
    expect("of 8 VMs the latencies of the one that stalled are open", open_vms == ["VM simulated"], open_vms)
    looks(page, lock, files.out, "many-lock-open", ((1280, "light"), (2560, "dark")))
    many_vms.write(files.out / "many.txt", 8, 16)
    files.run(files.program, "import", "--host", files.out / "many.txt", "-o", files.out / "many.vcs")
    many = files.report(files.out / "many.vcs")
    page.open(many)
    names = page.run("report.incidents.map(culprit_text)")
    expect("8 VMs have 32 stalls", len(names) == 32, names)
    drawn = page.run("data.incident_scenes.map((s, i) => s < 0 ? -1 : i).filter(i => i >= 0)")
    culprit_named(page, many, "8 VMs of 16 vCPUs", [(names[i], True) for i in drawn], OF_MOST)
    looks(page, many, files.out, "many-open", ((1280, "light"), (1280, "dark")))
    incidents_are_found(page, many)


def incidents_are_found(page, path):
    """Among many, by their words; a table's rows, too."""
    page.open(path)
    shown = "document.querySelectorAll('details.incident:not([hidden])').length"
    all_of_them = page.run(shown)
    page.run("document.querySelector('#incidents .filter input').focus()")
    page.call("Input.insertText", text="vm3 hog-2-6")
    page.settle()
    expect("a filter finds the incident", all_of_them == 32 and page.run(shown) == 1, page.run(shown))
    page.run("location.hash = '#incident-0'")
    page.settle()
    expect("a link shows what the filter hides", page.run(shown) == 2)
    page.run("""(() => { const s = document.querySelector('#incidents .filter select');
        s.value = 'culprit'; s.dispatchEvent(new Event('change')); })()""")
    order = page.run("""[...document.querySelectorAll('details.incident')].map(d =>
        report.incidents[Number(d.id.slice(9))].culprits[0].comm)""")
    expect("they are ordered by culprit", order == sorted(order), order)
    rows = "document.querySelectorAll('#table-culprits tbody tr').length"
    every = page.run(rows)
    page.run("document.querySelector('#table-culprits .filter input').focus()")
    page.call("Input.insertText", text="hog-7")
    page.settle()
    expect("a filter finds rows", 0 < page.run(rows) < every, page.run(rows))
    opened = page.run("""[...document.querySelectorAll('#figures details.figures[open]')].map(d => d.id)""")
    expect("only victims and culprits are open", set(opened) <= {"table-tasks", "table-culprits"}, opened)
    quiet(page, "filters")


def incident_has_its_parts(page, path):
    """Arrows of its own only, unless asked for; its flame graph opens in place and sums to its length."""
    page.open(path)
    arrows = "document.querySelector('.timeline').querySelectorAll('.arrow').length"
    own = page.run(arrows)
    page.run("""(() => { const s = document.querySelector('.timeline select');
        s.value = 'all'; s.dispatchEvent(new Event('change')); })()""")
    expect("only the incident's arrows are drawn at first", own < page.run(arrows),
           (own, page.run(arrows)))
    steps = page.run("document.querySelector('#incident-0').textContent")
    command = "vcpuscope export quickstart.vcs --to perfetto --around 1 -o stall-1.pftrace"
    numbered = page.run("report.incidents[0].number !== undefined")
    expect("it says what to do next", "Next steps" in steps and (command in steps) == numbered, steps)
    page.run("document.querySelector('details.flame').open = true")
    page.settle()
    expect("its flame graph opens in place",
           page.run("document.querySelectorAll('.flame-picture text').length") > 2)
    off = page.run("""(() => { const i = report.incidents[0];
        const view = new Timeline(data.scenes[data.incident_scenes[0]], {names: data.names,
            begin: i.begin_ns - report.begin_ns, end: i.end_ns - report.begin_ns, culprits: [],
            vcpu: i.vcpu, guest_cpu: i.guest_cpu, error: '', error_ns: 0, title: ''});
        const sums = {};
        const walk = (node) => { if (!node.children.size) return;
            for (const c of node.children.values()) {
                if (c.name.startsWith('vCPU ')) {
                    const s = c.name.slice(5).split(':')[0];
                    sums[s] = (sums[s] || 0) + c.ns;
                } else walk(c);
            } };
        walk(incident_stacks(view, i));
        return Object.entries(i.breakdown_ns).filter(([s, ns]) => Math.abs((sums[s] || 0) - ns) > 1000)
            .map(([s, ns]) => [s, ns, sums[s] || 0]); })()""")
    expect("its flame graph has the breakdown's times", not off, off)
    quiet(page, "incident")


EVERY_LOOK = ((1280, "light"), (1280, "dark"), (2560, "light"), (2560, "dark"))


# Tables with names of a usual length need no scrolling.
SCROLLS = """[...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth)
	.map(e => e.getAttribute("aria-label"))"""


def looks(page, path, out, name, ways=EVERY_LOOK, fits=True):
    """At both widths, in both colours. fits: so do its tables."""
    paper = set()
    for width, shade in ways:
        page.size(width, 1000, shade == "dark")
        page.open(path)
        page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        page.settle()
        wrong = page.run(LAYOUT)
        keep(page, out / f"{name}-{width}-{shade}.png")
        expect(f"{name} at {width}, {shade}: all in its place", not wrong, wrong)
        scroll = page.run(SCROLLS)
        expect(f"{name} at {width}, {shade}: its tables fit", not (fits and scroll), scroll)
        paper.add(page.run("getComputedStyle(document.body).backgroundColor"))
    expect(f"{name}: light and dark differ", len(paper) == 2, paper)
    page.size(1280, 1000)


def timeline_works(page, path):
    page.open(path)
    before = text(page, ".timeline .range")
    x, y, width, height = page.box(".timeline-picture")
    page.hover(x + width * 0.6, y + height - 12)
    tip = text(page, ".tip")
    expect("hovering tells what is there", re.search(r"(vCPU|pCPU|guest CPU) \d", tip), tip)
    expect("the guest's rows tell the clock's error", "guest times \u00b1" in tip, tip)
    page.drag(x + width * 0.4, y + 50, x + width * 0.6, y + 50)
    zoomed = text(page, ".timeline .range")
    expect("dragging zooms", zoomed != before, zoomed)
    page.run("document.querySelector('.timeline-picture').focus()")
    page.key("+", 187, text="+")
    deeper = text(page, ".timeline .range")
    expect("a key zooms", deeper != zoomed, deeper)
    page.key("ArrowRight", 39)
    expect("a key moves", text(page, ".timeline .range") != deeper)
    page.key("ArrowDown", 40)
    expect("the keyboard reads pieces out", "CPU" in text(page, ".timeline .status"))
    page.key("0", 48, text="0")
    expect("a key resets", text(page, ".timeline .range") == before)
    page.run("document.querySelector('.controls button').click()")
    expect("a button zooms", text(page, ".timeline .range") != before)
    expect("the incident is framed", page.run("document.querySelectorAll('.timeline .window').length"))
    page.run("""document.querySelector('.timeline-picture')
        .dispatchEvent(new MouseEvent('dblclick', {bubbles: true}))""")
    expect("a double click resets", text(page, ".timeline .range") == before)
    quiet(page, "timeline")


def tables_sort(page, path):
    page.open(path)
    column = """[...document.querySelector('#table-tasks tbody').rows].map(r => r.cells[%d].textContent)"""
    page.run("document.querySelector('#table-tasks').open = true")
    page.run("document.querySelector('#table-tasks th:nth-child(2) button').click()")
    down = [int(v) for v in page.run(column % 1)]
    page.run("document.querySelector('#table-tasks th:nth-child(2) button').click()")
    up = [int(v) for v in page.run(column % 1)]
    expect("a click sorts a table", down == sorted(down, reverse=True) and up == sorted(up), down)
    expect("how it is sorted is told",
           page.run("document.querySelector('#table-tasks [aria-sort]').ariaSort") == "ascending")


def latencies_hover(page, path):
    page.open(path)
    x, y, width, height = page.box(".latency-picture svg")
    page.hover(x + width - 100, y + height / 2)
    tip = text(page, ".tip")
    expect("hovering a histogram counts", "in all" in tip, tip)


PAPER = 718  # A4 between its margins, pixels


def prints(page, path):
    page.size(PAPER, 1000)
    page.open(path)
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.call("Emulation.setEmulatedMedia", media="print")
    page.settle()
    wide = page.run("document.documentElement.scrollWidth")
    expect("what is printed is as wide as the paper", wide <= PAPER, wide)
    page.call("Emulation.setEmulatedMedia", media="")
    page.size(1280, 1000)
    pdf = page.call("Page.printToPDF", printBackground=True)["data"]
    expect("it prints", len(pdf) > 20000, len(pdf))


def reads_without_scripts(page, path):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(path, draws=False)
    document = page.call("DOM.getDocument", depth=-1)["root"]
    found = page.call("DOM.querySelector", nodeId=document["nodeId"], selector="noscript pre")
    html = page.call("DOM.getOuterHTML", nodeId=found["nodeId"])["outerHTML"]
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    expect("without scripts there is the text", "denied" in html and "vCPU" in html, html[:200])


def names_stay(page, path):
    page.open(path)
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.settle()
    shown = page.run("document.getElementById('page').textContent")
    for name in HOSTILE:
        expect("a hostile name is shown as it is", name in shown, name)
    for name in SPELLED:
        expect("what would steer is spelled out", name in shown, name)
    expect("no name became an element", page.run("document.querySelectorAll('b, img').length") == 0)
    quiet(page, "hostile names")


def figures_as_in_text(page, path):
    """The page prints a duration as the text report does (util/duration.c)."""
    page.open(path)
    lengths = [n * 10 ** k for k in range(11) for n in (0, 1, 5, 15, 25, 35, 45, 125, 225, 9995, 99949)]
    lengths += [999499, 999500, 2500, 3500, 2250000, 2350000, 99949999, 99950000, 9999500000]
    printed = page.run(f"{json.dumps(lengths)}.map(duration)")
    wrong = [(ns, shown, test_views.duration(ns)) for ns, shown in zip(lengths, printed)
             if shown != test_views.duration(ns)]
    expect("durations are those of the text", not wrong, wrong)


def report_works(page, files):
    story = files.report(files.simulated("vcpu_not_scheduled.crowd", "story", "--seed", "3"))
    page.open(story)
    expect("the answer is on top", "stall" in text(page, ".answer"), text(page, ".answer"))
    expect("every control has a name", not page.run(NAMELESS), page.run(NAMELESS))
    looks(page, story, files.out, "report")
    timeline_works(page, story)
    figures_as_in_text(page, story)
    tables_sort(page, story)
    latencies_hover(page, story)
    prints(page, story)
    quiet(page, "report")
    reads_without_scripts(page, story)
    recording = files.out / "hostile.vcs"
    files.run(files.hostile_scene, recording, 16)
    hostile = files.report(recording)
    names_stay(page, hostile)
    looks(page, hostile, files.out, "hostile", ((1280, "light"), (2560, "dark")), fits=False)
    page.open(hostile)
    few = page.run("document.querySelector('.timeline').textContent")
    expect("of 16 vCPUs the incident's is drawn", "guest CPU 0" in few and "guest CPU 15" not in few)
    page.run("document.querySelector('.timeline .rows').click()")
    rows = page.run("document.querySelector('.timeline').textContent")
    expect("all of 16 vCPUs are drawn", "guest CPU 15" in rows and "not drawn" not in rows)
    calm = files.report(files.simulated("decoy.idle", "calm"))
    page.open(calm)
    expect("no stall is said to be none", "No stall" in text(page, ".answer"))
    quiet(page, "calm report")


JOBS = "jobs[slot]=host:jobs:job_issue..guest:jobs:job_done"


def pairs_are_drawn(page, files):
    """Chosen events and pairs: rows of the timeline, with what they stand for; a heat map. At every width, in both
    colours."""
    recording = files.simulated("vcpu_not_scheduled.crowd", "jobs", "--jobs", "--seed", "3")
    path = recording.with_suffix(".html")
    files.run(files.program, "report", recording, "--format", "html", "--pair", JOBS, "-o", path)
    looks(page, path, files.out, "jobs", ((400, "light"), (400, "dark"), (1280, "light"), (1280, "dark")), fits=False)
    page.open(path)
    expect("each pair has a heat map", page.run("document.querySelectorAll('#pairs .heat').length") and
           "jobs: host:jobs:job_issue" in text(page, "#pairs"), text(page, "#pairs")[:200])
    expect("every control has a name", not page.run(NAMELESS), page.run(NAMELESS))
    rows = page.run("[...document.querySelectorAll('.timeline')][0].querySelectorAll('.lane-event, .lane-pair').length")
    labels_seen = text(page, ".timeline-picture")
    expect("events and pairs have rows", rows > 4 and "job_done" in labels_seen and "jobs" in labels_seen, labels_seen)
    x, y, _, _ = page.box(".timeline-picture")
    at = page.run("""document.querySelector('.timeline-picture path.lane-pair').getAttribute('d').slice(1)
        .split('h')[0].split(' ').map(Number)""")
    page.hover(x + at[0] + 1, y + at[1] + 2)
    tip = text(page, ".tip")
    expect("hovering a pair tells its length", "jobs" in tip and " for " in tip or "in all, the longest" in tip, tip)
    drawn = page.run("""(() => { const path = document.querySelector('.timeline-picture path.lane-pair');
        return path.getAttribute('d').split('M').length - 1; })()""")
    width = page.run("document.querySelector('.timeline-picture').getBoundingClientRect().width")
    expect("not more marks than pixels", drawn <= 3 * width, (drawn, width))
    quiet(page, "pairs")


# ---- flame graphs ----

FOLDED = """app;main;read_all;vfs_read_[k] 400
app;main;read_all;vfs_write_[k] 100
app;main;compute 300
app;idle_loop 150
</script><svg>;"quo'te"&lt<b>;]]> 50
"""


def visible(page):
    return page.run("""[...document.querySelectorAll('g.f')].filter(g => !g.classList.contains('gone')
        && !g.classList.contains('parent')).map(g => g.querySelector('title').textContent)""")


def frame_place(page, name):
    return page.run(f"""(() => {{ const g = [...document.querySelectorAll('g.f')].find(g =>
        g.querySelector('title').textContent.startsWith({json.dumps(name + " (")}));
        const b = g.querySelector('rect').getBoundingClientRect();
        return [b.x + b.width / 2, b.y + b.height / 2, b.width]; }})()""")


def matched(page):
    return text(page, "#matched").strip()


def graph_searches(page):
    page.key("f", 70, CTRL)
    expect("Ctrl-F opens a search", page.run("document.querySelectorAll('.find').length") == 1)
    page.call("Input.insertText", text="VFS_")
    page.settle()
    expect("case counts", matched(page) == "Matched: 0.0%", matched(page))
    page.key("i", 73, CTRL)
    expect("Ctrl-I ignores case", matched(page) == "Matched: 50.0%", matched(page))
    page.key("Enter", 13)
    expect("Enter closes the box", page.run("document.querySelectorAll('.find').length") == 0)
    painted = page.run("document.querySelectorAll('rect[fill=\"rgb(230,0,230)\"]').length")
    expect("what matches is painted", painted == 2, painted)
    expect("the URL holds the search", "s=VFS_" in page.run("location.href"))
    page.key("F3", 114)
    page.run("document.querySelector('.find').value = ''")
    page.call("Input.insertText", text="vfs_(")
    page.settle()
    expect("a wrong expression is shown as one",
           page.run("document.querySelectorAll('.find.bad').length") == 1)
    page.key("Escape", 27)
    expect("Escape ends the search", matched(page) == "", matched(page))
    # A frame and what is on it are not counted twice.
    page.run("search('read|vfs')")
    expect("nothing counts twice", matched(page) == "Matched: 50.0%", matched(page))
    page.run("search('')")


def graph_zooms(page, path, inwards):
    page.open(path)
    everything = len(visible(page))
    whole = frame_place(page, "all")[2]
    x, y, _ = frame_place(page, "read_all")
    page.hover(x, y)
    expect("hovering tells the weight", text(page, "#details") ==
           "Function: read_all (500 us, 50.00%)", text(page, "#details"))
    page.click(x, y)
    expect("a click zooms", abs(frame_place(page, "read_all")[2] - whole) < 1)
    names = [title.split(" (")[0] for title in visible(page)]
    expect("only what is above is left", sorted(names) == ["read_all", "vfs_read", "vfs_write"] or
           sorted(names) == ["read_all", "vfs_read_[k]", "vfs_write_[k]"], names)
    state = page.run("location.href")
    expect("the URL holds the frame", "x=" in state and "y=" in state, state)
    page.run("search('compute')")
    address = page.run("location.search")
    page.open(path, address)
    expect("the URL brings it back", abs(frame_place(page, "read_all")[2] - whole) < 1)
    expect("and the search", text(page, "#search") == "Reset Search")
    page.run("document.getElementById('unzoom').dispatchEvent(new MouseEvent('click'))")
    page.run("search('')")
    expect("reset shows all", len(visible(page)) == everything)
    page.key(*inwards)
    page.key(*inwards)
    page.key("Enter", 13)
    expect("keys zoom, too", len(visible(page)) < everything, visible(page))
    page.key("Escape", 27)
    expect("Escape resets", len(visible(page)) == everything)


def graphs_work(page, files):
    folded = files.out / "some.folded"
    folded.write_text(FOLDED)
    page.size(1280, 700)
    for name, more in (("flame", []), ("icicle", ["--inverted"]), ("reversed", ["--reverse"])):
        path = files.flame(name, folded, "--kind", "oncpu", *more)
        page.open(path)
        page.screenshot(files.out / f"{name}.png")
        quiet(page, name)
    graph_zooms(page, files.out / "flame.svg", ("ArrowUp", 38))
    graph_searches(page)
    quiet(page, "flame")
    graph_zooms(page, files.out / "icicle.svg", ("ArrowDown", 40))
    page.open(files.out / "flame.svg")
    titles = " ".join(visible(page))
    expect("hostile names are texts", "</script><svg>" in titles and "]]>" in titles, titles)
    expect("they became no element", page.run("document.querySelectorAll('svg').length") == 1)


def graphs_follow_the_window(page, files):
    """As wide as the window, dark where the window is; sleeping tasks are left out and that is said; what
    happened once is grey, and the picture says why."""
    once = files.simulated("vmm_lock", "once")
    wall = files.flame("wall", once)
    size = "[document.documentElement.getBoundingClientRect().width, document.documentElement.scrollWidth]"
    paper = "getComputedStyle(document.querySelector('#background stop')).stopColor"
    seen = {}
    for width, shade in ((1280, "light"), (1800, "dark"), (2560, "light")):
        page.size(width, 700, shade == "dark")
        page.open(wall)
        expect(f"at {width} it is as wide", page.run(size)[0] == width, page.run(size))
        seen[shade] = page.run(paper)
        frames = page.run("frames[0].rect.getAttribute('width')")
        expect("and so are its frames", abs(float(frames) - (width - 20)) < 1, frames)
        page.screenshot(files.out / f"wall-{width}-{shade}.png")
    expect("light and dark differ", len(set(seen.values())) == 2, seen)
    page.size(1280, 700)
    page.open(wall)
    everything = len(visible(page))
    page.size(1600, 700)
    expect("it follows a window that grows", page.run(size)[0] == 1600 and len(visible(page)) == everything)
    page.size(1280, 700)
    expect("sleeping tasks are left out, which is said", "sleeping tasks are left out" in
           text(page, "#subtitle") and not [t for t in visible(page) if "[task sleeping" in t])
    fixed = files.flame("fixed", once, "--width", "900", "--state", "all")
    page.open(fixed)
    expect("a width that is given stays", page.run(size)[0] == 900)
    expect("--state all shows who sleeps", [t for t in visible(page) if "[task sleeping" in t])
    quiet(page, "wall")
    steady = files.simulated("decoy.steady", "before-once")
    page.open(files.flame("once-diff", "--diff", steady, once))
    note = text(page, "#untestable")
    expect("a single stall cannot be significant, which is said", "in 1 of 20 slices" in note, note)
    quiet(page, "a single stall")


def readme_pictures_are_current(page, files):
    wrong = make_pictures.differing(files.program, page)
    expect("the pictures of README.md are those of today (make_pictures.py makes them)", not wrong, wrong)


def differences_work(page, files):
    calm = files.simulated("decoy.steady", "calm-1", "--for", "8s", "--seed", "2")
    same = files.simulated("decoy.steady", "calm-2", "--for", "8s", "--seed", "2")
    slow = files.simulated("decoy.steady", "slow", "--for", "8s", "--seed", "2", "--shift",
                           "handler=60%")
    changed = {}
    for name, other in (("self", same), ("diff", slow)):
        path = files.flame(name, "--diff", calm, other, "--kind", "oncpu")
        page.open(path)
        page.screenshot(files.out / f"{name}.png")
        quiet(page, name)
        changed[name] = [t for t in visible(page)
                         if not t.endswith(("not significant)", "too few to be significant)"))]
        grey = page.run("document.querySelectorAll('g.f rect[fill=\"rgb(210,210,210)\"]').length")
        expect(f"{name}: grey is what is not significant", grey + len(changed[name]) ==
               len(visible(page)))
    expect("a recording does not differ from itself", not changed["self"], changed["self"])
    expect("the injected change is found", changed["diff"], "no frame is coloured")
    for title in changed["diff"]:
        expect("and nothing else", title.startswith("[interrupt "), title)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True, type=pathlib.Path)
    out = parser.parse_args().out
    build = pathlib.Path(os.environ.get("VCPUSCOPE_BUILD", HERE.parents[2] / "build"))
    if not devtools.chromium():
        print("e2e_browser: skipped: no chromium; apt-get install chromium")
        return 77
    files = Files(build, out)
    with devtools.Browser() as page:
        for test in (report_works, pairs_are_drawn, pictures_name_the_culprit, many_vms_are_readable, graphs_work, graphs_follow_the_window,
                     differences_work, readme_pictures_are_current):
            try:
                test(page, files)
            except (Failed, devtools.BrowserError) as failure:
                page.screenshot(out / "failed.png")
                print(f"{test.__name__}: {failure}", file=sys.stderr)
                return 1
            print(f"{test.__name__}: right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
