# SPDX-License-Identifier: GPL-2.0-only
"""Whatever a recording holds, its reports say what they rest on, and all of them say the same.

Every figure that several of text, page, JSON, CSV, metrics and Perfetto trace show is the same in all of
them: for 30 recordings, ten of them real (whole, or what is left after a cut or without a piece).

A real recording and simulated ones, whole, with 1 to 99 % of their events lost, cut, and with pieces
missing. Of each: a negative answer states its coverage and has one that supports it; text, page and
JSON agree; no value depends on --than; where an interrupt's time went is what the vCPU's spans say.
With VCPUSCOPE_TEST_FULL=1 every scenario at every loss; otherwise every second of these, the others the next day.
"""
import argparse
import collections
import csv
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import pftrace

LOSSES = (0, 0.01, 0.05, 0.2, 0.5, 0.9, 0.99)
SCENARIOS = ("decoy.idle", "vm_paused.signal", "interrupt_lost", "vcpu_not_scheduled.crowd")
NEEDED = 90
THANS = ("1us", "100us", "1ms", "20ms")
CHAIN_TABLES = ("chains", "delays", "slowest", "overdue")
PAGE_ROWS = 40
WORST_NS = 1000
# Guests that lie about their clock, and are found out late: a reading that trusts them at first says else.
LIES = (("lie.echo", 2), ("lie.stamps", 2), ("lie.stamps_some", 5))


# A table whose rows are written in every format.
TABLES = ("vcpu", "tasks", "exits", "irq", "steal")
# CLOCK_BOOTTIME, the time of the trace, is slewed against the recording's raw time by NTP: 500 ppm at
# most.
SLEW = 500e-6
# Tables whose rows have a VM.
NARROWED = ("vcpu", "tasks", "exits", "irq", "steal", "culprits", "halts", "delays", "chains", "slowest", "overdue",
            "ticks", "faults", "threads", "waits")
REAL = ("bed-a", "bed-a-stacks", "bed-b-migration", "quickstart")
FIGURE_SCENARIOS = ("vm_paused.signal", "vcpu_not_scheduled.realtime", "vmm_lock", "cgroup_throttled",
                    "storage_backend.pflash", "demand_paging.swap", "guest_spin.softirq", "guest_irq_storm",
                    "interrupt_lost", "timer_late", "lock_holder_preempted.spin", "ipi_target_preempted",
                    "mixture.storage_then_steal", "triple.storage_lock_steal", "decoy.server", "decoy.steal",
                    "migration", "split_lock")
SEVERAL = ("mixture.storage_then_steal", "interrupt_lost")
REAL_NEEDED, FIGURES_NEEDED = 10, 32


class Wrong(Exception):
    pass


def want(true, what):
    if not true:
        raise Wrong(what)


def run(program, *args, codes=(0,)):
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL)
    want(done.returncode in codes, f"{' '.join(map(str, args))}: exit code {done.returncode}: "
                                   f"{done.stderr[-300:]}")
    return done


def squeezed(text):
    return "".join(text.split())


def answers_check(report, code):
    """No negative without stated and sufficient coverage."""
    coverage = report["coverage"]
    want(coverage["needed_percent"] == NEEDED, coverage)
    want((code == 0) == coverage["supported"], f"exit code {code}, supported {coverage['supported']}")
    first, lines = report["headline"][0], report["headline"][1:]
    for v in report["vcpus"]:
        where = f"VM {v['vm']}, vCPU {v['vcpu']}"
        sides = [v["observed_ns"]] + [v["guest_observed_ns"]] * (v["guest_observed_ns"] is not None)
        enough = v["span_ns"] > 0 and all(100 * ns >= NEEDED * v["span_ns"] for ns in sides)
        stalled = any(not i["healthy"] and (i["vm"], i["vcpu"]) == (v["vm"], v["vcpu"])
                      for i in report["incidents"])
        expected = "stalls" if stalled else "cannot_tell" if not enough else \
            "no_stall" if v["guest_observed_ns"] is not None else "no_stall_by_host"
        want(v["answer"] == expected, f"{where}: {v['answer']} instead of {expected}: {v}")
        want(0 <= v["observed_ns"] <= v["span_ns"], f"{where}: {v}")
        want(0 <= (v["guest_observed_ns"] or 0) <= v["span_ns"], f"{where}: {v}")
        if expected == "cannot_tell":
            want(any("less than" in line and f"{v['vm']}" in line for line in lines),
                 f"{where}: nobody says that nothing can be told")
    answers = [v["answer"] for v in report["vcpus"]]
    want(coverage["supported"] == (bool(answers) and "cannot_tell" not in answers), answers)
    stalls = sum(not i["healthy"] for i in report["incidents"])
    if stalls:
        want(first.startswith(f"{stalls} stall"), first)
    elif not any(a != "cannot_tell" for a in answers):
        want(first.startswith("Cannot tell"), first)
    else:
        want(first.startswith("No stall"), first)
    for clock in report["clock"]:
        want(any(line.startswith(f"Observed of VM {clock['vm']}: ") for line in lines),
             f"of VM {clock['vm']} is not said how much was observed")


def page_of(program, recording):
    html = run(program, "report", recording, "--format", "html", codes=(0, 5)).stdout
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])


def views_check(program, recording):
    """The report, of which all views agree."""
    done = run(program, "report", recording, "--format", "json", codes=(0, 5))
    report = json.loads(done.stdout)
    answers_check(report, done.returncode)
    text = run(program, "report", recording, codes=(done.returncode,)).stdout
    head = squeezed(text.split("\n\n")[0])
    for line in report["headline"]:
        want(squeezed(line) in head, f"not in the text: {line}")
    page = page_of(program, recording)
    want(page["headline"] == report["headline"], "the page begins with other words")
    if not page["incidents_left_out"]:
        want(page["report"]["incidents"] == report["incidents"], "the page has other stalls")
    for table in CHAIN_TABLES:
        shown = next(t for t in page["tables"] if t["name"] == table)
        asked = json.loads(run(program, "report", recording, table, "--per", "vcpu", "--format", "json",
                               "--top", PAGE_ROWS).stdout)["rows"]
        want(shown["rows"] == [list(row.values()) for row in asked],
             f"{table}: the page has other figures")
    metrics_check(program, recording, report)
    return report


def metrics_check(program, recording, report):
    """The counters have the report's stalls."""
    page = run(program, "metrics", recording).stdout
    counted = collections.Counter()
    for vm, verdict, n in re.findall(r'(?m)^vcpuscope_incidents_total\{vm="([^"]*)",verdict="(\w+)"\} (\S+)$', page):
        counted[vm, verdict] += int(float(n))
    reported = collections.Counter((i["vm"], i["verdict"]) for i in report["incidents"] if not i["healthy"])
    want(+counted == reported, f"the metrics have {dict(+counted)}, the report {dict(reported)}")


def duration(ns):
    """As host-collector/util/duration.c."""
    us = ns / 1000
    return f"{us:.0f} us" if us < 1000 else f"{us / 1000:.1f} ms" if us < 1e5 else \
        f"{us / 1000:.0f} ms" if us < 1e7 else f"{us / 1e6:.1f} s"


def incidents_printed(text, report):
    """Every length and share of every incident that has a block of its own is in the text, at its precision.
    Each verdict has such a block; like ones may share it."""
    blocks = {squeezed(f"{i['verdict']} ({i['confidence']}) {duration(i['duration_ns'])}"
                       f"{' so far' * i['ongoing']}VM"): i
              for i in report["incidents"] if not i["healthy"]}
    shown = [i for head, i in blocks.items() if head in text]
    want({i["verdict"] for i in shown} == {i["verdict"] for i in blocks.values()}
         or any(i["confidence"] == "undetermined" for i in blocks.values()),
         f"the text has no block of {set(i['verdict'] for i in blocks.values())}")
    for i in shown:
        # A state with less than a hundredth of it has no line.
        lengths = [i["duration_ns"]] + [ns for ns in i["breakdown_ns"].values()
                                        if 100 * ns > i["duration_ns"]] + \
            [c["share_ns"] for c in i["culprits"][:1]]
        for ns in lengths:
            want(squeezed(duration(ns)) in text, f"{duration(ns)} of {i['verdict']} is not in the text")


def tables_agree(program, recording, page):
    """JSON and CSV of a table have the same cells; the page has them, too."""
    for name in TABLES:
        rows = json.loads(run(program, "report", recording, name, "--top", PAGE_ROWS, "--format",
                              "json").stdout)["rows"]
        lines = run(program, "report", recording, name, "--top", PAGE_ROWS, "--format", "csv").stdout
        cells = list(csv.DictReader(lines.splitlines()))
        cells = [c for c in cells if c.get("table", name) == name]
        want(len(cells) == len(rows), f"{name}: {len(cells)} rows in CSV, {len(rows)} in JSON")
        for row, line in zip(rows, cells):
            for key, value in row.items():
                if isinstance(value, int) and key in line:
                    want(line[key] == str(value), f"{name}: {key} is {value}, in CSV {line[key]}")
        shown = next(t for t in page["tables"] if t["name"] == name)
        want(len(shown["rows"]) == len(rows), f"{name}: {len(shown['rows'])} rows in the page, {len(rows)} in JSON")
        for row, cells in zip(rows, shown["rows"]):
            # A key of JSON is the column's name, with its unit.
            names = [column["name"] for column in shown["columns"]]
            want(len(names) == len(row) and all(key in (n, f"{n}_ns", f"{n}_percent") for n, key in zip(names, row)),
                 f"{name}: columns {names} in the page, {list(row)} in JSON")
            want(cells == list(row.values()), f"{name}: {cells} in the page, {row} in JSON")


def states_agree(program, recording, report, folder):
    """Where the vCPUs' time went: report, metrics, CSV and trace."""
    reported, spans, slices = (collections.Counter() for _ in range(3))
    for v in report["vcpus"]:
        for state, ns in v["states_ns"].items():
            reported[v["vm"], state] += ns
    page = run(program, "metrics", recording).stdout
    for vm, state, s in re.findall(r'(?m)^vcpuscope_vcpu_seconds_total\{vm="([^"]*)",state="(\w+)"\} (\S+)$', page):
        want(s == f"{reported[vm, state] / 1e9:.9g}", f"{vm}, {state}: {reported[vm, state]} ns, metrics {s} s")
    path = os.path.join(folder, "figures.out")
    run(program, "export", recording, "--to", "csv", "-o", path)
    with open(path, encoding="utf-8") as f:
        for row in csv.DictReader(f):
            if row["kind"] == "vcpu":
                spans[row["vm"], row["state"]] += int(row["duration_ns"])
    want(+spans == +reported, f"spans {dict(+spans)}, report {dict(+reported)}")
    run(program, "export", recording, "--to", "perfetto", "-o", path)
    trace, n = pftrace.Trace(path), 0
    for track in [uuid for uuid, t in trace.tracks.items() if t[2] is not None]:
        for s in trace.slices(track):
            slices[s.name] += s.end - s.begin
            n += 1
    for state in {state for _, state in reported}:
        ns = sum(v for (_, s), v in reported.items() if s == state)
        want(abs(slices[state] - ns) <= SLEW * ns + n, f"{state}: {slices[state]} ns in the trace, {ns} in the report")


def figures_check(program, recording, folder):
    done = run(program, "report", recording, "--format", "json", codes=(0, 5))
    report = json.loads(done.stdout)
    text = squeezed(run(program, "report", recording, codes=(0, 5)).stdout)
    incidents_printed(text, report)
    page = page_of(program, recording)
    want(page["report"]["vcpus"] == report["vcpus"], "the page has other vCPUs")
    tables_agree(program, recording, page)
    states_agree(program, recording, report, folder)
    want(narrowing_check(program, recording) or not report["vcpus"], "no table has a row of a VM")


def filter_check(program, recording):
    """A row of an interrupt's table is the same with and without --than."""
    for table in CHAIN_TABLES:
        def rows(*more):
            return json.loads(run(program, "report", recording, table, "--format", "json", "--top", 0,
                                  *more).stdout)["rows"]
        every = rows()
        for than in THANS:
            other = [row for row in rows("--than", than) if row not in every]
            want(not other, f"{table} --than {than}: {other[:1]}")


def narrowing_check(program, recording):
    """--vm and --vcpu select rows, and change none. Returns how many selections there were."""
    def rows(table, *more):
        return json.loads(run(program, "report", recording, table, "--format", "json", "--top", 0,
                              *more).stdout)["rows"]
    n = 0
    for table in NARROWED:
        every = rows(table)
        selections = {("vm", row["vm"]) for row in every} | {("vcpu", row["vcpu"]) for row in every if "vcpu" in row}
        for key, value in selections:
            want(rows(table, f"--{key}", value) == [row for row in every if row.get(key) == value],
                 f"{table} --{key} {value} has other rows than {table}")
        n += len(selections)
    return n


def spans_check(program, recording, folder):
    """Where the time of the slowest interrupts went, against the vCPU's spans."""
    path = os.path.join(folder, "spans.csv")
    run(program, "export", recording, "--to", "csv", "-o", path)
    with open(path, encoding="utf-8") as f:
        spans = [s for s in csv.DictReader(f) if s["kind"] == "vcpu"]
    rows = json.loads(run(program, "report", recording, "slowest", "--format", "json", "--top",
                          0).stdout)["rows"]
    for row in rows:
        begin, end, states = row["begin_ns"], row["begin_ns"] + row["latency_ns"], {}
        for s in spans:
            ns = min(end, int(s["end_ns"])) - max(begin, int(s["begin_ns"]))
            if int(s["cpu"]) == row["vcpu"] and s["vm"] == row["vm"] and ns > 0:
                states[s["state"]] = states.get(s["state"], 0) + ns
        if states.get("unknown"):
            continue
        is_of = {"runnable": row["not_scheduled_ns"], "halted": row["asleep_ns"],
                 "exits": row["exit_handling_ns"], "guest": row["interrupts_off_ns"] + row["delivery_ns"]}
        states["exits"] = states.pop("kvm", 0) + states.pop("vmm", 0)
        for state, ns in is_of.items():
            off = abs(states.get(state, 0) - ns)
            want(off <= WORST_NS + row["error_ns"], f"interrupt at {begin}: {state} is off by {off} ns: "
                                                    f"{states}, {row}")
    return len(rows)


def mangled(data, chance):
    """(what was done, the recording without a part of it)."""
    cut = chance.randrange(len(data))
    yield f"cut to {cut} bytes", data[:cut]
    yield "cut to 300 bytes", data[:300]
    begin = chance.randrange(200, len(data))
    end = min(len(data), begin + chance.randrange(len(data)))
    yield f"without bytes {begin} to {end}", data[:begin] + data[end:]


def figure_recordings(program, folder, data):
    """(name, path, real): ten or more of real guests, whole or not, then simulated ones."""
    chance = random.Random(2)
    for name in REAL:
        path = os.path.join(data, name + ".vcs")
        yield name, path, True
        with open(path, "rb") as f:
            whole = f.read()
        for what, rest in list(mangled(whole, chance))[::2]:
            path = os.path.join(folder, "f.vcs")
            with open(path, "wb") as f:
                f.write(rest)
            yield f"{name} {what}", path, True
    for at, name in enumerate(FIGURE_SCENARIOS):
        path = os.path.join(folder, "f.vcs")
        run(program, "simulate", name, "--seed", at + 1, "--loss", (0, 0, 0.05)[at % 3], "-o", path)
        yield name, path, False
    for at, name in enumerate(SEVERAL):
        path = os.path.join(folder, "f.vcs")
        run(program, "simulate", name, "--seed", at + 1, "--vms", 3, "--vcpus", 2, "-o", path)
        yield f"three VMs, {name}", path, False


def recordings(program, folder, seeds, real):
    """(name, path, length in s or None, whole)."""
    chance = random.Random(1)
    full, day = os.environ.get("VCPUSCOPE_TEST_FULL") == "1", int(time.time()) // 86400
    yield "quickstart.vcs", real, None, True
    for at, scenario in enumerate(SCENARIOS):
        for loss in LOSSES:
            if loss and not full and (at + LOSSES.index(loss) + day) % 2:
                continue
            for seed in range(1, seeds + 1):
                path = os.path.join(folder, "r.vcs")
                run(program, "simulate", scenario, "--seed", seed, "--loss", loss, "-o", path)
                with open(path + ".truth.json", encoding="utf-8") as f:
                    truth = json.load(f)
                yield (f"{scenario} --seed {seed} --loss {loss}", path,
                       (truth["end_ns"] - truth["begin_ns"]) / 1e9, loss == 0)
    for scenario, seed in LIES:
        path = os.path.join(folder, "r.vcs")
        run(program, "simulate", scenario, "--seed", seed, "-o", path)
        yield f"{scenario} --seed {seed}", path, None, False
    for name in (real, path):
        with open(name, "rb") as f:
            data = f.read()
        for what, rest in mangled(data, chance):
            path = os.path.join(folder, "m.vcs")
            with open(path, "wb") as f:
                f.write(rest)
            yield f"{os.path.basename(name)} {what}", path, None, False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    parser.add_argument("--real", required=True, help="a recording of a real guest")
    parser.add_argument("--seeds", type=int, default=1)
    a = parser.parse_args()
    bad, n, interrupts, cannot = [], 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, path, seconds, whole in recordings(a.vcpuscope, folder, a.seeds, a.real):
            n += 1
            try:
                report = views_check(a.vcpuscope, path)
                cannot += not report["coverage"]["supported"]
                span = (report["end_ns"] - report["begin_ns"]) / 1e9
                want(seconds is None or span <= seconds + 1, f"{span} s of {seconds} s")
                filter_check(a.vcpuscope, path)
                if whole:
                    interrupts += spans_check(a.vcpuscope, path, folder)
            except Wrong as e:
                bad.append(f"{name}: {e}")
        figures, real = 0, 0
        for name, path, is_real in figure_recordings(a.vcpuscope, folder, os.path.dirname(a.real)):
            try:
                figures_check(a.vcpuscope, path, folder)
            except (Wrong, pftrace.BadTrace) as e:
                bad.append(f"figures of {name}: {e}")
            figures, real = figures + 1, real + is_real
        if figures < FIGURES_NEEDED or real < REAL_NEEDED:
            bad.append(f"only {figures} recordings, {real} real ones")
        try:
            empty = os.path.join(folder, "empty.vcs")
            open(empty, "w").close()
            run(a.vcpuscope, "report", empty, codes=(1,))
        except Wrong as e:
            bad.append(f"an empty file: {e}")
    print("\n".join(bad))
    print(f"figures of {figures} recordings, {real} of them real, are compared in all views")
    print(f"{n} recordings, {cannot} of which nothing can be told of some vCPU, {interrupts} interrupts "
          f"against their spans, {len(bad)} wrong")
    sys.exit(bool(bad or not interrupts or not cannot or cannot == n))


if __name__ == "__main__":
    main()
