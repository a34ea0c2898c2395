#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Pairs of events that a user chose, against the simulator's truth: the host hands jobs to the guest, in slots that
are used again and again. Without losses each job is found. With 1 % of all events lost one by one, 99.9 % of the jobs
whose events were both delivered, except ambiguous ones, are calls, and 99.9 % of the calls are such jobs. With 20 %,
none is invented. Each such job is counted, as a call, incomplete or ambiguous. The events are also instants of the
Perfetto trace. Slices of the trace, with -e, are the pairs, with the fields of their events. Times are right within
their errors.
"""
import argparse
import collections
import functools
import json
import os
import subprocess
import sys
import tempfile

import pftrace

ISSUE, DONE = "host:jobs:job_issue", "guest:jobs:job_done"


class Bad(Exception):
    pass


def expect(what, is_right):
    if not is_right:
        raise Bad(what)


def stamped(event):
    """All that a line tells of an event, as one value. Names of tasks become known later."""
    return json.dumps({**event, "comm": ""}, sort_keys=True)


class Run:
    def __init__(self, args, folder, loss, seed):
        self.program, self.loss = os.path.abspath(args.vcpuscope), loss
        self.path = os.path.join(folder, f"jobs-{loss}-{seed}.vcs")
        subprocess.run([os.path.abspath(args.simulate), "decoy.steady", "--jobs", "--for", "4s", "--seed", str(seed),
                        "--loss", loss, "-o", self.path], check=True)
        with open(self.path + ".truth.json", encoding="utf-8") as f:
            self.jobs = json.load(f)["jobs"]

    def read(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
        expect(f"{' '.join(words)}: exit {done.returncode}: {done.stderr}", done.returncode in (0, 5))
        return done.stdout

    def events(self):
        return [json.loads(line) for line in self.read("report", self.path, "events", "-e", f"{ISSUE},{DONE}", "--top",
                                                       "0", "--format", "json").splitlines()]

    @functools.cache
    def stamped(self):
        return {stamped(event) for event in self.events()}

    def pairs(self, key):
        page = json.loads(self.read("report", self.path, "pairs", "-e", ISSUE, "-e", DONE, "--key", key, "--format",
                                    "json"))
        tables = {t["table"]: t["rows"] for t in [page] + page.get("tables", [])}
        rows = json.loads(self.read("query", self.path, f"SELECT * FROM pairs('{ISSUE}', '{DONE}', '{key}')",
                                    "--format", "json"))
        lines = [json.loads(line) for line in self.read("report", self.path, "pairs", "-e", ISSUE, "-e", DONE, "--key",
                                                        key, "--format", "jsonl").splitlines()]
        expect("an end of a line is no event",
               all(stamped(end) in self.stamped() for r in lines for end in (r["from"], r["to"])))
        expect("lines differ from rows", [(r["from"]["t_ns"], r["to"]["t_ns"], r["duration_ns"]) for r in lines] ==
               [(r["begin_ns"], r["end_ns"], r["duration_ns"]) for r in rows])
        return tables["pairs"][0], rows


def check(run, key):
    """Returns (row, delivered, found, invented)."""
    invented = 0
    row, rows = run.pairs(key)
    delivered = {(slot, job): (begin, end) for job, slot, begin, end, a, b in run.jobs if a and b and end}
    stamps = {}
    for e in run.events():
        stamps.setdefault((e["event"], e["t_ns"]), []).append((e["fields"]["slot"], e["fields"]["job"]))
    expect("events are not those that were delivered", sum(len(v) for v in stamps.values()) ==
           sum(a + (b and bool(end)) for _, _, _, end, a, b in run.jobs))
    # Those past losses are calls only if `report pairs` says so.
    shown = [r for r in rows if (row["past_losses"] or not r["past_losses"]) and
             (row["past_both"] or not r["past_both"])]
    expect(f"{key}: {len(shown)} rows, {row['calls']} calls", len(shown) == row["calls"])
    for r in shown:
        job = set(stamps[ISSUE, r["begin_ns"]]) & set(stamps[DONE, r["end_ns"]])
        if not any(j in delivered for j in job):
            expect(f"{key}: invented: {r}", run.loss == "0.01" and r["past_both"])
            invented += 1
            continue
        begin, end = delivered[next(iter(job & set(delivered)))]
        # A stamp is up to 0.4 us late.
        expect(f"{key}: wrong by {r['duration_ns'] - (end - begin)} ns, not {r['error_ns']}",
               abs(r["duration_ns"] - (end - begin)) <= r["error_ns"] + 400)
    return row, len(delivered), len(shown) - invented, invented


def trace_check(run, folder):
    """Instants of the Perfetto trace are the events that were delivered."""
    path = os.path.join(folder, "jobs.pftrace")
    run.read("export", run.path, "--to", "perfetto", "-o", path)
    trace = pftrace.Trace(path)
    shown = {}
    for track, events in trace.events.items():
        parent = trace.tracks[track][1]
        if parent and trace.tracks[parent][0] == "Chosen events":
            shown[trace.tracks[track][0]] = len(events)
    expect(f"the trace shows {shown}", shown == {
        "host: job_issue": sum(a for *_, a, _ in run.jobs),
        "simulated: job_done": sum(b and bool(end) for _, _, _, end, _, b in run.jobs)})


def sorted_items(fields):
    return tuple(sorted((k, str(v)) for k, v in fields.items()))


def fields_of(read, recording, rows, end, t):
    """For one end of each pair, the fields of the events that `query` has at its time and CPU."""
    events = {}
    for e in json.loads(read("query", recording, "SELECT side, event, t_ns, cpu, fields FROM events", "--format", "json")):
        events.setdefault((f"{e['side']}:{e['event']}", e["t_ns"], e["cpu"]), []).append(e["fields"])
    return [[sorted_items(json.loads(f)) for f in events[r[f"{end}_event"], r[t], r[f"{end}_cpu"]]] for r in rows]


def slices_check(read, recording, a, b, key, folder):
    """Slices of the Perfetto trace are the pairs. Returns their number."""
    path = os.path.join(folder, "pairs.pftrace")
    read("export", recording, "--to", "perfetto", "-e", a, "-e", b, "--key", key, "-o", path)
    trace = pftrace.Trace(path)
    lengths, shown = [], []
    for track in trace.events:
        if not trace.path(track).startswith("Pairs/"):
            continue
        expect(f"name {trace.path(track)}", trace.path(track) == f"Pairs/{a} -> {b}")
        slices = trace.slices(track)
        lengths += [s.end - s.begin for s in slices]
        expect("slices of a track overlap", all(s.depth == 0 for s in slices))
        shown += [trace.arguments[track, s.begin] for s in slices]
    rows = json.loads(read("query", recording, f"SELECT * FROM pairs('{a}', '{b}', '{key}')", "--format", "json"))

    def seen(pairs, prefix):
        return sorted((str(r["key"]), r["duration_ns"], r.get("vcpu"), r[f"from{prefix}cpu"], r[f"to{prefix}cpu"])
                      for r in pairs)

    expect(f"{key}: {len(shown)} slices, {len(rows)} pairs", seen(shown, " ") == seen(rows, "_") and rows)
    for end, t in ("from", "begin_ns"), ("to", "end_ns"):
        in_trace = collections.Counter(
            sorted_items({k[len(end) + 1:]: v for k, v in s.items() if k.startswith(end + ".")}) for s in shown)
        candidates = fields_of(read, recording, rows, end, t)
        in_trace.subtract(c[0] for c in candidates if len(c) == 1)
        doubtful = [c for c in candidates if len(c) > 1]  # several events have this time and CPU
        left = [f for f, n in in_trace.items() for _ in range(n)]
        expect(f"{key}: fields that no event has, or too few: {+in_trace}, {-in_trace}", all(candidates) and
               min(in_trace.values()) >= 0 and len(left) == len(doubtful) and all(any(f in c for c in doubtful) for f in left))
        expect(f"{key}: most events are doubtful", len(doubtful) < len(rows) // 2)
    # The trace's clock is not the timeline's.
    expect(f"{key}: slices of other lengths", all(abs(x - y) <= 1000 for x, y in zip(
        sorted(lengths), sorted(max(r["end_ns"] - r["begin_ns"], 0) for r in rows))))
    return len(rows)


def export_checks(args, folder):
    def read(*words, code=(0, 5)):
        done = subprocess.run([os.path.abspath(args.vcpuscope), *words], capture_output=True, text=True, check=False)
        expect(f"{' '.join(words)}: exit {done.returncode}: {done.stderr}", done.returncode in code)
        return done.stdout + done.stderr * (code == (2,))

    real = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "bed-a.vcs")
    n = slices_check(read, real, "guest:irq:softirq_entry", "guest:irq:softirq_exit", "cpu", folder)
    print(f"a real guest: {n} slices")
    for words, says in ((["csv", "-e", ISSUE, "-e", DONE], "--to perfetto"),
                        (["perfetto", "-e", "irq:softirq_entry"], "-e A"),
                        (["perfetto", "-e", "irq:nothing"], "irq:nothing"), (["perfetto", "--key", "cpu"], "-e A")):
        said = read("export", real, "--to", *words, "-o", os.path.join(folder, "wrong"), code=(2,))
        expect(f"{words}: {said}", says in said)
    for key in "slot", "job":
        slices_check(read, os.path.join(folder, "jobs-0.01-2.vcs"), ISSUE, DONE, key, folder)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    p.add_argument("--simulate", required=True)
    args = p.parse_args()
    bad = 0
    if subprocess.run([args.vcpuscope, "query", "x", "SELECT 1"], capture_output=True, check=False).returncode == 3:
        print("this build has no SQLite")
        return 77
    with tempfile.TemporaryDirectory(prefix="vcpuscope-pairs.") as folder:
        for loss, seed in (("0", 1), ("0.01", 2), ("0.2", 3)):
            run = Run(args, folder, loss, seed)
            try:
                trace_check(run, folder)
            except Bad as e:
                bad += 1
                print(e)
            for key in "job", "slot":
                try:
                    row, delivered, right, invented = check(run, key)
                    found = row["calls"] + row["ambiguous"] + row["incomplete"]
                    print(f"loss {loss}, by {key}: {row['calls']} of {delivered} delivered, {row['incomplete']} "
                          f"incomplete, {row['ambiguous']} ambiguous, {row['unpaired_from']}+{row['unpaired_to']} unpaired, "
                          f"{row['past_losses']} past losses, {row['past_both']} past both, {invented} invented")
                    if loss == "0":
                        expect("not all are found", row["calls"] + row["ambiguous"] == delivered)
                    expect("fewer than 99.9 % are counted", found >= 0.999 * delivered)
                    if loss == "0.01":
                        expect("recall", right >= 0.999 * (delivered - row["ambiguous"]))
                        expect("precision", invented <= 0.001 * row["calls"])
                except Bad as e:
                    bad += 1
                    print(f"loss {loss}, by {key}: {str(e)[:600]}")
        try:
            export_checks(args, folder)
        except Bad as e:
            bad += 1
            print(str(e)[:600])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
