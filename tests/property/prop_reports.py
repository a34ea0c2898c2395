#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a report must never say, of any recording: simulated ones of known truth, with 0 to 99 % of their
events lost, cut, with pieces missing or frames removed, and of guests that lie about their clock.

    tests/property/prop_reports.py --vcpuscope PROGRAM              some dozens, half a minute
    VCPUSCOPE_TEST_FULL=1 tests/property/prop_reports.py ...        thousands

Of each recording:
  - no "no stall" without stated coverage of 90 % or more, of the host's side and of the guest's;
  - text, page, CSV and JSON agree;
  - no value depends on a display filter: a stall that --than or --all shows, or a row of a table, is the
    same whatever else is shown, and so is what was observed.
Of all of them together: a `decided` verdict contradicts the truth in at most 0.2 %.
Exit status: 0 all hold, 1 not.
"""
import argparse
import collections
import concurrent.futures
import csv
import importlib.machinery
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
DECIDED_WRONG_SHARE = 0.002
QUICK, MANY = 60, 6000
HEAVY_EVERY = 3  # of the recordings, pages and tables are compared, too
LOSSES = (0, 0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.97, 0.99)
FILTERS = (("--than", "30ms"), ("--than", "250ms"), ("--than", "1s"), ("--all",), ("--than", "30ms", "--all"))
ENTRY_BYTES = 24
FILE_BYTES = 32


def load(name, path):
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, f"{HERE}/../sim")  # what test_views imports
views = load("test_views", f"{HERE}/../sim/test_views.py")
matrix = load("run_matrix", f"{HERE}/../sim/run_matrix")
want, run = views.want, views.run


def entries(data):
    """[(source, begin, end)] of a recording's entries."""
    at, out = FILE_BYTES, []
    while at + ENTRY_BYTES <= len(data):
        source = int.from_bytes(data[at + 4:at + 8], "little")
        end = at + ENTRY_BYTES + int.from_bytes(data[at + 16:at + 20], "little")
        out.append((source, at, end))
        at = end
    return out


def damage(data, chance):
    """(what was done to the recording, the rest of it)."""
    kind = chance.choice(("cut", "gap", "guest frames", "host frames", "frames", "noise"))
    if kind == "cut":
        at = chance.randrange(FILE_BYTES, len(data))
        return f"cut to {at} bytes", data[:at]
    if kind == "gap":
        begin = chance.randrange(FILE_BYTES, len(data))
        end = min(len(data), begin + chance.randrange(len(data) // 2))
        return f"without bytes {begin} to {end}", data[:begin] + data[end:]
    if kind == "noise":
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 30)):
            changed[chance.randrange(FILE_BYTES, len(data))] ^= 1 << chance.randrange(8)
        return "with bits turned", bytes(changed)
    wanted = {"guest frames": (1,), "host frames": (0,), "frames": (0, 1)}[kind]
    share = chance.choice((0.02, 0.2, 0.6, 0.95))
    kept = [(b, e) for s, b, e in entries(data) if s not in wanted or chance.random() >= share]
    return f"without {share * 100:g} % of the {kind}", data[:FILE_BYTES] + b"".join(data[b:e] for b, e in kept)


def report_of(program, path, *options):
    return json.loads(run(program, "report", path, "--format", "json", *options, codes=(0, 5)).stdout)


def csv_check(program, path, report, folder):
    """The spans of the CSV sum to what the report says was observed."""
    out = os.path.join(folder, "spans.csv")
    run(program, "export", path, "--to", "csv", "-o", out)
    known, spans = collections.Counter(), collections.defaultdict(list)
    with open(out, encoding="utf-8") as f:
        for s in csv.DictReader(f):
            if s["kind"] != "vcpu":
                continue
            begin, end = int(s["begin_ns"]), int(s["end_ns"])
            spans[s["vm"], int(s["cpu"])].append((begin, end, s["state"]))
            if s["state"] != "unknown":
                known[s["vm"], int(s["cpu"])] += end - begin
    for v in report["vcpus"]:
        want(known[v["vm"], v["vcpu"]] == v["observed_ns"],
             f"vCPU {v['vcpu']}: the CSV knows {known[v['vm'], v['vcpu']]} ns, the report {v['observed_ns']}")
    for i in report["incidents"]:
        if i["error_ns"] > 1e9:
            continue
        states = collections.Counter()
        for begin, end, state in spans[i["vm"], i["vcpu"]]:
            states[state] += max(0, min(end, i["end_ns"]) - max(begin, i["begin_ns"]))
        # Of an interrupt's way time in QEMU is not told from time in KVM, and the events of its way show
        # some of the vCPU's unknown time.
        way = states["unknown"] * (i["verdict"] == "interrupt_lost")
        exits = sum(i["breakdown_ns"][s] for s in ("kvm", "vmm"))
        want(exits <= states["kvm"] + states["vmm"] + way, f"{i['verdict']}: {exits} ns in exits")
        for state, ns in i["breakdown_ns"].items():
            if state in ("kvm", "vmm") and i["verdict"] == "interrupt_lost":
                continue
            # What is told of an interrupt is not told of its task again.
            want(state == "unknown" or ns <= states[state] + way,
                 f"{i['verdict']} at {i['begin_ns']}: {state} {ns} ns, in the CSV {states[state]} ns")


def same_incident(i):
    """What must not depend on what else is shown."""
    return {k: v for k, v in i.items() if k not in ("detectors",)}


def filters_check(program, path, report, chance):
    """The same stalls and figures whatever is shown beside them."""
    options = chance.choice(FILTERS)
    other = report_of(program, path, *options)
    for key in ("begin_ns", "end_ns", "clock", "sources"):
        want(report.get(key) == other.get(key), f"{options} changes {key}")
    for a, b in zip(report["vcpus"], other["vcpus"]):
        for key in ("observed_ns", "guest_observed_ns", "span_ns"):
            want(a[key] == b[key], f"{options} changes {key} of vCPU {a['vcpu']}")
    if options == ("--all",):
        shown = [same_incident(i) for i in other["incidents"] if not i["healthy"]]
        want(shown == [same_incident(i) for i in report["incidents"]], "--all changes a stall")
    table = chance.choice(("vcpu", "tasks", "irq", "exits", "steal", "slowest", "chains"))
    rows = run(program, "report", path, table, "--format", "json", "--top", "0", codes=(0, 5)).stdout
    fewer = run(program, "report", path, table, "--format", "json", "--top", "3", codes=(0, 5)).stdout
    rows, fewer = json.loads(rows), json.loads(fewer)
    other = [row for row in fewer["rows"] if row not in rows["rows"]]
    want(fewer["rows"] or not rows["rows"], f"{table} --top 3 shows nothing")
    want(not other, f"{table} --top 3 shows other values: {other[:1]}")


def judge(kind, truth, report):
    """Is something decided that is not true?"""
    outcome, _, why = matrix.judge(kind, truth, report)
    return why if outcome == "wrong" else ""


def one(job):
    """(name, [what does not hold], why decided wrongly, no stall said, cannot tell, decided)."""
    program, number, names, folder = job
    chance = random.Random(number)
    (scenario, kind), loss = names[number % len(names)], chance.choice(LOSSES)
    path = os.path.join(folder, f"{number}.vcs")
    name, bad, wrong, said = f"{scenario} --seed {number + 1} --loss {loss}", [], "", collections.Counter()
    try:
        run(program, "simulate", scenario, "--seed", number + 1, "--loss", loss, "-o", path)
        with open(path + ".truth.json", encoding="utf-8") as f:
            truth = json.load(f)
        if chance.random() < 0.4:
            with open(path, "rb") as f:
                what, rest = damage(f.read(), chance)
            with open(path, "wb") as f:
                f.write(rest)
            name += f", {what}"
        done = run(program, "report", path, "--format", "json", codes=(0, 1, 5))
        if done.returncode == 1:  # nothing is left of it
            want("," in name and not done.stdout, f"no report: {done.stderr[-200:]}")
            said["none"] += 1
            return name, bad, wrong, said
        report = json.loads(done.stdout)
        views.answers_check(report, done.returncode)
        if number % HEAVY_EVERY == 0:
            views.views_check(program, path)
            views.filter_check(program, path)
            with tempfile.TemporaryDirectory(dir=folder) as own:
                csv_check(program, path, report, own)
            filters_check(program, path, report, chance)
        wrong = judge(kind, truth, report)
        said["decided"] += any(i["confidence"] == "decided" for i in report["incidents"])
        said["no_stall"] += any(v["answer"].startswith("no_stall") for v in report["vcpus"])
        said["cannot_tell"] += any(v["answer"] == "cannot_tell" for v in report["vcpus"])
    except (views.Wrong, KeyError, ValueError, subprocess.SubprocessError) as e:
        bad.append(f"{name}: {type(e).__name__} {e}")
    finally:
        for file in (path, path + ".truth.json"):
            if os.path.exists(file):
                os.unlink(file)
    return name, bad, wrong, said


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--vcpuscope", default=os.path.join(HERE, "../../build/host-collector/vcpuscope"))
    p.add_argument("--count", type=int, default=MANY if FULL else QUICK)
    p.add_argument("--first", type=int, default=0, help="number of the first recording")
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    names = [(name, kind) for name, kind in matrix.scenarios(a.vcpuscope)]
    lies = [n for n in names if n[1] == "lie"]
    names = random.Random(1).sample(names, len(names)) + lies  # those that lie twice
    said, wrong, bad = collections.Counter(), [], []
    with tempfile.TemporaryDirectory(prefix="vcpuscope-prop.") as folder, \
            concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        jobs = ((a.vcpuscope, a.first + i, names, folder) for i in range(a.count))
        for name, broken, why, what in pool.map(one, jobs):
            bad += broken
            said.update(what)
            if why:
                wrong.append(f"{name}: {why}")
    for line in bad:
        print("does not hold:", line)
    for line in wrong:
        print("decided, and not true:", line)
    print(f"{a.count} recordings: {len(bad)} break a rule; {said['decided']} have a decided verdict, in "
          f"{len(wrong)} ({100 * len(wrong) / a.count:.2f} %) the truth contradicts one; {said['no_stall']} "
          f"say \"no stall\" of a vCPU, {said['cannot_tell']} \"cannot tell\", {said['none']} are no recording "
          "any more")
    enough = said["decided"] and said["no_stall"] and said["cannot_tell"]
    return int(bool(bad) or len(wrong) > DECIDED_WRONG_SHARE * a.count or not enough)


if __name__ == "__main__":
    sys.exit(main())
