#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many VMs at one daemon: how long it takes to attach them, and what each costs while it is idle and while
its agent sends. No event is lost. The guests are simulated, and their vCPUs sleep.

There are 100 VMs by default, 300 with VCPUSCOPE_TEST_FULL=1. Prints one line for each phase, and its figures
for tests/bench/run. With --goals, a figure that misses its goal is an error. The default checks only what
also holds on a busy machine: all VMs are attached and recorded, nothing is lost, the hook ends in time, and
the memory is freed when the VMs end.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import figures  # noqa: E402
from daemon_rig import BUILD, Daemon, FakeVm, skip_unless_possible, until
from file_account import BATCH_RANGES, file_account

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"
HOOK = BUILD / "host-collector/vcpuscope-hook"
HOOK_MAX_S = 0.05
HOOKS = 20
STARVED_MS = 1000
MIB = 1 << 20
CALM = "stall = 60s\nblocked = no\nrunnable = no\nsteal = no\n"  # a busy machine is not what is measured
GONE_BYTES, GONE_VM_BYTES = 32 * MIB, MIB // 4
# By number of VMs.
GOALS = {8: {"x 10000 events/s": 8},
         64: {"idle": 2, "attach": 4, "memory of each": 6, "lag": 30},
         300: {"idle": 8, "x 1000 events/s": 70}}


def memory(pid):
    """Its proportional share of memory, in bytes."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss: +(\d+) kB", text, re.M)[1]) << 10


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


class Scale:
    def __init__(self, n, rate, goals):
        self.n, self.rate = n, rate
        self.goals, self.strict = GOALS.get(n, {}), goals
        self.missed, self.agents = [], None
        self.vms = [FakeVm(f"vm{i}", 1, port=True) for i in range(n)]
        self.daemon = Daemon(settings="file_size = 64M\ndisk_budget = 64G\n")
        self.daemon.configure("\n".join(
            f"[vm vm{i}]\npid = {vm.pid}\nchannel = listen:unix:{self.daemon.folder}/a{i}\nrecord = yes\n{CALM}"
            for i, vm in enumerate(self.vms)))

    def judge(self, what, figure, unit):
        goal = f"<= {self.goals[what]}" if what in self.goals else "-"
        if not figures.show(f"daemon with {self.n} VM{'s' * (self.n > 1)}: {what}", figure, unit, goal) and self.strict:
            self.missed.append(f"{what}: {figure:.1f}, goal {self.goals[what]}")

    def list(self):
        """On a machine without a free CPU an answer may take longer than ctl waits."""
        for _ in range(5):
            done = self.daemon.ctl("list", "--format", "json")
            if not done.returncode or "timed out" not in done.stderr:
                break
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)["vms"]

    def waits(self, is_behind):
        """True if no VM is behind; asks seldom enough to cost the daemon little."""
        behind = sum(map(is_behind, self.list()))
        time.sleep(self.n / 1000 if behind else 0)
        return not behind

    def attach(self):
        begin = time.monotonic()
        self.daemon.start()
        until("all run", lambda: self.waits(lambda vm: vm["state"] != "running"), 300)
        took = time.monotonic() - begin
        until("all record", lambda: self.waits(lambda vm: not vm.get("file_bytes")), 60)
        print(f"{self.n} VMs attached after {took:.1f} s and {cpu_s(self.daemon.process.pid):.1f} s of CPU, "
              f"{self.late_ms()} ms late at worst", flush=True)
        self.judge("attach", took, "s")

    def late_ms(self):
        return self.daemon.ask("status")["loop_lag_ever_ms"]

    def measure(self, what, seconds):
        """CPU and memory of the daemon and of its decoders."""
        pid = self.daemon.process.pid
        decoders = children(pid)
        before, before_own = sum(map(cpu_s, decoders)), cpu_s(pid)
        begin, late = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            time.sleep(min(5, seconds))
            late = max(late, self.daemon.ask("status")["loop_lag_ms"])
        took = time.monotonic() - begin
        own = (cpu_s(pid) - before_own) / took * 100
        others = (sum(map(cpu_s, decoders)) - before) / took * 100
        rings = sum(vm["flight"]["bytes"] for vm in self.list())
        pss_own, pss_decoders = memory(pid), sum(map(memory, decoders))
        each = (pss_own + pss_decoders - rings) / self.n / MIB
        print(f"{self.n} VMs {what}: {own:.1f} % of a core, decoders {others:.1f} %; PSS "
              f"{pss_own / MIB:.0f} MiB, decoders {pss_decoders / MIB:.0f} MiB, of which the last seconds "
              f"{rings / MIB:.0f} MiB: {each:.2f} MiB a VM without these; {len(decoders)} processes, "
              f"{self.daemon.ask('status')['descriptors']} descriptors; late by {late} ms", flush=True)
        self.judge(what, own, "% of a CPU")
        self.judge(f"{what}, its decoders", others, "% of a CPU")
        self.judge("memory of each" if what == "idle" else f"memory of each, {what}", each, "MiB")
        self.judge("lag" if what == "idle" else f"lag, {what}", late, "ms")

    def hooks(self):
        """Half of them at least are in time, unless the machine has so little CPU left that the daemon's
        own loop is late by a second."""
        took = []
        for _ in range(HOOKS):
            begin = time.monotonic()
            subprocess.run([HOOK, "--control", self.daemon.control], check=True)
            took.append(time.monotonic() - begin)
        print(f"{HOOKS} hooks took {statistics.median(took) * 1e3:.1f} ms, the slowest {max(took) * 1e3:.1f} ms",
              flush=True)
        assert statistics.median(took) < HOOK_MAX_S or self.late_ms() > STARVED_MS, took

    def load(self, seconds):
        self.agents = subprocess.Popen([SIM_AGENT, "--many", str(self.n), f"{self.daemon.folder}/a",
                                        str(self.rate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True)
        until("all talk", lambda: self.waits(lambda vm: vm["channel"] != "ok"), 300)
        self.measure(f"x {self.rate} events/s", seconds)
        self.hooks()
        out, _ = self.agents.communicate()
        truths = [json.loads(line) for line in out.splitlines()]
        assert len(truths) == self.n and not any(truth["left"] for truth in truths), truths
        until("all has arrived", lambda: self.waits(lambda vm: vm["link"]["decoder_pid"]), 120)
        files = {vm["vm"]: vm["file"] for vm in self.list()}
        for i in range(self.n):
            self.daemon.ask("record", f"vm{i}", "stop")
        recorded = [self.recorded(files[f"vm{i}"]) for i in range(self.n)]
        wrong = {i: (got, truth) for i, (got, truth) in enumerate(zip(recorded, truths))
                 if got != truth["emitted"] - truth["dropped"]}
        assert not wrong, wrong
        dropped = sum(truth["dropped"] for truth in truths)
        # What an agent may drop while the daemon gets no CPU is no loss of the daemon's.
        assert not dropped or self.late_ms() > STARVED_MS, (dropped, self.late_ms())
        problems, said, _ = file_account("vm0", files["vm0"])  # the report agrees
        assert not problems and said["delivered"] == recorded[0], (problems, said)
        print(f"{sum(recorded)} events recorded, 0 lost, {dropped} not sent", flush=True)

    @staticmethod
    def recorded(path):
        """The number of the guest's events in the recording."""
        held = json.loads(subprocess.run([BATCH_RANGES, path], check=True, stdout=subprocess.PIPE).stdout)
        return sum(events for _, _, _, events in held["cpus"])

    def gone(self):
        before = memory(self.daemon.process.pid)
        for vm in self.vms:
            vm.end()
        until("nothing is remembered of them", lambda: all(
            vm["state"] == "gone" and not vm["flight"]["bytes"] for vm in self.list()), 120)
        until("memory is back", lambda: memory(self.daemon.process.pid) < GONE_BYTES + self.n * GONE_VM_BYTES, 90)
        print(f"gone: PSS {before / MIB:.0f} MiB, then {memory(self.daemon.process.pid) / MIB:.0f} MiB",
              flush=True)

    def run(self, seconds):
        self.attach()
        self.measure("idle", seconds)
        if self.rate:
            self.load(seconds)
        self.gone()

    def end(self):
        if self.agents and self.agents.poll() is None:
            self.agents.kill()
            self.agents.wait()
        self.daemon.clean()
        for vm in self.vms:
            if vm.process.poll() is None:
                vm.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vms", type=int,
                        default=300 if os.environ.get("VCPUSCOPE_TEST_FULL") == "1" else 100)
    parser.add_argument("--rate", type=int, default=1000, help="events per second of each guest")
    parser.add_argument("--seconds", type=int, default=10, help="length of each measurement")
    parser.add_argument("--goals", action="store_true", help="fail if a goal is missed")
    o = parser.parse_args()
    figures.end_by_signals()
    skip_unless_possible()
    scale = Scale(o.vms, o.rate, o.goals)
    try:
        scale.run(o.seconds)
    finally:
        scale.end()
    for missed in scale.missed:
        print(f"goal missed: {missed}")
    return 1 if scale.missed else 0


if __name__ == "__main__":
    sys.exit(main())
