#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Simulated VMs at one daemon while things break every second or so: decoders are killed, stopped, made to
crash; connections are cut in the middle of frames. Afterwards every event is accounted for, exactly, the
daemon holds no more memory and descriptors than before, and it came back in time.

A short run by default; 8 VMs at 40,000 events/s for 30 minutes with --full or VCPUSCOPE_TEST_FULL=1.
With --kills N also: the daemon is killed (SIGKILL) N times while it records, and every recording opens."""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time

from daemon_rig import BUILD, Daemon, FakeVm, report_json, skip_unless_possible, until

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"
RECOVERY_MAX_S = 2  # of a dead or cut one; a hung decoder is known as such after 3 s
HANG_S = 3
SLACK = float(os.environ.get("VCPUSCOPE_TEST_SLACK", "3"))  # this machine may do other things too
RSS_SLACK = 3 << 20


class Simulated:
    def __init__(self, daemon, name, rate):
        self.name = name
        self.vm = FakeVm(name, 4)
        self.path = daemon.folder / name
        self.rate = rate
        self.agent = None

    def section(self):
        return (f"[vm {self.name}]\npid = {self.vm.pid}\nchannel = listen:unix:{self.path}\n"
                f"record = yes\nflight_size = 1M\n")

    def start(self):
        self.agent = subprocess.Popen([SIM_AGENT, self.path, str(self.rate)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def truth(self):
        """Stops it, after it has delivered everything."""
        out, _ = self.agent.communicate()
        return json.loads(out)

    def kill(self):
        if self.agent and self.agent.poll() is None:
            self.agent.kill()
            self.agent.wait()
        self.vm.end()


def link_of(daemon, name):
    return daemon.vm(name)["link"]


FAULTS = {
    "decoder killed": lambda pid: os.kill(pid, signal.SIGKILL),
    "decoder crashed": lambda pid: os.kill(pid, signal.SIGSEGV),
    "decoder stopped": lambda pid: os.kill(pid, signal.SIGSTOP),
}


def break_something(daemon, sim, fault):
    """Seconds until the channel was talking again."""
    before = until(f"{sim.name} has a decoder",
                   lambda: (link := link_of(daemon, sim.name))["decoder_pid"] and link)
    begin = time.monotonic()
    FAULTS[fault](before["decoder_pid"])
    until(f"{sim.name} talks again after: {fault}",
          lambda: (vm := daemon.vm(sim.name))["channel"] == "ok"
          and vm["link"]["decoder_deaths"] > before["decoder_deaths"], 60)
    return time.monotonic() - begin


def soak(n_vms, rate, seconds):
    d = Daemon()
    sims = [Simulated(d, f"vm{i}", rate) for i in range(n_vms)]
    d.configure("\n".join(s.section() for s in sims))
    problems, worst = [], {}
    chance = random.Random(6)
    try:
        d.start()
        until("all record", lambda: all(v.get("file_bytes", 0) > 500
                                        for v in d.ask("list")["vms"]), 60)
        paths = {s.name: d.vm(s.name)["file"] for s in sims}
        for s in sims:
            s.start()
        until("all talk", lambda: all(v["channel"] == "ok" for v in d.ask("list")["vms"]), 60)
        begin, warm = time.monotonic(), None
        while time.monotonic() - begin < seconds:
            fault = chance.choice(list(FAULTS))
            took = break_something(d, chance.choice(sims), fault)
            worst[fault] = max(worst.get(fault, 0), took)
            # Back-off grows with deaths that follow each other: give it the time that resets it.
            time.sleep(chance.uniform(0.5, 1.5))
            if not warm and time.monotonic() - begin > seconds / 3:
                warm = d.ask("status")
        end = d.ask("status")
        truths = {s.name: s.truth() for s in sims}
        until("all has arrived", lambda: all(not v["link"]["decoder_pid"]
                                             for v in d.ask("list")["vms"]), 60)
        links = {s.name: link_of(d, s.name) for s in sims}
        for s in sims:
            d.ask("record", s.name, "stop")
        print(f"{n_vms} VMs, {rate} events/s each, {seconds} s: memory "
              f"{warm['rss_bytes'] / (1 << 20):.1f} then {end['rss_bytes'] / (1 << 20):.1f} MiB, "
              f"descriptors {warm['descriptors']} then {end['descriptors']}, CPU "
              f"{(end['cpu_ns'] - warm['cpu_ns']) / 1e7 / (seconds * 2 / 3):.1f} %, "
              f"loop late by {end['loop_lag_ms']} ms")
        if end["rss_bytes"] > warm["rss_bytes"] * 1.02 + RSS_SLACK:
            problems.append("memory grows")
        if end["descriptors"] > warm["descriptors"] + 4 * n_vms:  # some were between two decoders
            problems.append("descriptors grow")
        for fault, took in worst.items():
            limit = (RECOVERY_MAX_S + (HANG_S if fault == "decoder stopped" else 0)) * SLACK
            print(f"{fault}: talking again after {took:.1f} s at worst")
            if took > limit:
                problems.append(f"{fault}: talking again after {took:.1f} s, limit {limit:.0f} s")
        for s in sims:
            problems += account(s.name, truths[s.name], report_json(paths[s.name])["loss"],
                                links[s.name])
        return problems
    finally:
        for s in sims:
            s.kill()
        d.clean()


def account(name, truth, loss, link):
    """Compares what a simulated agent did with what the report says of it."""
    said = next(v for k, v in loss.items() if k != "host")
    parts = said["delivered"] + said["dropped_kernel"] + said["dropped_user"] + said["lost_channel"]
    print(f"{name}: {truth['emitted']} emitted in {truth['sessions']} sessions = "
          f"{said['delivered']} delivered + {said['dropped_user']} dropped + "
          f"{said['lost_channel']} lost on the way; {link['decoder_deaths']} decoders died, "
          f"{link['decoder_cpu_ns'] / max(1, said['delivered']):.0f} ns of their time per event")
    problems = []
    if truth["left"]:
        problems.append(f"{name}: the agent could not deliver everything")
    if said["emitted"] != truth["emitted"]:
        problems.append(f"{name}: {truth['emitted']} emitted, the report says {said['emitted']}")
    if said["dropped_user"] != truth["dropped"]:
        problems.append(f"{name}: {truth['dropped']} dropped, the report says {said['dropped_user']}")
    if parts != said["emitted"] or said["overdelivered"]:
        problems.append(f"{name}: the parts sum to {parts} of {said['emitted']}")
    for part in ("dropped_kernel", "dropped_user", "lost_channel"):
        if sum(span[part] for span in said["spans"]) != said[part]:
            problems.append(f"{name}: the spans of {part} do not sum to it")
    return problems


def kills(n):
    """kill -9 while it records: every recording opens, less its last, unflushed second."""
    d = Daemon()
    sim = Simulated(d, "vm0", 40000)
    d.configure(sim.section())
    chance = random.Random(9)
    seen, worst = 0, 0
    try:
        sim.start()
        for _ in range(n):
            d.start()
            path = until("it records the guest", lambda: (v := d.vm("vm0")).get("channel") == "ok"
                         and v["file_bytes"] > 20000 and v["file"])
            begin = time.monotonic()
            time.sleep(chance.uniform(0, 2.5))
            late = d.ask("status")["loop_lag_ever_ms"] / 1000  # it can flush no sooner
            took = time.monotonic() - begin
            d.process.kill()
            d.process.wait()
            report = report_json(path)
            lasted = (report["end_ns"] - report["begin_ns"]) / 1e9
            worst = max(worst, took - lasted)
            if lasted < took - late - 1.5:
                raise AssertionError(f"{path}: {lasted:.2f} s of at least {took:.2f} s are readable, "
                                     f"and the loop was late by {late:.2f} s at most")
            seen += 1
            os.unlink(path)
        print(f"killed {n} times while it recorded: {seen} recordings opened, at most "
              f"{max(worst, 0):.1f} s were missing")
        return []
    finally:
        sim.kill()
        d.clean()


def main():
    full = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", default=full)
    parser.add_argument("--vms", type=int)
    parser.add_argument("--rate", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--kills", type=int)
    o = parser.parse_args()
    skip_unless_possible()
    problems = soak(o.vms or (8 if o.full else 2), o.rate or (40000 if o.full else 10000),
                    o.seconds or (1800 if o.full else 15))
    kill_count = o.kills if o.kills is not None else 200 if o.full else 3
    if kill_count:
        problems += kills(kill_count)
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
