#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests locks and function calls between the CPUs of a nested guest (bed B, two vCPUs), whose KVM takes no
PAUSE exits.

One CPU of the guest has a lock, or has its interrupts off; the other CPU waits for it. Meanwhile the host
does not run the owner's vCPU (a real-time task has its pCPU, or a debugger stops it). Or the host runs it,
and only the guest is the cause. All cases are played twice in one boot, the second time with samples of the
guest's stacks. A case passes if the report has the expected verdict (below) for the CPU that waits, and
blames the owner's CPU only for its own part.

Exit status: 0 pass, 1 fail, 77 cannot run here.
"""
import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/beds"]
import bed  # noqa: E402
import check_quickstart  # noqa: E402
import run_scene  # noqa: E402
import scene  # noqa: E402
import test_verdicts  # noqa: E402

OWNER_CPU, WAITER_CPU = 0, 1  # of the guest; the owner's vCPU has a pCPU of its own
HELD_MS, KEPT_MS, ALONE_MS = 700, 1000, 1200
LATE_MS = KEPT_MS / 2  # a waiter that begins so long after the owner met the keeper first, at another lock
AGENTS = ("", "--sample-hz 99")
PAUSE_S = 0.8
TRIES = 3


@dataclasses.dataclass(frozen=True)
class Case:
    """`owner` and `waiter` run in the guest, the waiter 0.2 s later; `keeper` runs on the host 0.3 s after the
    owner. `verdicts`: what the waiting CPU's incident may be called. `culprit`: (side, comm) of the first one
    blamed for it. `samples`: where samples find the waiter, "" where it has its interrupts off."""
    name: str
    owner: str
    waiter: str
    keeper: str
    verdicts: tuple
    culprit: tuple
    samples: str = ""
    decided: bool = False  # it may be


HOG, TRACE = "provoke hog {cpu} %d" % KEPT_MS, "provoke ptrace-stop {tid} %d" % KEPT_MS
PREEMPTED, SPIN = ("lock_holder_preempted",), ("guest_spin",)
BY_HOG, BY_TRACER, BY_OWNER = ("host", "cpu-hog"), ("host", "thread-stopper"), ("guest", "lock-owner")


def lock(name, hold, take, keeper, verdicts, culprit, samples="", decided=False):
    held = HELD_MS if keeper else ALONE_MS
    return Case(name, f"provoke lock-hold {OWNER_CPU} {hold} {held}", f"provoke lock-take {WAITER_CPU} {take}",
                keeper, verdicts, culprit, samples, decided)


CASES = (
    lock("a reader-writer lock, its writer preempted", "write", "read", HOG, PREEMPTED, BY_HOG, "_lock"),
    lock("a reader-writer lock, its reader preempted", "read", "write", HOG, PREEMPTED, BY_HOG, "_lock"),
    # A paravirtual spinlock may halt for its owner, which is proof.
    lock("a spinlock, its owner preempted", "spin", "spin", HOG, PREEMPTED, BY_HOG, decided=True),
    lock("a spinlock, interrupts off, its owner preempted", "irqsave", "irqsave", HOG, PREEMPTED, BY_HOG,
         decided=True),
    lock("a reader-writer lock, its writer's thread traced", "write", "read", TRACE, PREEMPTED, BY_TRACER,
         "_lock"),
    lock("a reader-writer lock within the guest, written", "write", "read", "", SPIN, BY_OWNER, "_lock"),
    lock("a reader-writer lock within the guest, read", "read", "write", "", SPIN, BY_OWNER, "_lock"),
    lock("a spinlock within the guest", "spin", "spin", "", SPIN, BY_OWNER),
    lock("a spinlock within the guest, interrupts off", "irqsave", "irqsave", "", SPIN, BY_OWNER),
    Case("a call to a CPU with interrupts off", f"provoke stall irqsoff {ALONE_MS}",
         f"provoke call {WAITER_CPU} {OWNER_CPU} 300", "", SPIN, ("guest", "guest-spinner"), "smp_call"),
    Case("a call to a CPU that is preempted", f"provoke compute {HELD_MS + KEPT_MS}",
         f"provoke call {WAITER_CPU} {OWNER_CPU} 800", HOG, ("ipi_target_preempted",), BY_HOG, "smp_call",
         decided=True),
)


def overlaps(incident, window):
    return min(incident["end_ns"], window[1]) - max(incident["begin_ns"], window[0])


def incident_on(report, cpu, window):
    """That of this guest CPU which lies most in the window."""
    there = [i for i in report["incidents"] if i["guest_cpu"] == cpu and overlaps(i, window) > 0]
    return max(there, key=lambda i: overlaps(i, window), default=None)


def met_another_lock(case, waiter):
    """An interrupt of the waiting CPU may want a lock that the owner's CPU held when it lost its pCPU: that of the
    serial port, or of a run queue. These spinlocks are paravirtual, so the CPU halts, which is proof; and the halt
    is longer than what the provoked wait has left."""
    return case.keeper and waiter["because"].startswith("the guest halted with a task to run")


def interrupt_waits(case, waiter):
    """Or they are no paravirtual spinlocks, and the interrupt spins, which no sample shows: samples are interrupts.
    If it reads the time while the owner's CPU, preempted within its tick, changes it, that is before the first event
    of its handler. If the caller slept between two calls, its CPU is idle then."""
    return case.keeper and waiter["kind"] in ("idle", "hardirq", "softirq")


def caller_waits(case, waiter):
    """Or the caller itself reads the time, between two calls."""
    return case.keeper and case.waiter.startswith("provoke call ") and waiter["verdict"] in PREEMPTED


def check(case, window, sampled, report):
    """What differs: a list of lines."""
    waiter = incident_on(report, WAITER_CPU, window)
    owner = incident_on(report, OWNER_CPU, window)
    wrong = []
    if not waiter:
        return ["no incident of the waiting CPU"]
    first = waiter["culprits"][0] if waiter["culprits"] else {"side": "", "comm": "nobody"}
    if met_another_lock(case, waiter):
        case = dataclasses.replace(case, verdicts=PREEMPTED, samples="", decided=True)
    elif interrupt_waits(case, waiter) or caller_waits(case, waiter):
        case = dataclasses.replace(case, verdicts=PREEMPTED + case.verdicts, samples="")
    if (first["side"], first["comm"]) != case.culprit:
        wrong.append(f"the waiter's first culprit is {first['comm']}, not {case.culprit[1]}: {waiter['because']}")
    if waiter["verdict"] not in case.verdicts or waiter["confidence"] == "undetermined":
        wrong.append(f"the waiter's is {waiter['verdict']}, {waiter['confidence']}: {waiter['because']}")
    if waiter["confidence"] == "decided" and not case.decided:
        wrong.append(f"the waiter's is decided: {waiter['because']}")
    spins = [e["text"] for e in waiter["evidence"] if "stack samples" in e["text"]]
    if sampled and case.samples and not any(" spins in " in e and case.samples in e for e in spins):
        wrong.append(f"no sample shows that the waiter spins: {spins}")
    if not sampled and spins:
        wrong.append(f"samples without sampling: {spins}")
    if not owner:
        wrong.append("no incident of the owner's CPU")
    else:
        blamed = [c["comm"] for c in owner["culprits"]]
        if not case.keeper and (owner["verdict"] != "guest_spin" or blamed[:1] != [case.culprit[1]]):
            wrong.append(f"the owner's is {owner['verdict']} by {blamed}: {owner['because']}")
        if case.keeper and case.culprit[1] not in blamed:
            wrong.append(f"the owner's culprits are {blamed}, not {case.culprit[1]}: {owner['because']}")
        if owner.get("runner_up") == "timer_late":
            wrong.append("the owner's runner-up is timer_late")
    return wrong


class Stage:
    def __init__(self, played, say):
        self.host, self.guest, self._say = played.host, played.guest, say
        self._tid = self.host.run(f"for t in /proc/{played.qemu_pid}/task/*; do case $(cat $t/comm) in "
                                  f"'CPU {OWNER_CPU}/'*) echo ${{t##*/}} ;; esac; done").strip()
        for cpu in (OWNER_CPU, WAITER_CPU):
            self.guest.run(f"provoke heartbeat {cpu} 5000 >/dev/null 2>&1 </dev/null &")

    def _now_ns(self):
        return json.loads(self.host.run("provoke now"))["begin_raw_ns"]

    def play(self, case):
        """The host's (begin, end) of a provocation that came off: on a busy machine the keeper may come before
        the owner has its lock, or the waiter when it is free again."""
        for _ in range(TRIES):
            try:
                window, lines = self._play_once(case)
            except bed.machine.EmulatorFault:
                raise
            except bed.machine.MachineError as error:
                self.guest.check_alive(error)
                raise
            late_ns = lines[1]["begin_raw_ns"] - lines[0]["begin_raw_ns"]
            if late_ns <= LATE_MS * 1e6 and all(
                    line["duration_ns"] >= least * 1e6 for line, least in
                    zip(lines, ((KEPT_MS, KEPT_MS / 2) if case.keeper else (ALONE_MS, ALONE_MS / 3)))):
                return window, lines
            self._say(f"{case.name}: it did not come off: {lines}")
        raise scene.SceneError(f"{case.name} did not come off in {TRIES} tries")

    def _play_once(self, case):
        # Not on the owner's CPU, whose timers it may hold up. The answer leaves the guest before the owner turns
        # interrupts off: after that, an exiting shell may wait for that CPU (it flushes the TLBs of all CPUs).
        start = (f"rm -f /run/owner* /run/waiter*; taskset -p {1 << WAITER_CPU:x} $$ >/dev/null; "
                 f"{{ sleep 0.2; {case.owner} >/run/owner 2>&1; touch /run/owner.over; }} & "
                 f"{{ sleep 0.4; {case.waiter} >/run/waiter 2>&1; touch /run/waiter.over; }} &")
        end = ("while [ ! -e /run/owner.over ] || [ ! -e /run/waiter.over ]; do sleep 0.1; done; "
               "cat /run/owner /run/waiter")
        keeper = case.keeper.format(cpu=scene.VCPU_CPU, tid=self._tid)
        begin_ns = self._now_ns()
        said = self.host.run(f"bed-control call /run/guest/control '{start}'; "
                             + (f"sleep 0.5; taskset {1 << scene.HOST_CPU:x} {keeper} >/run/keeper; "
                                if keeper else "")
                             + f"bed-control call /run/guest/control '{end}'"
                             + ("; cat /run/keeper" if keeper else ""))
        window = begin_ns, self._now_ns()
        lines = [line for line in said.splitlines() if line.strip()]
        if len(lines) != 2 + bool(keeper) or not all(line.startswith("{") for line in lines):
            failure = self.host.guest_failure(f"{case.name}: {said}")
            if isinstance(failure, bed.machine.EmulatorFault):
                raise failure
            # Not a MachineError: a guest that ended is no guest that stands still.
            raise scene.SceneError(str(failure))
        time.sleep(PAUSE_S)
        return window, [json.loads(line) for line in lines]


def play(builder, out, say, only, extra):
    """One boot: how many cases were right, and wrong."""
    cases = [c for c in CASES if not only or only in c.name]
    right = failed = 0
    with tempfile.TemporaryDirectory(prefix="vcpuscope-locks.") as folder, \
            bed.boot_b(builder) as host:
        say(f"host with KVM is up after {host.boot_s:.1f} s")
        pid = bed.guest_start(host, say, f"guest-start 2 {extra}")
        played = scene.Scene(host, scene.NestedGuest(host), pid, "/run/guest/agent", "/root/out", say,
                             emulated=True)
        played.place_threads()
        played.guest.run("insmod /root/stall.ko")
        stage = Stage(played, say)
        for agent in AGENTS:
            where = f"{out}/{'sampled' if agent else 'plain'}"
            played.agent_start(agent)
            played.truth["interference"].clear()
            played.record_start()
            played.meter_start()
            truth = []
            for case in cases:
                say(case.name + (", sampled" if agent else ""))
                truth.append(stage.play(case))
            played.meter_read()
            played.record_stop()
            _, report = played.report()
            played.guest.run("kill $(cat /run/agent.pid)")
            os.makedirs(where, exist_ok=True)
            for name, content in (("run.vcs", played.host.get(f"{played.folder}/run.vcs")),
                                  ("report.json", json.dumps(report, indent=1).encode()),
                                  ("truth.json", json.dumps(truth, indent=1).encode())):
                with open(f"{where}/{name}", "wb") as f:
                    f.write(content)
            for case, (window, _) in zip(cases, truth):
                wrong = check(case, window, bool(agent), report)
                gap_ns = check_quickstart.gaps_within_ns(window, played.truth["interference"])
                right, failed = right + (not wrong), failed + bool(wrong)
                say(f"{'WRONG' if wrong else 'right'}: {case.name}{', sampled' if agent else ''}"
                    + (f" (the machine underneath was away for {gap_ns / 1e6:.0f} ms of it)" if gap_ns else "")
                    + "".join(f"\n    {w}" for w in wrong))
    return right, failed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", help="only the cases whose name contains this")
    p.add_argument("--guest-arguments", default="", help="more for the guest's QEMU")
    test_verdicts.add_round_arguments(p)
    args = p.parse_args()
    if not (test_verdicts.FULL or args.rounds or args.only):
        print("skipped: two minutes a round; tests/run --full plays it, or --rounds 1")
        return run_scene.SKIP
    started = time.time()

    def say(text):
        print(f"[{time.time() - started:5.1f} s] {text}", flush=True)

    right = failed = 0
    with run_scene.own_signals():
        for builder, out in test_verdicts.each_round(args, say):
            good, bad = bed.machine.retry_emulator(
                lambda: play(builder, out, say, args.only, args.guest_arguments), say)
            right, failed = right + good, failed + bad
    say(f"{right} of {right + failed} provocations explained rightly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
