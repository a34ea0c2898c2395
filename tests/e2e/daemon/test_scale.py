#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many VMs at one daemon: how long it takes to attach them, what each costs while nothing happens and
while its agent sends, and that nothing is lost. The guests are simulated, their vCPUs sleep.

Prints one line of figures for each phase. `--goals` makes a figure that misses its goal an error; the
default judges only what holds on a busy machine, too: everything attached and recorded, nothing lost, the
hook over in time, and the memory back when the VMs are gone."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from daemon_rig import BUILD, Daemon, FakeVm, report_json, skip_unless_possible, until

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"
HOOK = BUILD / "host-collector/vcpuscope-hook"
HOOK_MAX_S = 0.05
HOOKS = 20
MIB = 1 << 20
# By number of VMs: percent of a core idle, percent loaded, seconds to attach, of the last that was measured.
GOALS = {64: {"idle": 2, "attach_s": 4, "pss_mib": 6, "lag_ms": 30},
         300: {"idle": 8, "load": 70}}


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
        self.goals = GOALS.get(n, {}) if goals else {}
        self.missed, self.agents = [], None
        self.vms = [FakeVm(f"vm{i}", 1, port=True) for i in range(n)]
        self.daemon = Daemon(settings="file_size = 64M\ndisk_budget = 64G\n")
        self.daemon.configure("\n".join(
            f"[vm vm{i}]\npid = {vm.pid}\nchannel = listen:unix:{self.daemon.folder}/a{i}\nrecord = yes\n"
            for i, vm in enumerate(self.vms)))

    def judge(self, what, figure):
        if figure > self.goals.get(what, figure):
            self.missed.append(f"{what}: {figure:.1f}, goal {self.goals[what]}")

    def list(self):
        return self.daemon.ask("list")["vms"]

    def attach(self):
        begin = time.monotonic()
        self.daemon.start()
        until("all run", lambda: all(vm["state"] == "running" for vm in self.list()), 300)
        took = time.monotonic() - begin
        until("all record", lambda: all(vm.get("file_bytes", 0) > 0 for vm in self.list()), 60)
        print(f"{self.n} VMs attached after {took:.1f} s, {self.late_ms()} ms late at worst", flush=True)
        self.judge("attach_s", took)

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
        return {"cpu": own, "pss_mib": each, "lag_ms": late}

    def hooks(self):
        slowest = 0
        for _ in range(HOOKS):
            begin = time.monotonic()
            subprocess.run([HOOK, "--control", self.daemon.control], check=True)
            slowest = max(slowest, time.monotonic() - begin)
        print(f"the slowest of {HOOKS} hooks took {slowest * 1e3:.1f} ms", flush=True)
        assert slowest < HOOK_MAX_S, slowest

    def load(self, seconds):
        self.agents = subprocess.Popen([SIM_AGENT, "--many", str(self.n), f"{self.daemon.folder}/a",
                                        str(self.rate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True)
        until("all talk", lambda: all(vm["channel"] == "ok" for vm in self.list()), 120)
        figures = self.measure(f"x {self.rate} events/s", seconds)
        self.judge("load", figures["cpu"])
        self.hooks()
        out, _ = self.agents.communicate()
        truths = [json.loads(line) for line in out.splitlines()]
        assert len(truths) == self.n and not any(truth["left"] for truth in truths), truths
        until("all has arrived", lambda: all(not vm["link"]["decoder_pid"] for vm in self.list()), 120)
        files = {vm["vm"]: vm["file"] for vm in self.list()}
        for i in range(self.n):
            self.daemon.ask("record", f"vm{i}", "stop")
        emitted = 0
        for i, truth in enumerate(truths):
            said = self.loss(files[f"vm{i}"])
            assert said["delivered"] == truth["emitted"] - truth["dropped"], (i, said, truth)
            assert not truth["dropped"] and not said["lost_channel"], (i, said, truth)
            emitted += truth["emitted"]
        print(f"{emitted} events recorded, 0 lost", flush=True)

    @staticmethod
    def loss(path):
        streams = report_json(path)["loss"]
        guest, = [said for name, said in streams.items() if name != "host"]
        return guest

    def gone(self):
        before = memory(self.daemon.process.pid)
        for vm in self.vms:
            vm.end()
        until("nothing is remembered of them", lambda: all(
            vm["state"] == "gone" and not vm["flight"]["bytes"] for vm in self.list()), 120)
        until("memory is back", lambda: memory(self.daemon.process.pid) < 64 * MIB + self.n * MIB, 60)
        print(f"gone: PSS {before / MIB:.0f} MiB, then {memory(self.daemon.process.pid) / MIB:.0f} MiB",
              flush=True)

    def run(self, seconds):
        self.attach()
        figures = self.measure("idle", seconds)
        for what, figure in (("idle", "cpu"), ("pss_mib", "pss_mib"), ("lag_ms", "lag_ms")):
            self.judge(what, figures[figure])
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
    parser.add_argument("--vms", type=int, default=300)
    parser.add_argument("--rate", type=int, default=1000, help="events per second of each guest")
    parser.add_argument("--seconds", type=int, default=10, help="length of each measurement")
    parser.add_argument("--goals", action="store_true", help="fail if a goal is missed")
    o = parser.parse_args()
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
