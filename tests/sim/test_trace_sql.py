# SPDX-License-Identifier: GPL-2.0-only
"""Perfetto's own trace_processor reads what `export --to perfetto` writes: it complains of nothing, and its SQL
gives the figures of the report: stalls with all that is said of them, where each vCPU's time went, how long each
thread and each guest task ran, interrupts, run delay, steal and latencies.

30 recordings, twelve of them from real guests (as in test_views.py), with VCPUSCOPE_TEST_FULL=1; otherwise the
real ones that are whole and every fourth of the others, the next ones the next day."""
import argparse
import collections
import json
import os
import re
import sys
import tempfile
import time

from test_views import SLEW, Wrong, figure_recordings, run, want
from trace_processor import DEFAULT, TraceError, TraceProcessor, missing

QUERIES = {
    "stats": "select name, idx, severity, value from stats where value != 0 and severity in ('error', 'data_loss')",
    "stalls": """
        select slice.id, vm.name as vm, track.name as cpu, slice.name as name, dur, args.key as key,
            coalesce(args.string_value, args.int_value) as value
        from slice join track on track.id = track_id join track as vm on vm.id = track.parent_id
            join args using (arg_set_id) where vm.name glob 'VM *: stalls'""",
    "counters": """
        select vm.name as vm, track.name as name, count(*) as n, sum(value) as total, min(value) as least,
            max(value) as most
        from counter join track on track.id = track_id join track as vm on vm.id = track.parent_id group by track.id""",
    "states": """
        select tid, slice.name as state, sum(dur) as ns, count(*) as n
        from slice join thread_track on thread_track.id = track_id join thread using (utid)
        where dur >= 0 group by utid, state""",
    "threads": """
        select machine.raw_id as machine, tid, thread.name as name, count(*) as n, sum(max(dur, 0)) as ns,
            sum(iif(dur < 0, trace_end() - ts, 0)) as open
        from sched join thread using (utid) join machine on machine.id = thread.machine_id group by utid""",
    "interrupts": """
        select vm.name as vm, slice.name as name, count(*) as n
        from slice join track on track.id = track_id join track as vm on vm.id = track.parent_id
        where vm.name glob 'VM *: interrupts' group by vm.name, slice.name""",
    "machines": "select raw_id from machine",
    "unfinished": "select count(*) as n from slice where dur < 0",
    "overlaps": """
        select count(*) as n from (select ts, dur, lead(ts) over (partition by ucpu order by ts) as next from sched)
        where dur > 0 and ts + dur > next""",
}
ARGUMENTS = {"incident": "number", "verdict": "verdict", "confidence": "confidence", "why": "because",
             "denied": "denied", "duration_ns": "duration_ns", "error_ns": "error_ns"}
# A thread's runs begin with the first switch of its CPU.
EDGE_NS = 2000


class Recording:
    """A recording's reports and its trace."""

    def __init__(self, program, path, folder, processor):
        self.program, self.path = program, path
        self.report = json.loads(run(program, "report", path, "--format", "json", codes=(0, 5)).stdout)
        self.trace = os.path.join(folder, "run.pftrace")
        said = run(program, "export", path, "--to", "perfetto", "-o", self.trace).stderr
        self.machines, self.cpu_of = {}, {}
        for number, vm, rest in re.findall(r"machine (\d+) is VM (.*?):(.*)", said):
            self.machines[int(number)] = vm
            for cpu, tid in re.findall(r"CPU (\d+) runs in thread (\d+);", rest):
                self.cpu_of[int(tid)] = vm, int(cpu)
        self.sql = processor.ask(self.trace, **QUERIES)
        self.compared = 0

    def table(self, name, *more):
        return json.loads(run(self.program, "report", self.path, name, "--top", 0, "--format", "json", *more).stdout)["rows"]

    def rows(self, sql):
        return json.loads(run(self.program, "query", self.path, sql, "--format", "json").stdout)

    def lossless(self):
        return not any(loss.get(key) for loss in self.report["loss"].values()
                       for key in ("dropped_kernel", "dropped_user", "lost_channel", "missed", "unplaced", "damaged_bytes",
                                   "lost_frames", "late", "nonsense_frames", "spans"))

    def ran(self, what, ours, thread, tolerance):
        """Nothing ends the last run of a CPU: of that one the trace only says when it began."""
        self.compared += 1
        low, high = thread["ns"] - tolerance, thread["ns"] + thread["open"] + tolerance
        want(low <= ours <= high, f"{what} for {ours} ns in the report, for {low:.0f} to {high:.0f} by SQL")

    def equal(self, what, ours, theirs, tolerance=0):
        self.compared += 1
        want(abs((ours or 0) - (theirs or 0)) <= tolerance, f"{what}: {ours} in the report, {theirs} by SQL")


def stats_check(r):
    errors = [s for s in r.sql["stats"] if s["severity"] == "error"]
    want(not errors, f"trace_processor complains: {errors}")
    if r.lossless():
        want(not r.sql["stats"], f"nothing was lost, and trace_processor says: {r.sql['stats']}")
    want(r.sql["overlaps"][0]["n"] == 0, "a CPU runs two threads at once")
    want(r.sql["unfinished"][0]["n"] == 0, "a slice has no end")
    strange = {m["raw_id"] for m in r.sql["machines"]} - {0, *r.machines}
    want(not strange, f"machines {strange} are no VMs")


def stalls_check(r):
    found = collections.defaultdict(dict)
    for row in r.sql["stalls"]:
        key = row["key"].removeprefix("debug.")
        found[row["id"]].update({key: row["value"], "track": (row["vm"], row["cpu"]), "name": row["name"],
                                 "dur": row["dur"]})
    stalls = {i["number"]: i for i in r.report["incidents"] if not i["healthy"]}
    want(sorted(s["incident"] for s in found.values()) == sorted(stalls),
         f"stalls {sorted(s['incident'] for s in found.values())} in the trace, {sorted(stalls)} in the report")
    for s in found.values():
        i = stalls[s["incident"]]
        want(s["track"] == (f"VM {i['vm']}: stalls", f"guest CPU {i['guest_cpu']}") and s["name"] == i["verdict"],
             f"stall {i['number']} is {s}")
        for key, member in ARGUMENTS.items():
            want(s.get(key) == i[member] or not s.get(key) and not i[member],
                 f"stall {i['number']}: {key} is {s.get(key)!r}, in the report {i[member]!r}")
            r.compared += 1
        r.equal(f"stall {i['number']}: length", i["duration_ns"], s["dur"], 1 + SLEW * i["duration_ns"])
        if i["culprits"]:
            first = i["culprits"][0]
            r.equal(f"stall {i['number']}: share of the culprit", first["share_ns"], s["culprit's share_ns"])
            want(s["culprit's role"] == first["role"] and s["culprit's side"] == first["side"], f"{s} is not {first}")
            want(not first["pid"] or f"({first['pid']})" in s["culprit"], f"{s['culprit']} is not {first}")


def counters_check(r):
    delays, latencies = {}, collections.defaultdict(lambda: [0, 0, 0])
    steals = {(f"VM {row['vm']}: counters", row["guest_cpu"]): row for row in r.table("steal") if row["readings"]}
    for c in r.sql["counters"]:
        kind, cpu = re.fullmatch(r"(.*) (\d+)", c["name"].split(":")[0]).groups()
        if "run delay" in c["name"]:
            delays[c["vm"], int(cpu)] = c["total"]
        elif "latency" in c["name"]:
            sums = latencies[c["vm"]]
            sums[0], sums[1], sums[2] = sums[0] + c["n"], sums[1] + c["total"], max(sums[2], c["most"])
        elif "steal" in c["name"] and (c["vm"], int(cpu)) in steals:
            row = steals[c["vm"], int(cpu)]
            r.equal(f"{c['vm']}, {kind} {cpu}: steal", row["accounted_ns"], c["most"] - c["least"])
            r.equal(f"{c['vm']}, {kind} {cpu}: readings of steal", row["readings"], c["n"])
    for v in r.report["vcpus"]:
        r.equal(f"run delay of VM {v['vm']}, vCPU {v['vcpu']}", v["states_ns"]["runnable"],
                delays.get((f"VM {v['vm']}: counters", v["vcpu"])))
    chains = collections.defaultdict(lambda: [0, 0, 0])
    for row in r.table("chains"):
        if row["stage"] == "latency" and row["count"]:
            sums = chains[f"VM {row['vm']}: counters"]
            sums[0], sums[1], sums[2] = sums[0] + row["count"], sums[1] + row["total_ns"], max(sums[2], row["max_ns"])
    for vm in chains.keys() | latencies.keys():
        for what, ours, theirs in zip(("number", "sum", "longest"), chains[vm], latencies[vm]):
            r.equal(f"{vm}: {what} of latencies", ours, theirs)


def threads_check(r):
    """The states of each vCPU, and how long its thread ran; only threads that the recording has."""
    reported, slices, pieces = (collections.Counter() for _ in range(3))
    for v in r.report["vcpus"]:
        for state, ns in v["states_ns"].items():
            reported[state] += ns
    for s in r.sql["states"]:
        slices[s["state"]] += s["ns"]
        pieces[s["state"]] += s["n"]
    for state, ns in reported.items():
        r.equal(f"all vCPUs: {state}", ns, slices[state], SLEW * ns + sum(pieces.values()))
    known = {row["tid"] for row in r.rows(
        "SELECT DISTINCT tid FROM events WHERE side = 'host' UNION SELECT DISTINCT json_extract(fields, '$.next_pid') "
        "FROM events WHERE side = 'host' AND event = 'sched:sched_switch'")}
    invented = [t for t in r.sql["threads"] if t["machine"] == 0 and t["tid"] and t["tid"] not in known]
    want(not invented, f"threads that no event names: {invented[:3]}")
    if not r.lossless():
        return
    ran = {(row["vm"], row["vcpu"]): row["ran_ns"] for row in r.table("vcpu")}
    for t in r.sql["threads"]:
        if t["machine"] == 0 and t["tid"] in r.cpu_of and r.cpu_of[t["tid"]] in ran:
            ns = ran[r.cpu_of[t["tid"]]]
            r.ran(f"thread {t['tid']} ran", ns, t, SLEW * ns + EDGE_NS * t["n"])


def guests_check(r):
    """How long each guest task ran by its own kernel."""
    spans = r.rows("SELECT vm, pid, count(*) AS n, sum(duration_ns) AS ns FROM spans "
                   "WHERE kind = 'guest_cpu' AND pid > 0 GROUP BY vm, pid")
    believed = {(row["vm"], row["pid"]): row["believed_ns"] for row in r.table("tasks")}
    shown = {(r.machines.get(t["machine"]), t["tid"]): t for t in r.sql["threads"]}
    for row in spans:
        who = row["vm"], row["pid"]
        if who in believed:
            r.equal(f"guest task {who} ran", believed[who], row["ns"])
        if r.lossless():
            r.ran(f"guest task {who} ran", row["ns"], shown.get(who, {"ns": 0, "open": 0}), SLEW * row["ns"] + row["n"])


def sees_check(r):
    """One figure that is wrong is found."""
    for check, spoil in ((stalls_check, lambda: r.report["incidents"][0].update(denied="nothing")),
                         (counters_check, lambda: r.report["vcpus"][0]["states_ns"].update(runnable=1)),
                         (threads_check, lambda: r.report["vcpus"][0]["states_ns"].update(guest=1)),
                         (stats_check, lambda: r.sql["stats"].append({"severity": "error"}))):
        spoil()
        try:
            check(r)
        except Wrong:
            continue
        raise Wrong(f"{check.__name__} does not see what is wrong")


PAIRS = "guest:irq:softirq_entry", "guest:irq:softirq_exit"
PAIRS_SQL = """
    select count(*) as n, sum(dur) as ns, sum(extract_arg(slice.arg_set_id, 'debug.duration_ns')) as durations,
        count(distinct extract_arg(slice.arg_set_id, 'debug.key')) as keys,
        sum(extract_arg(slice.arg_set_id, 'debug.from.vec')) as numbers,
        count(extract_arg(slice.arg_set_id, 'debug.to.vec')) as with_fields
    from slice join track on track.id = track_id join track as pairs on pairs.id = track.parent_id
    where pairs.name = 'Pairs'"""


def pairs_check(r, folder, processor):
    """Slices of pairs, exported with -e, are the rows of `query`."""
    trace = os.path.join(folder, "pairs.pftrace")
    run(r.program, "export", r.path, "--to", "perfetto", "-e", PAIRS[0], "-e", PAIRS[1], "--key", "cpu", "-o", trace)
    theirs = processor.ask(trace, pairs=PAIRS_SQL)["pairs"][0]
    ours = r.rows("SELECT count(*) AS n, sum(end_ns - begin_ns) AS ns, sum(duration_ns) AS durations, "
                  f"count(DISTINCT key) AS keys FROM pairs('{PAIRS[0]}', '{PAIRS[1]}', 'cpu')")[0]
    vec = {(e["vm"], e["cpu"], e["t_ns"]): e["vec"] for e in r.rows(
        "SELECT vm, cpu, t_ns, fields ->> 'vec' AS vec FROM events WHERE event = 'irq:softirq_entry'")}
    ours["with_fields"] = ours["n"]
    ours["numbers"] = sum(int(vec[p["vm"], p["from_cpu"], p["begin_ns"]]) for p in r.rows(
        f"SELECT vm, from_cpu, begin_ns FROM pairs('{PAIRS[0]}', '{PAIRS[1]}', 'cpu')"))
    for what in "n", "durations", "keys", "numbers", "with_fields":
        r.equal(f"pairs: {what}", ours[what], theirs[what])
    r.equal("pairs: time", ours["ns"], theirs["ns"], EDGE_NS * (ours["n"] or 0))


def trace_check(program, path, folder, processor):
    r = Recording(program, path, folder, processor)
    for check in (stats_check, stalls_check, counters_check, threads_check, guests_check):
        check(r)
    pairs_check(r, folder, processor)
    compared = r.compared
    if r.report["incidents"]:
        sees_check(r)
    return compared


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    parser.add_argument("--trace-processor", default=DEFAULT)
    parser.add_argument("--all", action="store_true", help="all 30 recordings")
    a = parser.parse_args()
    why = missing(a.trace_processor)
    if why:
        print(f"skipped: {why}")
        return 77
    every = a.all or os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
    day, bad, n, real, compared = int(time.time()) // 86400, [], 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="vcpuscope-trace.") as folder, TraceProcessor(a.trace_processor) as processor:
        for at, (name, path, is_real) in enumerate(figure_recordings(a.vcpuscope, folder, data)):
            if not every and not (is_real and " " not in name) and (at + day) % 4:
                continue
            try:
                compared += trace_check(a.vcpuscope, path, folder, processor)
            except (Wrong, TraceError) as e:
                bad.append(f"{name}: {e}")
            n, real = n + 1, real + is_real
    print("\n".join(bad))
    print(f"{n} recordings, {real} of them real: {compared} figures compared, {len(bad)} recordings wrong")
    return bool(bad or not compared or every and (n < 30 or real < 10))


if __name__ == "__main__":
    sys.exit(main())
