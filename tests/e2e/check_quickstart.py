#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares a report with what the provoker measured around its own calls.

  check_quickstart.py REPORT.json TRUTH.json

TRUTH is {"stalls": [...], "interference": [...]}. Stalls are in the order they were provoked; each
has the verdict that is right, the vCPU state that must have lasted as long as the provoker measured,
who must be named, and the vCPU thread's run delay meanwhile by the host scheduler's own account: a
guest that spins for 600 ms of which its vCPU waited 50 ms for a pCPU has 550 ms in guest mode. Interference is when the machine underneath an emulated host did not run the
vCPU's pCPU at all: an incident that mostly lies in such gaps is real, unprovoked and no mistake.
Prints what differs, one line each; exit status 1 if anything does.
"""
import json
import sys

SHARE_TOLERANCE = 0.05


def named(incident, side, comm):
    return any(c["side"] == side and c["comm"] == comm for c in incident["culprits"])


def check_incident(incident, stall, error_ns):
    """What is wrong with one incident, as a list of lines."""
    wrong = []
    what = f"{stall['action']} ({stall['duration_ns'] / 1e6:.1f} ms)"

    def expect(condition, text):
        if not condition:
            wrong.append(f"{what}: {text}")

    breakdown = incident["breakdown_ns"]
    expect(incident.get("verdict") == stall["verdict"],
           f"verdict is {incident.get('verdict')}, not {stall['verdict']}: {incident.get('because')}")
    expect(incident["confidence"] != "undetermined", "confidence is undetermined")
    expect(sum(breakdown.values()) == incident["duration_ns"],
           f"breakdown sums to {sum(breakdown.values())} ns, duration is {incident['duration_ns']} ns")
    expect(incident["end_ns"] - incident["begin_ns"] == incident["duration_ns"],
           "end minus begin is not the duration")
    share = breakdown[stall["state"]]
    allowed = SHARE_TOLERANCE * stall["duration_ns"] + error_ns
    taken = stall["run_delay_ns"] if stall["state"] == "guest" else 0
    expect(stall["duration_ns"] - taken - allowed <= share <= stall["duration_ns"] + allowed,
           f"{stall['state']} share is {share / 1e6:.1f} ms, provoker measured "
           f"{stall['duration_ns'] / 1e6:.1f} ms, allowed is +-{allowed / 1e6:.1f} ms"
           + (f", less {taken / 1e6:.1f} ms of run delay" if taken else ""))
    if stall["on_host_clock"]:
        overlap = (min(incident["end_ns"], stall["end_raw_ns"])
                   - max(incident["begin_ns"], stall["begin_raw_ns"]))
        expect(overlap >= (1 - SHARE_TOLERANCE) * stall["duration_ns"] - error_ns,
               f"the incident covers only {overlap / 1e6:.1f} ms of it")
    expect(named(incident, stall["side"], stall["comm"]),
           f"no {stall['side']} culprit {stall['comm']}, but {incident['culprits']}")
    if stall["side"] == "guest":
        expect(incident["task"]["comm"] == stall["comm"],
               f"task is {incident['task']['comm']}, not {stall['comm']}")
    return wrong


def is_interference(incident, gaps):
    """Was the machine underneath absent for most of the incident?"""
    absent = sum(max(0, min(incident["end_ns"], gap["begin_raw_ns"] + gap["duration_ns"])
                     - max(incident["begin_ns"], gap["begin_raw_ns"])) for gap in gaps)
    return absent > incident["duration_ns"] / 2


def interference(report, truth):
    """The incidents that the machine underneath caused."""
    return [i for i in report["incidents"] if is_interference(i, truth["interference"])]


def check(report, truth):
    """What differs between a report and the truth: [] if nothing."""
    wrong = []
    if report.get("schema") != "vcpuscope.report/1":
        return [f"schema is {report.get('schema')}"]
    stalls = truth["stalls"]
    incidents = [i for i in report["incidents"] if not is_interference(i, truth["interference"])]
    clock = report["clock"][0] if report["clock"] else {"method": "none", "error_ns": 0}
    if clock["method"] == "none":
        wrong.append("no clock map between guest and host")
    if clock.get("causality_violations"):
        wrong.append(f"{clock['causality_violations']} events happened before their cause")
    if not report["complete"]:
        wrong.append("the recording was not closed cleanly")
    for source, loss in report["loss"].items():
        lost = sum(loss[k] for k in ("dropped_kernel", "dropped_user", "lost_frames", "late"))
        if lost:
            wrong.append(f"{source} lost {lost} events or frames: {loss}")
    if len(incidents) != len(stalls):
        wrong.append(f"{len(incidents)} incidents, {len(stalls)} stalls were provoked: " + "; ".join(
            f"{i.get('verdict')} {i['duration_ns'] / 1e6:.0f} ms at {i['begin_ns']}" for i in incidents))
    for incident, stall in zip(incidents, stalls):
        wrong += check_incident(incident, stall, clock["error_ns"])
    return wrong


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1]) as report, open(sys.argv[2]) as truth:
        wrong = check(json.load(report), json.load(truth))
    for line in wrong:
        print(f"differs: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
