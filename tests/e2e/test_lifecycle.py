#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests stalls before and after changes: vCPUs are added and removed, the guest's agent is killed and starts
again, the VM is paused, the guest reboots, panics and is reset. The report must have exactly the real stalls.

One boot plays the scenes, each into a separate recording. On bed A, these are watch and reboot by default.
Exit status: 0 pass, 1 fail, 77 cannot run here.
"""
import argparse
import contextlib
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
import check_quickstart  # noqa: E402
import run_scene  # noqa: E402
import scene  # noqa: E402
import test_verdicts  # noqa: E402
from test_verdicts import Case  # noqa: E402

QEMU_ARGUMENTS = ("-smp", "1,maxcpus=2", "-action", "reboot=reset,panic=none", "-device", "pvpanic-pci")
HOT_CPU = {"a": "max-x86_64-cpu", "b": "host-x86_64-cpu"}
PAUSE_S = 0.8
BOOT_MAX_S = 90
TOLD_MAX_S = 3  # by watch, after a stall's end
# The bound on the guest's times away from a pause, on bed A from round trips alone. A machine that
# stands still makes the agent's drains long, and their bounds wide: 1.3 ms were seen.
ERROR_MAX_NS = {"a": 50_000_000, "b": 5_000_000}
BESIDE_MAX = 0.05  # of a guest's events may lie on either side of a pause

SPIN = Case("guest: preemption off", "guest", "", "guest_spin", ("guest", "kvm"), ("guest", "guest-spinner"),
            confidence="decided")
STOP = Case("SIGSTOP to the VM", "host", "", "vm_paused", ("stopped",), ("host", "vm-stopper"),
            confidence="decided")
PAUSED = Case("QMP stop and cont", "host", "", "vm_paused", ("stopped",), ("host", "vm-pauser"), at_least=0.7)
# A guest's task pays for a pause for a while, and so may wait for a CPU that is not denied.
AFTER = dataclasses.replace(SPIN, confidence="")
LOCKUP_MS = 4500  # the guest's watchdog speaks after two to four seconds
SPOILING_SHARE = 0.05  # of a stall: so long the machine underneath an emulated one was away


class Life:
    """A booted bed that plays scenes. `truth` is of the scene that goes on: [(Case, what was measured)]."""

    def __init__(self, name, played, qmp, say):
        self.bed, self.played, self.host, self.guest, self.say = name, played, played.host, played.guest, say
        self._qmp = qmp
        played.monitor = f"{qmp}-recorder"
        self.truth, self.report = [], {}
        # Windows of what denies a CPU by itself: a CPU that comes up, QEMU that makes one with its big
        # lock held, a guest that boots.
        self.known = []

    # What is done to the machine.

    def now_ns(self):
        return json.loads(self.host.run("provoke now"))["begin_raw_ns"]

    def qmp(self, command, **arguments):
        request = json.dumps({"execute": command, **({"arguments": arguments} if arguments else {})})
        self.host.run(f"provoke qmp {self._qmp} '{request}'")

    def agent_start(self):
        self.played.agent_start()

    def guest_up(self):
        """What a boot of the guest takes along: the module, the agent, and tasks that want the CPU."""
        self.guest.run("insmod /root/stall.ko; echo 1 >/proc/sys/kernel/watchdog_thresh; "
                       "provoke ticker 5000 >/dev/null 2>&1 </dev/null & "
                       "provoke compute 600000 >/dev/null 2>&1 </dev/null & echo $! >/run/compute.pid")
        self.agent_start()

    def wait_agent(self, times):
        """Until the recorder has heard the agent so often."""
        self.host.run(f"cd {self.played.folder}; i=0; until [ $(grep -c 'on guest kernel' record.log) -ge {times} ] "
                      "|| [ $i -ge 150 ]; do sleep 0.2; i=$((i + 1)); done; sleep 1; "
                      "[ $i -lt 150 ] || { cat record.log; for t in /proc/$(pidof vcpuscope | cut -d' ' -f1)/task/*; "
                      "do cat $t/comm $t/stack; done; dmesg | tail -n 60; exit 1; }", timeout_s=60)

    def spin(self, ms=500, cpu=0, case=SPIN):
        begin_ns, waited_ns = self.now_ns(), self.played.run_delay_ns(cpu)
        measured = json.loads(self.guest.run(f"provoke stall preempt {ms}@{cpu}"))
        self._done(case, {**measured, "window": (begin_ns, self.now_ns()),
                          "run_delay_ns": self.played.run_delay_ns(cpu) - waited_ns})

    def stop(self, ms=300, case=STOP):
        measured = json.loads(self.host.run(
            f"taskset {1 << scene.HOST_CPU:x} provoke sigstop {self.played.qemu_pid} {ms}"))
        self._done(case, {**measured, "window": (measured["begin_raw_ns"], measured["end_raw_ns"])})

    def pause(self, ms):
        measured = json.loads(self.host.run(
            f"taskset {1 << scene.HOST_CPU:x} provoke pause {self._qmp} {ms}"))
        self._done(PAUSED, {**measured, "window": (measured["begin_raw_ns"], measured["end_raw_ns"])})

    def _done(self, case, measured):
        self.truth.append((case, measured))
        time.sleep(PAUSE_S)

    def lockup(self, act):
        """A stall after which the guest's own watchdog speaks."""
        self.guest.run("dmesg -c >/dev/null")
        act()
        case, measured = self.truth[-1]
        time.sleep(test_verdicts.PAUSE_S)
        measured["dmesg"] = self.guest.run("dmesg -c")
        self.truth[-1] = dataclasses.replace(case, lockup=True), measured
        time.sleep(test_verdicts.LOG_S)

    def boots(self, how):
        """The guest goes down by `how` and is up again."""
        begin_ns = self.now_ns()
        how()
        self.guest.run("true", timeout_s=BOOT_MAX_S)
        self.known.append({"window": (begin_ns, self.now_ns())})
        self.guest_up()

    def reboot(self):
        self.guest.run("(sleep 0.3; busybox reboot -f) >/dev/null 2>&1 </dev/null &")
        time.sleep(2)  # from here on what is asked waits for the next kernel to open its port

    def panic(self):
        self.guest.run("echo 0 >/proc/sys/kernel/panic; "
                       "(sleep 0.3; echo c >/proc/sysrq-trigger) >/dev/null 2>&1 </dev/null &")
        time.sleep(2)
        self.qmp("system_reset")
        time.sleep(0.3)

    # Scenes: each returns what is wrong with the report but the stalls.

    def scene_cpus(self):
        """A vCPU is plugged, taken offline and online again, and unplugged."""
        with self.recording() as report:
            begin_ns = self.now_ns()
            self.qmp("device_add", id="hot", driver=HOT_CPU[self.bed], **{
                "socket-id": 0, "core-id": 1, "thread-id": 0})
            for _ in range(2):
                self.guest.run("cpu=/sys/devices/system/cpu/cpu1; i=0; until [ -e $cpu ] || [ $i -ge 50 ]; do "
                               "sleep 0.1; i=$((i + 1)); done; echo 1 >$cpu/online; "
                               "provoke heartbeat 1 5000 >/dev/null 2>&1 </dev/null & echo $! >/run/ticker1.pid")
                self.known.append({"window": (begin_ns, self.now_ns())})
                time.sleep(PAUSE_S)
                self.spin(400, cpu=1, case=AFTER)  # it may wait for the other CPU
                begin_ns = self.now_ns()
                self.guest.run("kill $(cat /run/ticker1.pid); echo 0 >/sys/devices/system/cpu/cpu1/online")
                time.sleep(1.5)
            self.qmp("device_del", id="hot")
            time.sleep(2)
            self.known.append({"window": (begin_ns, self.now_ns())})
            self.stop()
        return [f"{i['duration_ns'] / 1e6:.0f} ms on the CPU that came and went: {i.get('verdict')}"
                for i in report["incidents"] if i["guest_cpu"] == 1 and i.get("verdict") != "guest_spin"
                and i.get("verdict") != "vcpu_not_scheduled"]

    def scene_agent(self):
        """QEMU pauses the VM; the guest's watchdog speaks; the agent is killed and comes back, and reads
        the log a second time; the watchdog speaks again."""
        with self.recording() as report:
            self.spin(300)
            self.pause(1500)
            self.spin(300, case=AFTER)
            self.lockup(lambda: self.stop(LOCKUP_MS))
            self.guest.run("kill -9 $(cat /run/agent.pid)")
            time.sleep(1)
            self.stop(400)  # nobody in the guest to say anything
            self.agent_start()
            self.wait_agent(2)
            self.lockup(lambda: self.spin(LOCKUP_MS))
        wrong = []
        printed = sum(len(re.findall("BUG: soft lockup", m.get("dmesg", ""))) for _, m in self.truth)
        if len(report["guest_watchdog"]) != printed:
            wrong.append(f"the guest's watchdog spoke {printed} times: {report['guest_watchdog']}")
        clock = report["clock"][0]
        if clock["error_ns"] > ERROR_MAX_NS[self.bed]:
            wrong.append(f"a pause makes all times of the guest uncertain: {clock}")
        loss = next(of for name, of in report["loss"].items() if name != "host")
        if clock.get("beside_pauses", 0) > BESIDE_MAX * loss["delivered"]:
            wrong.append(f"{clock['beside_pauses']} of {loss['delivered']} events lie beside a pause")
        if not any(gap["side"] == "guest" and gap["reason"] == "no_agent"
                   for gap in report["coverage"]["gaps"]):
            wrong.append(f"the time without an agent is not told: {report['coverage']['gaps']}")
        return wrong

    def scene_reboot(self):
        """The guest reboots, then panics and is reset."""
        with self.recording() as report:
            self.spin()
            self.stop()
            self.boots(self.reboot)
            self.wait_agent(2)
            self.spin()
            self.stop()
            self.boots(self.panic)
            self.wait_agent(3)
            self.spin()
        wrong = []
        reboots, clock = report.get("reboots", []), report["clock"][0]
        if len(reboots) != 2:
            return [f"two reboots, not {reboots}"]
        for boot, why in zip(reboots, ("QMP RESET", "panic")):
            if why not in boot["why"] or "reset_ns" not in boot:
                wrong.append(f"{why} is not told: {boot}")
            wrong += [f"{i.get('verdict')} of {i['duration_ns'] / 1e6:.0f} ms across the reboot"
                      for i in report["incidents"] if i["kind"] == "task"
                      and i["begin_ns"] < boot["after_ns"] and i["end_ns"] > boot["until_ns"]]
        loss = next(of for name, of in report["loss"].items() if name != "host")
        if clock["error_ns"] > ERROR_MAX_NS[self.bed]:
            wrong.append(f"after a reboot the guest's times are uncertain: {clock}")
        if loss["unplaced"] or loss["late"]:
            wrong.append(f"events of a boot have no place: {loss}")
        return wrong

    def scene_watch(self):
        """Live: the agent is killed, the VM stalls, the agent comes back."""
        folder = self.played.folder
        self.truth, self.known = [], []
        self.host.run(
            f"mkdir -p {folder}; cd {folder} || exit; rm -f watch.status; {{ taskset {1 << scene.HOST_CPU:x} vcpuscope watch "
            f"--pid {self.played.qemu_pid} --channel {self.played.channel} --format json --for 600s >watch.json 2>record.log & echo $! >watch.pid; wait $!; "
            "echo $? >watch.status; } >/dev/null 2>&1 </dev/null &")
        self.played.meter_start()
        self.wait_agent(1)
        time.sleep(1)
        wrong = []
        self.stop(500)
        wrong += self.told("with the agent")
        # A guest that is busy might have no time for its agent: then it is given up after 30 s only.
        self.guest.run("kill -9 $(cat /run/agent.pid) $(cat /run/compute.pid)")
        time.sleep(1)
        for _ in range(2):
            self.stop(700)
            wrong += self.told("without the agent")
        self.guest.run("provoke compute 600000 >/dev/null 2>&1 </dev/null & true")
        self.agent_start()
        self.wait_agent(2)
        self.spin(500)
        wrong += self.told("with the agent again")
        self.meter_read()
        reports = self.watched()
        self.host.run(f"cd {folder} && kill -INT $(cat watch.pid); i=0; while [ ! -e watch.status ] && "
                      "[ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done; cat watch.status")
        incidents = [i for r in reports for i in r["incidents"] if not i["ongoing"]]
        self.report = {"incidents": incidents, "guest_watchdog": []}
        ends = [self.truth[n][1]["window"][1] for n in range(len(self.truth))]
        for i in (i for r in reports for i in r["incidents"] if i["ongoing"]):
            if not any(i["begin_ns"] < m["window"][1] and m["window"][0] < i["begin_ns"] + i["duration_ns"]
                       for _, m in self.truth) and not self.is_machine(i):
                wrong.append(f"ongoing, which nobody provoked (stalls ended at {ends}): "
                             f"{i['duration_ns'] / 1e6:.0f} ms at {i['begin_ns']}: {i['because']}")
        return wrong

    def watched(self):
        lines = self.host.run(f"cat {self.played.folder}/watch.json").splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def told(self, when):
        """Waits until the last stall is told, finished: [] or what is wrong."""
        _, measured = self.truth[-1]
        end = time.monotonic() + TOLD_MAX_S - PAUSE_S
        while True:
            if any(not i["ongoing"] and test_verdicts.overlap_ns(i, measured["window"]) > 0
                   for r in self.watched() for i in r["incidents"]):
                return []
            if time.monotonic() > end:
                return [f"{when}: a stall is not told {TOLD_MAX_S} s after its end"]
            time.sleep(0.2)

    # Recording and judging.

    def meter_read(self):
        self.played.truth["interference"] = []
        self.played.meter_read()

    @contextlib.contextmanager
    def recording(self):
        """Yields a dictionary that is the report once the block is over."""
        self.truth, self.known, report = [], [], {}
        self.played.record_start()
        self.played.meter_start()
        yield report
        self.meter_read()
        self.played.record_stop()
        report.update(self.played.report()[1])
        self.report = report

    def is_machine(self, incident):
        absent_ns = check_quickstart.gaps_within_ns(
            (incident["begin_ns"], incident["end_ns"]), self.played.truth["interference"])
        return (incident.get("verdict") == "vcpu_not_scheduled"
                or absent_ns > check_quickstart.EXCUSING_SHARE * incident["duration_ns"])

    def stalls_wrong(self, report):
        """What the report says of the stalls that were provoked, and of none."""
        wrong = []
        for case, measured in self.truth:
            lines = test_verdicts.check(case, measured, report)
            gap_ns = check_quickstart.gaps_within_ns(measured["window"], self.played.truth["interference"])
            if measured.get("spoilt") or (lines and gap_ns >= SPOILING_SHARE * measured["duration_ns"]):
                self.say(f"spoilt: {case.name}: this machine is busy, and was away for {gap_ns / 1e6:.0f} ms of it")
                continue
            wrong += [f"{case.name} ({measured['duration_ns'] / 1e6:.0f} ms): {line}" for line in lines]
        extra = test_verdicts.unprovoked([*(m for _, m in self.truth), *self.known],
                                         self.played.truth["interference"], report)
        # An emulated guest's ticks come from QEMU's main thread, which a busy machine holds up.
        extra = [i for i in extra if self.bed != "a" or not i["denied"].startswith("timer ticks")]
        return wrong + [f"nobody provoked {i.get('verdict')}, {i['duration_ns'] / 1e6:.0f} ms at {i['begin_ns']} "
                        f"on guest CPU {i['guest_cpu']}: {i['because']}" for i in extra]

    def clock_check(self):
        """An emulated guest's TSC is the host's plus a constant, with vCPUs on two pCPUs as well, unless QEMU
        adds to it, to keep it from running backwards between the two. Then it gains at no steady rate, and a
        report that calls the times unproven is right."""
        if self.bed != "a" or not self.report["clock"] or self.report["clock"][0]["method"] != "untrusted":
            return
        clock = json.loads(self.host.run(f"cd {self.played.folder} && vcpuscope clock run.vcs --format json"))
        echo = clock["vms"][0]["echo"]
        if not echo["ratio_min"] <= 1 <= echo["ratio_max"]:
            raise bed.machine.EmulatorFault(f"the emulated guest's TSC gained {echo['ratio_min'] - 1:.1e} to "
                                            f"{echo['ratio_max'] - 1:.1e} on the host's")

    def play(self, name, out):
        """One scene: what is wrong."""
        self.say(f"{name}: {getattr(self, f'scene_{name}').__doc__.split(chr(10))[0]}")
        try:
            wrong = getattr(self, f"scene_{name}")() + self.stalls_wrong(self.report)
            if name == "cpus":
                self.clock_check()
        finally:
            os.makedirs(out, exist_ok=True)
            kept = ("watch.json", "record.log") if name == "watch" else ("run.vcs", "record.log")
            for file in kept:
                with contextlib.suppress(Exception), open(f"{out}/{name}-{file}", "wb") as f:
                    f.write(self.host.get(f"{self.played.folder}/{file}"))
            with open(f"{out}/{name}-truth.json", "w") as f:
                json.dump({**self.played.truth, "stalls": [(c.name, m) for c, m in self.truth]}, f, indent=1)
        return wrong


# A QEMU whose vCPU was unplugged does not survive a reboot of its guest.
SCENES = ("agent", "watch", "reboot", "cpus")
BRIEF_SCENES = ("watch", "reboot")
# From Linux 6.9 on, a kernel that knows no hypervisor, as under TCG, ignores vCPUs that could be plugged.
UNPLAYABLE = {("a", "6.12"): ("cpus",)}


@contextlib.contextmanager
def booted(name, builder, folder, say):
    """Yields a Life."""
    if name == "b":
        with run_scene.nested(builder, folder, say,
                              guest_arguments=" ".join(QEMU_ARGUMENTS)) as (played, _):
            yield Life(name, played, "/run/guest/qmp", say)
        return
    with bed.boot_a(builder, qemu_args=QEMU_ARGUMENTS) as guest:
        say(f"guest is up after {guest.boot_s:.1f} s")
        host = scene.ThisMachine([f"{builder.build}/host-collector", f"{builder.build}/tests/e2e/beds"])
        yield Life(name, scene.Scene(host, guest, guest.pid, guest.agent_socket, f"{folder}/host", say,
                                     emulated=True), guest.qmp_socket, say)


def play(name, builder, out, say, scenes):
    """{scene: what is wrong} of one boot."""
    wrong = {}
    with tempfile.TemporaryDirectory(prefix="vcpuscope-life.") as folder, \
            booted(name, builder, folder, say) as life:
        life.played.place_threads()
        life.guest_up()
        for one in scenes:
            wrong[one] = life.play(one, out)
            say(f"{'WRONG' if wrong[one] else 'right'}: {one}" + "".join(f"\n    {w}" for w in wrong[one]))
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bed", choices=("a", "b"))
    p.add_argument("--only", action="append", choices=SCENES, help="this scene only")
    test_verdicts.add_round_arguments(p)
    args = p.parse_args()
    if args.bed == "a" and os.geteuid():
        print("skipped: BPF on this machine's kernel needs root")
        return run_scene.SKIP
    if args.bed == "b" and not (test_verdicts.FULL or args.rounds or args.only):
        print("skipped: minutes a round; tests/run --full plays it, or --rounds 1")
        return run_scene.SKIP
    started = time.time()

    def say(text):
        print(f"[{time.time() - started:5.1f} s] {text}", flush=True)

    scenes = args.only or (SCENES if test_verdicts.FULL or args.rounds else BRIEF_SCENES)
    right, failed = {}, 0
    with run_scene.own_signals():
        for builder, out in test_verdicts.each_round(args, say):
            unplayable = UNPLAYABLE.get((args.bed, ".".join(builder.kernel.release.split(".")[:2])), ())
            played = [s for s in scenes if s not in unplayable]
            for one in set(scenes) & set(unplayable):
                say(f"not played on bed {args.bed} with {builder.kernel.release}, which ignores the second vCPU: {one}")
            wrong = bed.machine.retry_emulator(lambda b=builder, o=out, p=played: play(args.bed, b, o, say, p), say)
            for one, lines in wrong.items():
                right.setdefault(one, []).append(not lines)
                failed += bool(lines)
    for one, all_of in right.items():
        say(f"{one}: {sum(all_of)} of {len(all_of)} right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
