#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The tables waits and threads: a vCPU thread's waits for a CPU are its run delay in the table vcpu; a guest task's
waits are those that its kernel's events give when they are followed here, one by one; what a loss may hide is not
counted, and its number is."""
import argparse
import json
import os
import subprocess
import sys

DEAD, STOPPED, BLOCKED, IDLE = 0xb0, 0x800c, 0x2, 0x400


def read(program, recording, *words):
    done = subprocess.run([program, "report", recording, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def rows_of(program, recording, name):
    page = json.loads(read(program, recording, name, "--top", "0", "--format", "json"))
    return next(t["rows"] for t in [page] + page.get("tables", []) if t["table"] == name)


def wait_of(state):
    if not state:
        return "preempted"
    if state & DEAD:
        return None
    if state & STOPPED:
        return "stopped"
    return "blocked" if state & BLOCKED and not state & IDLE else "sleeping"


def followed(program, recording):
    """(pid, wait) -> lengths, from the events of one guest that lost none."""
    doing, lengths = {}, {}

    def turn(pid, to, t):
        wait, since = doing.get(pid, (None, 0))
        if pid <= 0 or to == "wake-up" and wait in ("wake-up", "preempted", "running"):
            return
        if wait and wait != "running" and not (to == "running" and wait in ("blocked", "sleeping", "stopped")):
            lengths.setdefault((pid, wait), []).append(t - since)
        doing[pid] = to, t

    events = read(program, recording, "events", "-e", "guest:sched:sched_switch,guest:sched:sched_wakeup*", "--top",
                  "0", "--format", "json")
    for e in map(json.loads, events.splitlines()):
        fields, t = e["fields"], e["t_ns"]
        if e["event"].endswith("sched_switch"):
            turn(int(fields["prev_pid"]), wait_of(int(str(fields["prev_state"]), 0)), t)
            turn(int(fields["next_pid"]), "running", t)
        else:
            turn(int(fields["pid"]), "wake-up", t)
    return lengths


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    program = os.path.abspath(p.parse_args().vcpuscope)
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
    bad = []
    for name in "quickstart.vcs", "bed-a-stacks.vcs", "sim-lock.vcs":
        recording = os.path.join(data, name)
        delay = sum(r["run_delay_ns"] for r in rows_of(program, recording, "vcpu") if r["cause"] == "wake-up")
        waits = sum(r["total_ns"] for r in rows_of(program, recording, "threads")
                    if r["comm"].startswith("CPU ") and r["wait"] in ("wake-up", "preempted"))
        if not delay or delay != waits:
            bad.append(f"{name}: run delay {delay} ns, waits for a CPU {waits} ns")
    for name in "quickstart.vcs", "sim-lock.vcs":
        recording = os.path.join(data, name)
        rows = {(r["pid"], r["wait"]): r for r in rows_of(program, recording, "waits") if r["waits"]}
        wanted = followed(program, recording)
        if not rows or set(rows) != set(wanted):
            bad.append(f"{name}: rows {sorted(set(rows) ^ set(wanted))} are in one account only")
        for key in set(rows) & set(wanted):
            r, lengths = rows[key], wanted[key]
            if (r["waits"], r["total_ns"], r["min_ns"], r["max_ns"]) != \
                    (len(lengths), sum(lengths), min(lengths), max(lengths)):
                bad.append(f"{name}: {key}: {r}, not {len(lengths)} of {sum(lengths)} ns, the longest {max(lengths)}")
            middle = sorted(lengths)[(len(lengths) - 1) // 2]
            if abs(r["p50_ns"] - middle) > 0.008 * middle + 1:
                bad.append(f"{name}: {key}: median {r['p50_ns']}, not {middle}")
    lossy = rows_of(program, os.path.join(data, "sim-mixture-loss.vcs"), "waits")
    if not sum(r["incomplete"] for r in lossy):
        bad.append("sim-mixture-loss.vcs: no wait is incomplete")
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
