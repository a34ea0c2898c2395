# SPDX-License-Identifier: GPL-2.0-only
"""Whatever a recording holds, its reports say what they rest on, and all of them say the same.

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

LOSSES = (0, 0.01, 0.05, 0.2, 0.5, 0.9, 0.99)
SCENARIOS = ("decoy.idle", "vm_paused.signal", "interrupt_lost", "vcpu_not_scheduled.crowd")
NEEDED = 90
THANS = ("1us", "100us", "1ms", "20ms")
CHAIN_TABLES = ("chains", "delays", "slowest", "overdue")
PAGE_ROWS = 40
WORST_NS = 1000
# Guests that lie about their clock, and are found out late: a reading that trusts them at first says else.
LIES = (("lie.echo", 2), ("lie.stamps", 2), ("lie.stamps_some", 5))


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
        try:
            empty = os.path.join(folder, "empty.vcs")
            open(empty, "w").close()
            run(a.vcpuscope, "report", empty, codes=(1,))
        except Wrong as e:
            bad.append(f"an empty file: {e}")
    print("\n".join(bad))
    print(f"{n} recordings, {cannot} of which nothing can be told of some vCPU, {interrupts} interrupts "
          f"against their spans, {len(bad)} wrong")
    sys.exit(bool(bad or not interrupts or not cannot or cannot == n))


if __name__ == "__main__":
    main()
