# SPDX-License-Identifier: GPL-2.0-only
"""A guest event has the same time in every view of a recording: the text and JSON of `report events`, `query`, the
database, spans in CSV, chains, pairs, timelines of the page and the Perfetto trace.

Recordings of real guests and simulated ones, without and with losses, whose guest clocks are known to below a
microsecond or to 0.2 ms."""
import argparse
import bisect
import collections
import csv
import json
import os
import re
import sqlite3
import sys
import tempfile

import pftrace
from test_views import SLEW, Wrong, page_of, run, want

STORED = ("bed-a", "bed-a-stacks", "bed-b-migration", "quickstart", "sim-interrupt-loss", "sim-irqs",
          "sim-lock", "sim-mixture-loss")
SIMULATED = (("interrupt_lost", 1, 0, 1), ("timer_late", 2, 0, 1), ("guest_irq_storm", 3, 0.05, 1),
             ("vm_paused.signal", 4, 0.3, 1), ("decoy.server", 5, 0, 3))
RAW, BOOTTIME = 5, 6  # numbers of clocks in a trace
PAIRS = "guest:irq:softirq_entry", "guest:irq:softirq_exit"
NEEDED = 20000  # times compared


class Recording:
    """The times of a recording's events as `query` has them, and what is compared with them."""

    def __init__(self, program, path, folder):
        self.program, self.path, self.folder, self.compared = program, path, folder, 0
        self.events = self.rows("SELECT t_ns, side, event, cpu, vm FROM events")
        self.times = collections.defaultdict(set)  # by (VM, guest CPU), by VM, by side
        self.entries = collections.defaultdict(set)  # by VM
        for e in self.events:
            self.times[e["side"]].add(e["t_ns"])
            if e["side"] == "guest":
                self.times[e["vm"], e["cpu"]].add(e["t_ns"])
                if e["event"].endswith("_entry"):
                    self.entries[e["vm"]].add(e["t_ns"])

    def rows(self, sql):
        return json.loads(run(self.program, "query", self.path, sql, "--format", "json").stdout)

    def table(self, *words):
        return json.loads(run(self.program, "report", self.path, *words, "--top", 0, "--format", "json").stdout)["rows"]

    def exported(self, kind):
        """The file, and what `export` said."""
        path = os.path.join(self.folder, "times." + kind)
        return path, run(self.program, "export", self.path, "--to", kind, "-o", path).stderr

    def known(self, what, times, events):
        wrong = set(times) - events
        want(not wrong, f"{what} at {sorted(wrong)[:3]}: no event has this time ({len(wrong)} of {len(times)})")
        self.compared += len(times)


def lists_check(r):
    """`report events` and the database have the events of `query`."""
    expected = sorted(e["t_ns"] for e in r.events)
    lines = run(r.program, "report", r.path, "events", "-e", "*:*", "--top", 0, "--format", "json").stdout
    want(sorted(json.loads(line)["t_ns"] for line in lines.splitlines()) == expected, "`report events` has other times")
    path, _ = r.exported("sqlite")
    with sqlite3.connect(path) as db:
        want(sorted(row[0] for row in db.execute("SELECT t_ns FROM events")) == expected, "the database has other times")
    r.compared += 2 * len(expected)


def spans_check(r):
    """Spans of interrupts begin and end with events; returns the spans by kind, VM and guest CPU."""
    spans = collections.defaultdict(list)
    with open(r.exported("csv")[0], newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            spans[row["kind"], row["vm"], int(row["cpu"])].append(
                (int(row["begin_ns"]), int(row["end_ns"]), row["whole"]))
    for (kind, vm, cpu), rows in spans.items():
        if kind == "interrupt":
            whole = [edge for begin, end, is_whole in rows if is_whole == "yes" for edge in (begin, end)]
            r.known(f"VM {vm}, CPU {cpu}: an interrupt in CSV", whole, r.times[vm, cpu])
    return spans


def joins_check(r):
    """Handlers of chains and both ends of pairs."""
    for row in r.table("slowest", "--than", "1us"):
        if row["latency_ns"] is not None:
            r.known("the handler of a chain", [row["begin_ns"] + row["latency_ns"]], r.entries[row["vm"]])
    for row in r.rows(f"SELECT vm, begin_ns, end_ns, from_cpu FROM pairs('{PAIRS[0]}', '{PAIRS[1]}', 'cpu')"):
        r.known("a pair", [row["begin_ns"], row["end_ns"]], r.times[row["vm"], row["from_cpu"]])


def page_check(r, spans):
    """Rows of guest CPUs in timelines that show every event."""
    page = page_of(r.program, r.path)
    base = page["report"]["begin_ns"]
    for number, scene in enumerate(page["incident_scenes"]):
        if scene is None or scene < 0 or page["scenes"][scene]["grain_ns"]:
            continue
        vm = page["report"]["incidents"][number]["vm"]
        for row in page["scenes"][scene]["rows"]:
            if row["kind"] != "guest":
                continue
            pieces, t, edges = row["pieces"], base + page["scenes"][scene]["begin"], []
            for at in range(0, len(pieces), 6):
                t += pieces[at]
                edges += [t, t + pieces[at + 1]] if pieces[at + 2] >= 0 else []
                t += pieces[at + 1]
            own = {edge for span in spans["guest_cpu", vm, row["number"]] for edge in span[:2]}
            r.known(f"the timeline of stall {number + 1}, guest CPU {row['number']}", edges[1:-1], own)


def on_one_clock(trace, times):
    """times: (time of the trace, what, ascending times that it may be), in the recording's time. Each must be one of
    them. NTP slews the trace's clock against that of the recording, so only the time since one before is compared."""
    raw, boot = trace.clocks[RAW], trace.clocks[BOOTTIME]
    for t, what, events in sorted(times, key=lambda x: x[0]):
        near, off = raw + (t - boot), 2 + SLEW * abs(t - boot)
        low, high = bisect.bisect_left(events, near - off), bisect.bisect_right(events, near + off)
        want(low < high, f"{what} of the trace at {t}, {near} of the recording: the next events are at "
                         f"{events[max(low - 1, 0):low + 1]}")
        if high - low == 1:
            raw, boot = events[low], t


def trace_check(r, spans):
    """Switches, wake-ups and interrupts of guests; the arrows' steps are the host's events."""
    path, said = r.exported("perfetto")
    trace, times = pftrace.Trace(path), []
    ascending = {key: sorted(values) for key, values in r.times.items()}
    machines = {int(number): vm for number, vm in re.findall(r"machine (\d+) is VM (.*?):", said)}
    for rows in (trace.switches, trace.wakings):
        for (machine, cpu), events in rows.items():
            if machine:
                times += [(e[0], f"VM {machines[machine]}, CPU {cpu}: an event of the schedule",
                           ascending.get((machines[machine], cpu), [])) for e in events]
    interrupts = 0
    for track in trace.events:
        found = re.fullmatch(r"VM (.*): interrupts/CPU (\d+)", trace.path(track))
        if not found:
            continue
        vm, cpu = found[1], int(found[2])
        begins, ends = (sorted(span[i] for span in spans["interrupt", vm, cpu]) for i in (0, 1))
        for s in trace.slices(track):
            times += [(s.begin, f"VM {vm}, CPU {cpu}: {s.name}", begins), (s.end, f"the end of {s.name}", ends)]
            interrupts += 1
    want(interrupts == sum(len(rows) for key, rows in spans.items() if key[0] == "interrupt"),
         f"{interrupts} interrupts in the trace, other ones in CSV")
    for steps in trace.flows().values():
        times += [(t + trace.arguments.get((track, t), {}).get("later_by_ns", 0), f"{name} of an arrow",
                   ascending["host"]) for t, track, name, _ in steps[:-1]]
    on_one_clock(trace, times)
    r.compared += len(times)
    if interrupts > 100:
        moved_check(trace, times)
    return len(trace.flows())


def moved_check(trace, times):
    """One interrupt that is moved is found."""
    at = max(i for i, (_, what, _) in enumerate(times) if what.startswith("the end of"))
    moved = times[:at] + [(times[at][0] + 300, *times[at][1:])] + times[at + 1:]
    try:
        on_one_clock(trace, moved)
    except Wrong:
        return
    raise Wrong("a time that is 300 ns off is not found")


def recordings(program, folder, data):
    for name in STORED:
        yield name, os.path.join(data, name + ".vcs")
    for scenario, seed, loss, vms in SIMULATED:
        path = os.path.join(folder, "run.vcs")
        run(program, "simulate", scenario, "--seed", seed, "--loss", loss, "--vms", vms, "-o", path)
        yield scenario, path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    parser.add_argument("--data", required=True, help="the folder of the recordings")
    a = parser.parse_args()
    if run(a.vcpuscope, "query", os.path.join(a.data, "sim-lock.vcs"), "SELECT 1", codes=(0, 3)).returncode:
        print("skipped: this build has no SQLite")
        return 77
    bad, compared, arrows = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="vcpuscope-times.") as folder:
        for name, path in recordings(a.vcpuscope, folder, a.data):
            try:
                r = Recording(a.vcpuscope, path, folder)
                lists_check(r)
                spans = spans_check(r)
                joins_check(r)
                page_check(r, spans)
                arrows += trace_check(r, spans)
                compared += r.compared
            except (Wrong, pftrace.BadTrace) as e:
                bad.append(f"{name}: {e}")
    print("\n".join(bad))
    print(f"{compared} times compared, {arrows} arrows, {len(bad)} recordings wrong")
    return bool(bad or compared < NEEDED or not arrows)


if __name__ == "__main__":
    sys.exit(main())
