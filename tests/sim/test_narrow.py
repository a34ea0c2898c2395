#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Narrowing of reports, tables, flame graphs and exports: a filter by VM, vCPU or task shows rows of the whole
table, all of those that it names and with the same values; a window of time cuts, so that times add up to its
length, and windows that follow each other add up to the whole; --around shows its stall as the report does."""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile

import pftrace

TABLES = ("vcpu", "pcpu", "culprits", "halts", "tasks", "irq", "delays", "chains", "slowest", "overdue", "ticks",
          "exits", "faults", "steal")
BOTH = "bed-a-stacks.vcs", "quickstart.vcs", "sim-lock.vcs", "sim-mixture-loss.vcs"
STATES = "ran_ns", "run_delay_ns", "halted_ns", "blocked_ns", "stopped_ns", "unknown_ns"


class Bad(Exception):
    pass


class Program:
    def __init__(self, path):
        self.path = os.path.abspath(path)

    def run(self, *words):
        # Wall-clock times of another day, zone and hour are parsed, too.
        env = dict(os.environ, TZ="America/New_York")
        return subprocess.run([self.path, *map(str, words)], capture_output=True, text=True, env=env, check=False)

    def read(self, *words):
        done = self.run(*words)
        if done.returncode not in (0, 5):
            raise Bad(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def json(self, *words):
        return json.loads(self.read("report", *words, "--format", "json"))

    def tables(self, recording, table, *words):
        """name -> rows of a page; {} if the table refuses."""
        done = self.run("report", recording, table, "--top", 0, "--format", "json", *words)
        if done.returncode == 2:
            return {}
        if done.returncode:
            raise Bad(f"{table} {words}: exit {done.returncode}: {done.stderr}")
        page = json.loads(done.stdout)
        return {t["table"]: t["rows"] for t in [page] + page.get("tables", [])}


def expect(what, is_right):
    if not is_right:
        raise Bad(what)


def rows_check(program, recording):
    """Rows by vCPU, VM and task are those of the whole table."""
    vcpus = sorted({row["vcpu"] for row in program.tables(recording, "vcpu")["vcpu"]})
    tasks = [row for row in program.tables(recording, "tasks")["tasks"] if row["comm"]][:3]
    n = 0
    for table in TABLES:
        whole = program.tables(recording, table, "--per", "vcpu") or program.tables(recording, table)
        for vcpu in vcpus:
            for name, rows in program.tables(recording, table, "--vcpu", vcpu).items():
                # Guest CPUs have the numbers of their vCPUs in these recordings.
                wanted = [r for r in whole.get(name, []) if r.get("vcpu", r.get("guest_cpu")) == vcpu]
                expect(f"{table} --vcpu {vcpu}: {name} differs", sorted(map(str, rows)) == sorted(map(str, wanted)))
                n += len(rows)
        plain = program.tables(recording, table)
        for task in tasks:
            for words, has in ((("--task", task["comm"]), lambda r, t=task: r.get("comm") == t["comm"]),
                               (("--task", task["pid"]), lambda r, t=task: r.get("pid") == t["pid"]),
                               (("--pid", task["pid"]), lambda r, t=task: r.get("pid") == t["pid"])):
                for name, rows in program.tables(recording, table, *words).items():
                    expect(f"{table} {words}: {name} differs", rows == [r for r in plain[name] if has(r)])
                    n += len(rows)
        vm = plain.get(table) and plain[table][0].get("vm")
        if vm:
            expect(f"{table} --vm {vm} differs", program.tables(recording, table, "--vm", vm)[table] == plain[table])
    expect("no row was compared", n > 0)


def states_of(rows):
    """(vm, vcpu) -> time by state. Tables repeat it for each cause of waits."""
    return {(r["vm"], r["vcpu"]): [r[s] for s in STATES] for r in rows}


def until(words):
    """`export --to` is the format."""
    return ["--until" if w == "--to" else w for w in words]


def csv_ns(text, kind):
    total = {}
    for row in csv.DictReader(text.splitlines()):
        if row["kind"] == kind:
            key = row["vm"], row["cpu"]
            total[key] = total.get(key, 0) + int(row["duration_ns"])
    return total


def window_check(program, recording):
    """Halves of the recording add up to it, and each to its own length."""
    whole = program.json(recording)
    length = whole["end_ns"] - whole["begin_ns"]
    half = length // 2
    parts = [("--to", f"{half}ns"), ("--from", f"+{half}ns")]
    sums = {}
    for words, wanted in zip(parts, (half, length - half)):
        for key, states in states_of(program.tables(recording, "vcpu", *words)["vcpu"]).items():
            expect(f"{words}: states of {key} add up to {sum(states)} of {wanted} ns", sum(states) <= wanted)
            sums[key] = [a + b for a, b in zip(sums.get(key, [0] * len(STATES)), states)]
        report = program.json(recording, *words)
        expect(f"{words}: window", report["until_ns"] - report["from_ns"] == wanted)
        for vcpu in report["vcpus"]:
            expect(f"{words}: a vCPU exceeds the window",
                   report["from_ns"] <= vcpu["begin_ns"] <= vcpu["end_ns"] <= report["until_ns"])
    expect("the halves do not add up to the table",
           sums == states_of(program.tables(recording, "vcpu")["vcpu"]))
    for kind in "vcpu", "guest_cpu":
        whole_ns = csv_ns(program.read("export", recording, "--to", "csv", "-o", "-"), kind)
        sums = {}
        for words in parts:
            for key, ns in csv_ns(program.read("export", recording, "--to", "csv", "-o", "-", *until(words)), kind).items():
                sums[key] = sums.get(key, 0) + ns
        expect(f"csv: the halves of {kind} do not add up", sums == whole_ns)
    flames = [sum(int(line.rsplit(" ", 1)[1]) for line in program.read("flame", recording, *words).splitlines())
              for words in ((), *parts)]
    lines = program.read("flame", recording).count("\n")
    expect(f"flame: {flames}", abs(flames[0] - flames[1] - flames[2]) <= 3 * lines + 3)


def exits_check(program, recording):
    """What is one item counts in one of the halves only."""
    whole = program.json(recording)
    half = (whole["end_ns"] - whole["begin_ns"]) // 2
    counts = [sum(r["exits" if "exits" in r else "count"] for r in program.tables(recording, "exits", *words)["exits"])
              for words in ((), ("--to", f"{half}ns"), ("--from", f"{half}ns"))]
    vcpus = len(whole["vcpus"])
    expect(f"exits: {counts}", counts[0] and 0 <= counts[1] + counts[2] - counts[0] <= vcpus)


def events_check(program, recording):
    """Events of a window, of a vCPU and of a task are those of the whole list."""
    def lines(*words):
        return [json.loads(line) for line in program.read("report", recording, "events", "-e", "host:kvm:*,guest:sched:*",
                                                           "--top", 0, "--format", "json", *words).splitlines()]
    every = lines()
    begin = program.json(recording)["begin_ns"]
    for words, has in ((("--from", "+2s", "--to", "+3s"), lambda e: begin + 2 * 10**9 <= e["t_ns"] < begin + 3 * 10**9),
                       (("--vcpu", 0), lambda e: e.get("vcpu") == 0),
                       (("--task", "compute"), lambda e: e.get("comm") == "compute")):
        wanted = [e for e in every if has(e)]
        expect(f"events {words}", wanted and lines(*words) == wanted)


def event_tables_check(program, recording):
    """Pairs, top, dist and rate count the events that the narrowed list has."""
    events = "guest:irq:softirq_entry"
    whole = program.json(recording)
    begin, half = whole["begin_ns"], (whole["end_ns"] - whole["begin_ns"]) // 2
    near = [i for i in whole["incidents"] if i["vm"]][0]
    task = [r for r in program.tables(recording, "tasks")["tasks"] if r["comm"]][0]
    seen = 0
    for words in ((), ("--vm", near["vm"]), ("--vcpu", 0), ("--vcpu", 1), ("--task", task["comm"]),
                  ("--pid", task["pid"]), ("--from", f"{half}ns"), ("--to", f"{half}ns"),
                  ("--from", f"{half // 2}ns", "--to", f"{half}ns", "--vcpu", 0), ("--around", near["number"])):
        if "--vcpu" in words and words[-1] not in {v["vcpu"] for v in whole["vcpus"]}:
            continue
        lines = program.read("report", recording, "events", "-e", events, "--top", 0, "--format", "json", *words)
        listed = [json.loads(line) for line in lines.splitlines()]
        by_vec = {}
        for e in listed:
            by_vec[e["fields"]["vec"]] = by_vec.get(e["fields"]["vec"], 0) + 1
        seen += len(listed)
        top = program.tables(recording, "top", "-e", events, "--by", "vec", *words).get("top", [])
        expect(f"top {words}: {top}, not {by_vec}", {int(r["key"]): r["count"] for r in top} == by_vec)
        dist = program.tables(recording, "dist", "-e", events, "--value", "vec", *words).get("dist", [])
        expect(f"dist {words}: {dist}", sum(r["count"] for r in dist) == len(listed))
        rate = program.tables(recording, "rate", "-e", events, *words).get("rate", [])
        expect(f"rate {words}: {rate}", sum(r["count"] for r in rate) == len(listed))
        pairs = program.tables(recording, "pairs", "-e", events, "-e", "guest:irq:softirq_exit", "--key", "cpu", *words)
        n = sum(r["calls"] + r["incomplete"] + r["ambiguous"] + r["unpaired_from"] for r in pairs.get("pairs", []))
        expect(f"pairs {words}: {n} begins of {len(listed)}", n == len(listed))
        for r in pairs.get("single_pairs", []):
            if words[:1] == ("--from",):
                expect(f"pairs {words}: begins before", r["begin_ns"] >= begin + half // 2)
    expect("no event was compared", seen > 100)


def around_check(program, recording, folder):
    whole = program.json(recording)
    for incident in whole["incidents"]:
        n = incident["number"]
        near = program.json(recording, "--around", n)
        same = [i for i in near["incidents"] if i["number"] == n]
        expect(f"--around {n} changes the stall", same == [incident])
        expect(f"--around {n} does not contain it",
               near["from_ns"] <= incident["begin_ns"] and incident["end_ns"] <= near["until_ns"])
        text = program.read("report", recording, "--around", n)
        expect(f"--around {n}: the text does not name the window", "Only the time from +" in text)
        path = os.path.join(folder, "window.pftrace")
        program.read("export", recording, "--to", "perfetto", "--around", n, "-o", path)
        trace_check(pftrace.Trace(path), near)
        path = os.path.join(folder, "window.svg")
        program.read("flame", recording, "--around", n, "-o", path)
        with open(path, encoding="utf-8") as f:
            expect("the drawing does not name the window", "from +" in f.read())
    expect("there is no stall", whole["incidents"])


def trace_check(trace, report):
    bad = pftrace.problems(trace)
    expect(f"trace: {bad}", not bad)
    times = [t for row in trace.switches.values() for t, *_ in row]
    times += [t for row in trace.wakings.values() for t, *_ in row]
    times += [e[0] for row in trace.events.values() for e in row]
    # The two clocks differ in rate.
    length = report["until_ns"] - report["from_ns"]
    expect(f"the trace spans {max(times) - min(times)} of {length} ns",
           length * 0.8 < max(times) - min(times) <= length * 1.0001 + 1000)


def times_check(program, recording):
    """Wall-clock time names the same window as the time since the begin of the recording."""
    whole = program.json(recording)
    begin = whole["begin_realtime_ns"]
    local = {"TZ": "America/New_York"}
    at = begin // 10**9 + 3
    offset = at * 10**9 - begin
    stamp = lambda form, zone: subprocess.run(["date", "-d", f"@{at}", f"+{form}"], capture_output=True, text=True,
                                              check=True, env=dict(os.environ, TZ=zone)).stdout.strip()
    wanted = program.json(recording, "--from", f"{offset}ns")["from_ns"]
    for text in (stamp("%H:%M:%S", local["TZ"]), stamp("%F %T", local["TZ"]), stamp("%FT%T%:z", local["TZ"]),
                 stamp("%F %T %Z", local["TZ"]), stamp("%FT%TZ", "UTC"), stamp("%T+05:30", "Asia/Kolkata"),
                 f"+{offset / 1e9:.9f} s"):
        got = program.json(recording, "--from", text)["from_ns"]
        expect(f"--from {text!r}: {got}, not {wanted}", abs(got - wanted) <= 1)
    got = program.json(recording, "--from", "0s", "--to", "1s")
    expect("--from 0s", got["from_ns"] == whole["begin_ns"] and got["until_ns"] == whole["begin_ns"] + 10**9)


def refusals_check(program, recording):
    for words, says in ((("report", "--around", 99), "finds"), (("report", "--from", "9"), "unit"),
                        (("report", "--from", "99h"), "nothing of the recording"),
                        (("report", "--from", "2s", "--to", "1s"), "nothing of the recording"),
                        (("report", "--around", 1, "--to", "1s"), "--around"),
                        (("report", "--vm", "nobody"), "no VM"), (("report", "--vcpu", 99), "no vCPU"),
                        (("report", "exits", "--task", "init"), "tasks"),
                        (("report", "--pid", 0), "--pid"), (("report", "--from", "25:00:00"), "expected"),
                        (("export", "--to", "csv", "--vm", "nobody", "-o", "-"), "no VM"),
                        (("export", "--to", "perfetto", "--task", "init", "-o", "-"), "--task")):
        done = program.run(words[0], recording, *words[1:])
        lines = done.stderr.splitlines()
        expect(f"{words}: exit {done.returncode}: {lines}",
               done.returncode in (1, 2) and len(lines) == 1 and says in lines[0])


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    program = Program(p.parse_args().vcpuscope)
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
    bad = 0

    def check(what, *words):
        nonlocal bad
        try:
            what(program, *words)
        except Bad as e:
            bad += 1
            print(f"{what.__name__} {os.path.basename(words[0])}: {e}")

    with tempfile.TemporaryDirectory(prefix="vcpuscope-narrow.") as folder:
        for name in BOTH:
            recording = os.path.join(data, name)
            check(rows_check, recording)
            check(window_check, recording)
        check(exits_check, os.path.join(data, "quickstart.vcs"))
        check(exits_check, os.path.join(data, "sim-mixture-loss.vcs"))
        check(events_check, os.path.join(data, "quickstart.vcs"))
        check(event_tables_check, os.path.join(data, "quickstart.vcs"))
        check(event_tables_check, os.path.join(data, "sim-mixture-loss.vcs"))
        check(around_check, os.path.join(data, "quickstart.vcs"), folder)
        check(around_check, os.path.join(data, "sim-mixture-loss.vcs"), folder)
        check(times_check, os.path.join(data, "quickstart.vcs"))
        check(refusals_check, os.path.join(data, "quickstart.vcs"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
