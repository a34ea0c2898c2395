#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares a report with the times that the provoker measured around its own calls.

  check_quickstart.py REPORT.json TRUTH.json

TRUTH is {"stalls": [...], "interference": [...], "emulated": true if the host is emulated}. Stalls are in the
order in which they were provoked. Each has the correct verdict, the vCPU state that lasted as long as the
provoker measured, the names that the report must contain, and the vCPU thread's run delay during the stall,
as the host's scheduler counted it. For example, a guest that spins for 600 ms while its vCPU waits 50 ms for
a pCPU has 550 ms in guest mode. Interference lists the times in which the machine under an emulated host did
not run the vCPU's pCPU. An incident that mostly lies in these times is real but was not provoked, and is no
mistake.

Prints one line for each difference. Exit status: 1 if there is any.
"""
import dataclasses
import json
import re
import sys

SHARE_TOLERANCE = 0.05
DELAY_TOLERANCE = 0.01
STEAL_SLACK_UNITS = 4  # a unit and a late tick at either end
# The scheduler's own clock, by which it (and so KVM) accounts waits, is read before the tracepoints' programs
# run: on an emulated host 40 us apart for each wait, 200 us where the machine underneath is busy (measured;
# ftrace's stamps of the same run agree with ours, not with the account).
WAIT_SLACK_NS = 80_000
WAIT_SLACK_BUSY_NS = 300_000
EXCUSING_SHARE = 0.25  # of a stretch: from there on denied time alone makes an incident (docs/verdicts.md)
METER_PERIOD_NS = 20_000_000  # how much longer than measured a gap may have been


@dataclasses.dataclass(frozen=True)
class Difference:
    """One thing that is wrong. The machine underneath can only have caused it if it held the host up
    for at least `needed_ns` inside `window`; no window: it cannot have."""
    text: str
    window: tuple = None
    needed_ns: int = 0

    def __str__(self):
        return self.text


def named(incident, side, comm):
    return any(c["side"] == side and c["comm"] == comm for c in incident["culprits"])


def check_incident(incident, stall, error_ns):
    """What is wrong with one incident, as a list of Differences."""
    wrong = []
    what = f"{stall['action']} ({stall['duration_ns'] / 1e6:.1f} ms)"
    window = (incident["begin_ns"], incident["end_ns"])
    much = int(EXCUSING_SHARE * stall["duration_ns"])

    def expect(condition, text, needed_ns=None):
        if not condition:
            wrong.append(Difference(f"{what}: {text}", window if needed_ns is not None else None,
                                    needed_ns or 0))

    breakdown = incident["breakdown_ns"]
    expect(incident.get("verdict") == stall["verdict"],
           f"verdict is {incident.get('verdict')}, not {stall['verdict']}: {incident.get('because')}", much)
    expect(incident["confidence"] != "undetermined", "confidence is undetermined", much)
    expect(sum(breakdown.values()) == incident["duration_ns"],
           f"breakdown sums to {sum(breakdown.values())} ns, duration is {incident['duration_ns']} ns")
    expect(incident["end_ns"] - incident["begin_ns"] == incident["duration_ns"],
           "end minus begin is not the duration")
    share = breakdown[stall["state"]]
    allowed = SHARE_TOLERANCE * stall["duration_ns"] + error_ns
    taken = stall["run_delay_ns"] if stall["state"] == "guest" else 0
    low, high = stall["duration_ns"] - taken - allowed, stall["duration_ns"] + allowed
    expect(low <= share <= high,
           f"{stall['state']} share is {share / 1e6:.1f} ms, provoker measured "
           f"{stall['duration_ns'] / 1e6:.1f} ms, allowed is +-{allowed / 1e6:.1f} ms"
           + (f", less {taken / 1e6:.1f} ms of run delay" if taken else ""), max(low - share, share - high))
    if stall["on_host_clock"]:
        overlap = (min(incident["end_ns"], stall["end_raw_ns"])
                   - max(incident["begin_ns"], stall["begin_raw_ns"]))
        least = (1 - SHARE_TOLERANCE) * stall["duration_ns"] - error_ns
        expect(overlap >= least, f"the incident covers only {overlap / 1e6:.1f} ms of it", least - overlap)
    expect(named(incident, stall["side"], stall["comm"]),
           f"no {stall['side']} culprit {stall['comm']}, but {incident['culprits']}", much)
    if stall["side"] == "guest":
        expect(incident["task"]["comm"] == stall["comm"],
               f"task is {incident['task']['comm']}, not {stall['comm']}", much)
    return wrong


def gaps_within_ns(window, gaps):
    """For how long the machine underneath was absent inside the window."""
    return sum(max(0, min(window[1], gap["begin_raw_ns"] + gap["duration_ns"])
                   - max(window[0], gap["begin_raw_ns"])) for gap in gaps)


def is_excused(difference, gaps):
    """Can the machine underneath have caused it? Only gaps that lie where it differs count."""
    if not difference.window:
        return False
    absent = gaps_within_ns(difference.window, gaps)
    return absent > 0 and absent + METER_PERIOD_NS >= difference.needed_ns


def pairs(incidents, stalls):
    """([(incident, stall)], the incidents left over, the stalls left over): by time where the stall is
    on the host's clock, by who is named in a guest, then what is left in order."""
    left, matched = list(incidents), {}
    for number, stall in enumerate(stalls):
        for incident in left:
            if (incident["begin_ns"] < stall["end_raw_ns"] and stall["begin_raw_ns"] < incident["end_ns"]
                    if stall["on_host_clock"] else named(incident, stall["side"], stall["comm"])):
                matched[number] = incident
                left.remove(incident)
                break
    if len(incidents) == len(stalls):
        for number in range(len(stalls)):
            if number not in matched:
                matched[number] = left.pop(0)
    return ([(matched[n], stalls[n]) for n in sorted(matched)], left,
            [stall for number, stall in enumerate(stalls) if number not in matched])


def is_interference(incident, gaps):
    """Was the machine underneath absent for most of the incident?"""
    absent = gaps_within_ns((incident["begin_ns"], incident["end_ns"]), gaps)
    return absent > incident["duration_ns"] / 2


def interference(report, truth):
    """The incidents that the machine underneath caused."""
    return [i for i in report["incidents"] if is_interference(i, truth["interference"])]


def account_slack_ns(vcpus, truth):
    """How far the host scheduler's own account may be from what its tracepoints show."""
    if not truth.get("emulated"):
        return 0
    return sum(vcpu["waits"] for vcpu in vcpus) * (WAIT_SLACK_BUSY_NS if truth["interference"]
                                                   else WAIT_SLACK_NS)


def check_run_delay(vcpus, tasks, truth):
    """What differs between the figures and the host scheduler's own account of the vCPU thread's run
    delay, which was read inside and around the recording."""
    inside, around = truth["run_delay_ns"]
    found = max(row["run_delay_ns"] for row in vcpus)
    slack = account_slack_ns(vcpus, truth)
    wrong = []
    if not inside * (1 - DELAY_TOLERANCE) - slack <= found <= around * (1 + DELAY_TOLERANCE) + slack:
        wrong.append(Difference(f"run delay is {found / 1e6:.1f} ms; /proc says {inside / 1e6:.1f} inside "
                                f"the recording, {around / 1e6:.1f} around it"))
    billed = sum(row["run_delay_ns"] for row in tasks)
    if billed > found:
        wrong.append(Difference(f"tasks are billed {billed / 1e6:.1f} ms of run delay, more than there was"))
    for stall in truth["stalls"]:
        if "guest_ran_ns" in stall:
            wrong += check_payer(tasks, stall)
    return wrong


def payers(stall):
    """The guest tasks that may have been on the CPU while the host denied it: their own time, by the
    guest's account, grew by as much."""
    return [comm for comm, grew in stall["guest_ran_ns"].items()
            if grew >= (1 - SHARE_TOLERANCE) * stall["duration_ns"]]


def check_payer(tasks, stall):
    """The longest wait is billed to who was on the guest's CPU when it began. Mostly that is the task
    that computes, now and then one that runs for a moment only."""
    worst = max(tasks, key=lambda row: row["run_delay_ns"])
    may = payers(stall)
    # The guest's scheduler charges the next task from the moment it has chosen it; sched_switch comes after
    # that. A vCPU that loses its pCPU in between has that task waiting, as the report says.
    if worst["comm"] not in may and stall.get("waiter") not in may:
        return [Difference(f"{worst['comm']} is billed most run delay; the guest's own account says "
                           f"{' or '.join(may) or 'nobody'}: {stall['guest_ran_ns']}")]
    least = (1 - SHARE_TOLERANCE) * stall["duration_ns"]
    if worst["run_delay_ns"] < least:
        return [Difference(f"{worst['comm']} is billed {worst['run_delay_ns'] / 1e6:.1f} ms of the hog's "
                           f"{stall['duration_ns'] / 1e6:.1f}")]
    return []


def check_steal(steal, vcpus, truth):
    """What differs between the guest's own account of its steal and the run delay that was measured."""
    if len(steal) != 1 or steal[0]["accounted_ns"] is None or steal[0]["readings"] < 2:
        return [Difference(f"the guest's account of its steal is missing: {steal}")]
    row = steal[0]
    allowed = STEAL_SLACK_UNITS * row["unit_ns"] + account_slack_ns(vcpus, truth)
    if abs(row["accounted_ns"] - row["measured_ns"]) > allowed:
        return [Difference(f"the guest accounts {row['accounted_ns'] / 1e6:.1f} ms of steal, measured are "
                           f"{row['measured_ns'] / 1e6:.1f}")]
    return []


def check(report, truth, host_loss_share=0.0):
    """What differs between a report and the truth, as a list of Differences: [] if nothing. The host may
    have lost that share of its events."""
    wrong = []

    def differs(text, *where):
        wrong.append(Difference(text, *where))

    if report.get("schema") != "vcpuscope.report/1":
        return [Difference(f"schema is {report.get('schema')}")]
    stalls = truth["stalls"]
    incidents = [i for i in report["incidents"] if not is_interference(i, truth["interference"])]
    clock = report["clock"][0] if report["clock"] else {"method": "none", "error_ns": 0}
    if clock["method"] == "none":
        differs("no clock map between guest and host")
    if clock.get("causality_violations"):
        differs(f"{clock['causality_violations']} events happened before their cause")
    if not report["complete"]:
        differs("the recording was not closed cleanly")
    for source, loss in report["loss"].items():
        lost = sum(loss[k] for k in ("dropped_kernel", "dropped_user", "lost_frames", "late"))
        if lost > loss["emitted"] * (host_loss_share if source == "host" else 0):
            differs(f"{source} lost {lost} events or frames: {loss}")
    matched, extra, missing = pairs(incidents, stalls)
    for incident in extra:
        differs(f"nobody provoked {incident.get('verdict')}, {incident['duration_ns'] / 1e6:.0f} ms at "
                f"{incident['begin_ns']}: {incident.get('because')}",
                (incident["begin_ns"], incident["end_ns"]), int(EXCUSING_SHARE * incident["duration_ns"]))
    for stall in missing:
        differs(f"no incident for {stall['action']} ({stall['duration_ns'] / 1e6:.1f} ms)")
    for incident, stall in matched:
        waiter = re.match(r"(.+) \(\d+\) was ready to run on this CPU", incident.get("denied", ""))
        stall["waiter"] = waiter[1] if waiter else None
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
