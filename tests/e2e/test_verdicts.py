#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Provokes stalls of known cause on real kernels and checks the report about each.

One boot of a bed plays all provocations, one after another, into one recording. A case passes if the incident
at its time has the correct verdict and culprit, and the time in the state that the provoker measured around
its own calls. Exit status: 0 pass, 1 fail, 77 cannot run here.
"""
import argparse
import dataclasses
import json
import os
import re
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/beds"]
import bed  # noqa: E402
import cgroups  # noqa: E402
import check_quickstart  # noqa: E402
import run_scene  # noqa: E402
import scene  # noqa: E402

# The nested guest's firmware is on a disk that takes so long for a write.
DISK_DELAY_MS = 400
SLOW_DISK = ("cat /usr/share/seabios/bios-256k.bin >/dev/ram0 && dmsetup create slow --noudevrules --noudevsync "
             f"--table '0 512 delay /dev/ram0 0 0 /dev/ram0 0 {DISK_DELAY_MS}'")
ON_SLOW_DISK = "-drive if=pflash,format=raw,cache=none,file=/dev/dm-0"
# QEMU pauses the VM while it writes the guest's memory, compressed: else it takes only some 100 ms.
DUMP = ("provoke qmp {qmp} '{{\"execute\":\"dump-guest-memory\",\"arguments\":{{\"paging\":false,"
        "\"protocol\":\"file:/dev/null\",\"format\":\"kdump-zlib\"}}}}'")
FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
SERIES = ("6.1", "6.12")
PAUSE_S = 0.8  # between provocations
LOG_S = 2  # within which an agent in an emulated guest tells a line of the kernel's log, at the end, too
UNKNOWN_MAX = 0.25  # of a stall: switches that a busy machine's kernel does not show to the tracer
SPOILT_MAX = 4  # provocations that a busy machine may spoil
TOLERANCE = 0.1
SLACK_MS = 15  # what signalling, a tick and a wake-up add at the edges on a loaded machine


@dataclasses.dataclass(frozen=True)
class Case:
    """`command` is run where `side` says ("host", "guest"); it may use {pid}, {tid}, {qmp}, {frozen}.
    `states` share the time that the provoker measured; `culprit` is (side, comm) or None: nobody
    can be named. `at_least` is all that is known of the share where the provoker's own waits
    are part of what it measured. `load` keeps the guest busy meanwhile; `beds` are those that can play it. With `lockup` the guest's own
    watchdog must have spoken, and blamed the culprit if the guest is guilty, else somebody whom the
    report does not name."""
    name: str
    side: str
    command: str
    verdict: str
    states: tuple
    culprit: tuple = None
    at_least: float = 1 - TOLERANCE
    at_most: float = 1 + TOLERANCE
    load: str = "provoke compute 600000"
    lockup: bool = False
    beds: str = "ab"
    confidence: str = ""  # if not "", it must be this


CASES = (
    Case("SIGSTOP to the VM", "host", "provoke sigstop {pid} 400",
         "vm_paused", ("stopped",), ("host", "vm-stopper")),
    Case("a debugger stops the vCPU thread", "host", "provoke ptrace-stop {tid} 400",
         "vm_paused", ("stopped",), ("host", "thread-stopper")),
    Case("the freezer stops the vCPU thread", "host", "provoke freeze {frozen} 400",
         "vm_paused", ("stopped",)),
    # From before the one command to the reply to the other: on a slow machine they take their time.
    Case("QMP stop and cont", "host", "provoke pause {qmp} 400",
         "vm_paused", ("stopped",), at_least=0.7),
    Case("QEMU dumps the guest's memory", "host", DUMP,
         "vm_paused", ("stopped",), at_least=0.7),
    Case("the downtime of a migration", "host", "provoke migrate {qmp} 500",
         "migration", ("stopped",)),
    Case("a real-time task on the vCPU's pCPU", "host", f"provoke hog {scene.VCPU_CPU} 500",
         "vcpu_not_scheduled", ("runnable",), ("host", "cpu-hog")),
    # A period that ends inside lets the thread run in between: two stretches then.
    Case("the vCPU's CPU quota is used up", "host", "provoke quota {quota} 600",
         "cgroup_throttled", ("throttled",), at_least=0.4, confidence="decided"),
    Case("QEMU's big lock is kept", "host", "provoke biglock {qmp} 500",
         "vmm_lock", ("blocked",), ("host", "qemu-system-x86"),
         load="provoke device-read 600000"),
    Case("a device writes to a slow disk", "guest", "provoke stall flash 0",
         "storage_backend", ("blocked",), beds="b"),
    # The exits that a nested guest pays for its ticks and interrupts meanwhile are part of it.
    Case("guest: preemption off", "guest", "provoke stall preempt 500",
         "guest_spin", ("guest", "kvm"), ("guest", "guest-spinner")),
    Case("guest: interrupts off", "guest", "provoke stall irqsoff 400",
         "guest_spin", ("guest", "kvm"), ("guest", "guest-spinner")),
    Case("guest: one long softirq", "guest", "provoke stall softirq 400",
         "guest_spin", ("guest", "kvm")),
    Case("guest: one long interrupt", "guest", "provoke stall hardirq 400",
         "guest_spin", ("guest", "kvm")),
    Case("guest: a storm of a device's interrupts", "guest", "provoke stall irqstorm 500",
         "guest_irq_storm", ("guest", "kvm")),
    Case("guest: a storm of softirqs", "guest", "provoke stall softirqstorm 500",
         "guest_irq_storm", ("guest", "kvm")),
    Case("guest: preemption off until the watchdog speaks", "guest", "provoke stall preempt 4500",
         "guest_spin", ("guest", "kvm"), ("guest", "guest-spinner"), lockup=True),
    Case("SIGSTOP for 4 s: the guest's watchdog blames who ran", "host", "provoke sigstop {pid} 4000",
         "vm_paused", ("stopped",), ("host", "vm-stopper"), lockup=True),
)


def overlap_ns(incident, window):
    return min(incident["end_ns"], window[1]) - max(incident["begin_ns"], window[0])


def incident_of(report, window):
    """The incident that covers most of the window, None if none does."""
    best = max(report["incidents"], key=lambda i: overlap_ns(i, window), default=None)
    return best if best and overlap_ns(best, window) > 0 else None


def is_spoilt(case, measured, incident):
    """Had other tasks of a busy machine the pCPU for most of it, by the host scheduler's own account?
    Then that is the cause, whatever was provoked."""
    waited_ns = measured.get("run_delay_ns", 0)
    return (incident.get("verdict") == "vcpu_not_scheduled" != case.verdict
            and 2 * waited_ns >= incident["duration_ns"]
            and incident["breakdown_ns"]["runnable"] <= (1 + TOLERANCE) * waited_ns + SLACK_MS * 1e6)


def is_disturbed(measured, incident):
    """Had other tasks the pCPU for so long, or did the tracer miss so much, that not all can be certain?"""
    return (measured.get("run_delay_ns", 0) > TOLERANCE * incident["duration_ns"]
            or 0 < incident["breakdown_ns"]["unknown"] <= UNKNOWN_MAX * incident["duration_ns"])


def check(case, measured, report):
    """What differs: a list of lines."""
    incident = incident_of(report, measured["window"])
    if not incident:
        return ["no incident"]
    if is_spoilt(case, measured, incident):
        measured["spoilt"] = True
        return []
    wrong = []
    if incident.get("verdict") != case.verdict:
        wrong.append(f"verdict is {incident.get('verdict')}, not {case.verdict}: {incident['because']}")
    if incident["confidence"] == "undetermined":
        wrong.append(f"undetermined, missing {incident['missing']}")
    if case.confidence and incident["confidence"] != case.confidence and not is_disturbed(measured, incident):
        wrong.append(f"it is {incident['confidence']}, not {case.confidence}")
    if sum(incident["breakdown_ns"].values()) != incident["duration_ns"]:
        wrong.append("the breakdown does not sum to the duration")
    share = sum(incident["breakdown_ns"][state] for state in case.states)
    # A guest that spins has not what its vCPU waited for a pCPU meanwhile; the host counts it.
    waited = incident["breakdown_ns"]["runnable"] if case.side == "guest" else 0
    waited += min(incident["breakdown_ns"]["unknown"], UNKNOWN_MAX * measured["duration_ns"])
    low = case.at_least * measured["duration_ns"] - waited - SLACK_MS * 1e6
    high = case.at_most * measured["duration_ns"] + SLACK_MS * 1e6
    if not low <= share <= high:
        wrong.append(f"{'+'.join(case.states)} is {share / 1e6:.1f} ms, provoker measured "
                     f"{measured['duration_ns'] / 1e6:.1f} ms; {incident['breakdown_ns']}")
    if case.culprit and not any((c["side"], c["comm"]) == case.culprit for c in incident["culprits"]):
        wrong.append(f"culprit {case.culprit[1]} is not named, but {incident['culprits']}")
    if case.lockup:
        wrong += check_lockup(case, measured["dmesg"], incident, report)
    return wrong


def unprovoked(truth, gaps, report):
    """Incidents that nobody provoked, less those that a busy machine makes: its own scheduler's, and what
    lies in the gaps of an emulated host."""
    def is_machine(incident):
        absent_ns = check_quickstart.gaps_within_ns((incident["begin_ns"], incident["end_ns"]), gaps)
        return (incident.get("verdict") == "vcpu_not_scheduled"
                or absent_ns > check_quickstart.EXCUSING_SHARE * incident["duration_ns"])

    return [i for i in report["incidents"] if not is_machine(i)
            and all(overlap_ns(i, measured["window"]) <= 0 for measured in truth)]


def check_lockup(case, dmesg, incident, report):
    """What the report says of whom the guest's watchdog blamed."""
    blamed = re.search(r"BUG: soft lockup - CPU#\d+ stuck for \d+s! \[(.+):\d+\]", dmesg)
    if not blamed:
        return ["the guest's watchdog said nothing"]
    opinions = [line["opinion"] for line in report["guest_watchdog"]
                if line["incident"] == report["incidents"].index(incident)
                and line["blames"]["comm"] == blamed[1]]
    right = "right" if case.side == "guest" else "wrong"
    if not opinions or any(opinion != right for opinion in opinions):
        return [f"the guest's watchdog blames {blamed[1]}, which is {right}; the report says "
                f"{report['guest_watchdog']}"]
    return []


class Stage:
    """A booted bed with a recorder running: plays cases."""

    def __init__(self, played, qmp):
        self.host, self.guest, self._load = played.host, played.guest, None
        tid = self.host.run(f"for t in /proc/{played.qemu_pid}/task/*; do case $(cat $t/comm 2>/dev/null) in "
                            "'CPU 0/'*) echo ${t##*/} ;; esac; done").strip()
        self.cgroups = cgroups.VcpuCgroups(self.host, played.qemu_pid, tid)
        self._words = {"pid": played.qemu_pid, "tid": tid, "qmp": qmp, "frozen": self.cgroups.frozen,
                       "quota": self.cgroups.quota}
        # A watchdog that speaks after 2 s, and somebody who notices that the CPU is denied.
        self.guest.run("echo 1 >/proc/sys/kernel/watchdog_thresh; "
                       "provoke ticker 5000 >/dev/null 2>&1 </dev/null & true")

    def _now_ns(self):
        return json.loads(self.host.run("provoke now"))["begin_raw_ns"]

    def _run_delay_ns(self):
        return int(self.host.run(f"cut -d' ' -f2 /proc/{self._words['pid']}/task/{self._words['tid']}/schedstat"))

    def play(self, case):
        """What the provoker measured, the host's window around it, and the guest's new log lines."""
        place = self.host if case.side == "host" else self.guest
        prefix = f"taskset {1 << scene.HOST_CPU:x} " if case.side == "host" else ""
        if case.lockup:
            self.guest.run("dmesg -c >/dev/null")
        if case.load != self._load:
            self._load = case.load
            self.guest.run("[ ! -e /run/load.pid ] || kill $(cat /run/load.pid); "
                           f"{case.load} >/dev/null 2>&1 </dev/null & echo $! >/run/load.pid; sleep 0.5")
        begin_ns, waited_ns = self._now_ns(), self._run_delay_ns()
        measured = json.loads(place.run(prefix + case.command.format(**self._words)))
        measured["run_delay_ns"] = self._run_delay_ns() - waited_ns
        measured["window"] = ((measured["begin_raw_ns"], measured["end_raw_ns"])
                              if case.side == "host" else (begin_ns, self._now_ns()))
        if case.lockup:
            time.sleep(PAUSE_S)
            measured["dmesg"] = self.guest.run("dmesg -c")
            time.sleep(LOG_S)
        time.sleep(PAUSE_S)
        return measured


def play(builder, bed_name, out, say, only):
    """One boot, all cases: how many were explained rightly, and wrongly or out of nothing."""
    cases = [c for c in CASES if bed_name in c.beds and (not only or only in c.name)]
    with tempfile.TemporaryDirectory(prefix="vcpuscope-verdicts.") as folder:
        places = (run_scene.nested(builder, folder, say, SLOW_DISK, ON_SLOW_DISK) if bed_name == "b" else
                  run_scene.direct(builder, folder, say, "tcg"))
        with places as (played, machine):
            qmp = "/run/guest/qmp" if bed_name == "b" else machine.qmp_socket
            played.prepare()
            stage = Stage(played, qmp)
            with stage.cgroups:
                played.monitor = f"{qmp}-recorder"
                played.record_start()
                played.meter_start()
                truth = []
                for case in cases:
                    say(case.name)
                    truth.append(stage.play(case))
                played.meter_read()
                played.record_stop()
            _, report = played.report()
            os.makedirs(out, exist_ok=True)
            for name, content in (("run.vcs", played.host.get(f"{played.folder}/run.vcs")),
                                  ("report.json", json.dumps(report, indent=1).encode()),
                                  ("truth.json", json.dumps(truth, indent=1).encode())):
                with open(f"{out}/{name}", "wb") as f:
                    f.write(content)
    failed = spoilt = 0
    for case, measured in zip(cases, truth):
        wrong = check(case, measured, report)
        failed += bool(wrong)
        spoilt += measured.get("spoilt", False)
        gap_ns = check_quickstart.gaps_within_ns(measured["window"], played.truth["interference"])
        say(f"{'WRONG' if wrong else 'spoilt' if measured.get('spoilt') else 'right'}: {case.name}"
            + (f" (others had the pCPU for {measured['run_delay_ns'] / 1e6:.0f} ms, by /proc)"
               if measured.get("spoilt") else "")
            + (f" (the machine underneath was away for {gap_ns / 1e6:.0f} ms of it)" if gap_ns else "")
            + "".join(f"\n    {w}" for w in wrong))
    extra = unprovoked(truth, played.truth["interference"], report)
    for i in extra:
        say(f"WRONG: nobody provoked {i.get('verdict')}, {i['duration_ns'] / 1e6:.0f} ms: {i['because']}")
    acausal = report["clock"][0]["causality_violations"]
    if acausal or not report["clock"][0]["causality_pairs"]:
        say(f"WRONG: {acausal} of {report['clock'][0]['causality_pairs']} events lie before their cause")
    if spoilt > SPOILT_MAX:
        say(f"WRONG: {spoilt} provocations say nothing, because this machine is busy")
        failed += 1
    return len(cases) - failed - spoilt, failed + len(extra) + bool(acausal)


def add_round_arguments(p):
    p.add_argument("--kernel", choices=SERIES, help="default: 6.1, both with VCPUSCOPE_TEST_FULL=1")
    p.add_argument("--rounds", type=int, help="with each; default: 1, 10 with VCPUSCOPE_TEST_FULL=1")
    p.add_argument("--out", default="out", help="folder for the recording, the report and the truth")


def each_round(args, say):
    """Yields (builder, folder for the results) for every round that the arguments ask for."""
    kernels = (args.kernel,) if args.kernel else SERIES if FULL else SERIES[:1]
    rounds = args.rounds or (10 if FULL else 1)
    for kernel in kernels:
        builder = bed.Builder(None, kernel, say)
        for number in range(1, rounds + 1):
            several = f"/{kernel}-round-{number}" if rounds * len(kernels) > 1 else ""
            yield builder, os.path.abspath(args.out + several)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bed", choices=("a", "b"))
    p.add_argument("--only", help="only the cases whose name contains this")
    add_round_arguments(p)
    args = p.parse_args()
    if args.bed == "a" and os.geteuid():
        print("skipped: BPF on this machine's kernel needs root")
        return run_scene.SKIP
    if args.bed == "b" and not (FULL or args.rounds or args.only):
        print("skipped: two minutes a round; tests/run --full plays it, or --rounds 1")
        return run_scene.SKIP
    started = time.time()

    def say(text):
        print(f"[{time.time() - started:5.1f} s] {text}", flush=True)

    right = failed = 0
    with run_scene.own_signals():
        for builder, out in each_round(args, say):
            good, bad = bed.machine.retry_emulator(
                lambda: play(builder, args.bed, out, say, args.only), say)
            right, failed = right + good, failed + bad
    say(f"{right} of {right + failed} provocations explained rightly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
