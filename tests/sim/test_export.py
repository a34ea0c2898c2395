# SPDX-License-Identifier: GPL-2.0-only
"""Exports of simulated recordings, without and with losses, read by an independent reader: slices nest,
arrows have two ends, each machine has its schedule, and every event of a guest falls while its vCPU's
thread runs, outside of its exits, within the error of the guest's times. Interrupts have the same times in
the trace and in CSV."""
import argparse
import collections
import csv
import json
import os
import re
import subprocess
import sys
import tempfile

import pftrace

CASES = [(scenario, seed, loss)
         for scenario in ("decoy.steady", "decoy.server", "vm_paused.signal", "vmm_lock",
                          "vcpu_not_scheduled.crowd", "guest_irq_storm")
         for seed, loss in ((1, "0"), (2, "0.05"), (3, "0.2"))]
# Many host events are lost between those of the guest.
CASES += [("vm_paused.signal", 12, "0.05"), ("vm_paused.signal", 9, "0.3"), ("decoy.server", 5, "0.3"),
          ("guest_spin.softirq", 15, "0.3")]


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}: {done.stderr}")
    return done.stderr


def report_of(vcpuscope, recording, *table):
    done = subprocess.run([vcpuscope, "report", recording, *table, "--format", "json"], capture_output=True,
                          text=True)
    if done.returncode not in (0, 5):
        sys.exit(f"report {recording}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def stalls_check(trace, report):
    """Each stall of the report is a slice with its verdict, culprit and confidence."""
    found = []
    for track in trace.events:
        path = trace.path(track)
        if ": stalls/" not in path:
            continue
        for s in trace.slices(track):
            a = trace.arguments[track, s.begin]
            found.append((path, s.name, a["incident"], a["confidence"], a["duration_ns"], a["why"],
                          a.get("culprit")))
            # BOOTTIME is slewed against the time of the recording, by 500 ppm at most.
            if abs((s.end - s.begin) - a["duration_ns"]) > 1 + 5e-4 * a["duration_ns"]:
                return [f"{s}: its length is not {a['duration_ns']}"]
    expected = []
    for number, i in enumerate(report["incidents"]):
        first = (i["culprits"] or [None])[0]
        culprit = None if not first else f"{first['comm'] or 'task'} ({first['pid']})" if first["pid"] \
            else first["what"]
        if not i["healthy"]:
            expected.append((f"VM {i['vm']}: stalls/guest CPU {i['guest_cpu']}", i["verdict"], number + 1,
                             i["confidence"], i["duration_ns"], i["because"], culprit))
    if sorted(found, key=str) != sorted(expected, key=str):
        return [f"stalls in the trace: {found}, in the report: {expected}"]
    return []


def counters_check(trace, report, chains):
    """Run delay sums to the report's; the largest latency is that of its table."""
    bad, delay, longest = [], collections.Counter(), collections.Counter()
    for track, values in trace.counters.items():
        path = trace.path(track)
        vm, cpu = re.match(r"VM (.*): counters/(?:guest CPU|vCPU) (\d+): ", path).groups()
        if "run delay" in path:
            delay[vm, int(cpu)] = sum(v for _, v in values)
        elif "latency" in path:
            longest[vm] = max(longest[vm], max(v for _, v in values))
    for v in report["vcpus"]:
        delay[v["vm"], v["vcpu"]] -= v["states_ns"]["runnable"]
    if any(delay.values()):
        bad.append(f"run delay differs from the report's by {delay} ns")
    reported = collections.Counter()
    for row in chains["rows"]:
        if row["stage"] == "latency":
            reported[row["vm"]] = max(reported[row["vm"]], row["max_ns"] or 0)
    if +reported != +longest:
        bad.append(f"the longest latencies are {dict(longest)} ns, in the report {dict(reported)}")
    return bad


def csv_rows(vcpuscope, recording, out):
    run(vcpuscope, "export", recording, "--to", "csv", "-o", out)
    with open(out, newline="") as f:
        return list(csv.DictReader(f))


def interrupts_check(trace, rows):
    """Each interrupt is as long, and as far from the first one, as in the CSV."""
    in_trace, in_csv = [], []
    for track in trace.events:
        found = re.match(r"VM (.*): interrupts/CPU (\d+)$", trace.path(track))
        if found:
            in_trace += [(found[1], int(found[2]), s.begin, s.end) for s in trace.slices(track)]
    in_csv = [(r["vm"], int(r["cpu"]), int(r["begin_ns"]), int(r["end_ns"]))
              for r in rows if r["kind"] == "interrupt"]
    if not in_csv or len(in_csv) != len(in_trace):
        return [f"{len(in_trace)} interrupts in the trace, {len(in_csv)} in the CSV"]
    before = None  # the trace's clock is slewed against that of the recording, by 500 ppm at most
    for ours, csvs in zip(sorted(in_trace), sorted(in_csv)):
        offset, longer = ours[2] - csvs[2], (ours[3] - ours[2]) - (csvs[3] - csvs[2])
        if ours[:2] != csvs[:2] or abs(longer) > 1 + 5e-4 * (csvs[3] - csvs[2]) or \
                before and abs(offset - before[1]) > 1 + 5e-4 * abs(csvs[2] - before[0]):
            return [f"interrupt {ours} of the trace is {csvs} in the CSV, {offset} ns apart"]
        before = csvs[2], offset
    return []


def perfetto_check(vcpuscope, recording, out, lossy, rows, controls):
    """controls: counts how often another vCPU's thread does not fit the events, as it should not."""
    told = run(vcpuscope, "export", recording, "--to", "perfetto", "-o", out)
    trace = pftrace.Trace(out)
    bad = pftrace.problems(trace)
    pairs = [(int(m.group(1)), int(c.group(1)), int(c.group(2)))
             for m in re.finditer(r"machine (\d+) is VM .*?:(.*)", told)
             for c in re.finditer(r"CPU (\d+) runs in thread (\d+);", m.group(2))]
    if not pairs:
        bad.append(f"no vCPU's thread was told: {told}")
    bad += interrupts_check(trace, rows)
    # The host's own clock is exact in a simulation.
    slack_ns = int(max(float(r["error_ns"]) for r in rows if r["kind"] != "vcpu")) + 1
    for machine, cpu, tid in pairs:
        bad += pftrace.vcpu_problems(trace, machine, cpu, tid, slack_ns)
        controls.update(bool(pftrace.vcpu_problems(trace, machine, cpu, other, slack_ns))
                        for vm, _, other in pairs if vm == machine and other != tid)
        states = {s.name for s in trace.slices(trace.thread_track(tid))}
        if not states & {"guest", "halted", "runnable", "kvm"}:
            bad.append(f"thread {tid} has no states: {states}")
    report = report_of(vcpuscope, recording)
    bad += stalls_check(trace, report)
    bad += counters_check(trace, report, report_of(vcpuscope, recording, "chains"))
    invented = [name for name in trace.names.values() if "not captured" in name]
    if invented:
        bad.append(f"{len(invented)} threads that do not exist: {invented[0]}")
    if lossy and not trace.losses:
        bad.append("losses are not marked")
    if not lossy and trace.losses:
        bad.append(f"{trace.losses} bundles are marked as lossy, and nothing was lost")
    return bad


def csv_check(rows, lossy):
    ends, bad, whole = {}, [], {"yes": 0, "no": 0}
    for row in rows:
        begin, end = int(row["begin_ns"]), int(row["end_ns"])
        if end - begin != int(row["duration_ns"]):
            bad.append(f"{row}: not its duration")
        if row["kind"] == "vcpu":
            if row["error_ns"]:
                bad.append(f"{row}: an error of the host's own time")
        elif not 0 < float(row["error_ns"]) < 1e6:
            bad.append(f"{row}: no error, or one that the simulation does not have")
        if row["kind"] == "interrupt":
            whole[row["whole"]] += 1
            continue
        key = row["kind"], row["vm"], row["cpu"]
        if ends.get(key, begin) != begin:
            bad.append(f"{row}: the span before ended at {ends[key]}")
        ends[key] = end
    if {row["kind"] for row in rows} != {"vcpu", "guest_cpu", "interrupt"}:
        bad.append("a kind of row is missing")
    if not whole["yes"] or (lossy and not whole["no"]):
        bad.append(f"interrupts that are whole: {whole}")
    return bad


def failure_check(vcpuscope, folder):
    """What is no recording is said to be none, and leaves nothing that looks like its trace."""
    bad, none, out = [], os.path.join(folder, "none"), os.path.join(folder, "left")
    with open(none, "w") as f:
        f.write("root:x:0:0:root:/root:/bin/sh\n")
    for kind in ("perfetto", "csv", "folded"):
        done = subprocess.run([vcpuscope, "export", none, "--to", kind, "-o", out], capture_output=True,
                              text=True)
        if not done.returncode or "not a recording" not in done.stderr or done.stderr.count("\n") != 1:
            bad.append(f"{kind} of no recording: exit {done.returncode}: {done.stderr}")
        if os.path.exists(out):
            bad.append(f"{kind} of no recording leaves a file")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    vcpuscope = parser.parse_args().vcpuscope
    failed, controls = 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        recording, out = os.path.join(folder, "run.vcs"), os.path.join(folder, "out")
        for line in failure_check(vcpuscope, folder):
            print(line)
            failed += 1
        for scenario, seed, loss in CASES:
            run(vcpuscope, "simulate", scenario, "--seed", str(seed), "--loss", loss, "-o", recording)
            rows = csv_rows(vcpuscope, recording, out)
            bad = perfetto_check(vcpuscope, recording, out, loss != "0", rows, controls)
            bad += csv_check(rows, loss != "0")
            for line in bad[:5]:
                print(f"{scenario}, seed {seed}, loss {loss}: {line}")
            failed += bool(bad)
    if controls[True] < sum(controls.values()) / 2:
        print(f"the events of a guest CPU fit another vCPU's thread, too, in {controls[False]} cases")
        failed += 1
    print(f"{len(CASES)} recordings, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
