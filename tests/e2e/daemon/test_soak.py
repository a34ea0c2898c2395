#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Simulated VMs at one daemon, with a disturbance about every second: decoders are killed, stopped or made to
crash; agents are killed, and their guests boot again; agents are stopped for seconds; connections are cut in
the middle of frames; guests' clocks step forward and back; the disk is full. Afterwards, every event is
accounted for, exactly. The daemon has no more memory and descriptors than before, recovered in time, and its
loop was never late except for waits for a CPU (checked in runs of more than 20 s). The last line but one has
all figures. --series FILE gets memory, descriptors and lag over time.

The default is a short run. --full or VCPUSCOPE_TEST_FULL=1 runs 64 VMs at 1,000 events/s for 30 minutes. With
--kills N, the daemon is also killed (SIGKILL) N times while it records, and every recording can be opened.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import random
import signal
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import figures
from daemon_rig import BUILD, Daemon, FakeVm, report_json, skip_unless_possible, until
from file_account import file_account

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"
RECOVERY_MAX_S = 2  # of a dead or cut one; a hung decoder is known as such after 3 s
FILES_S = 0.05  # after the disk was full, for each VM's file to begin
HANG_S = 3
SPARED_S = 10 + HANG_S + 1  # a decoder that lived 10 s is replaced without more delay
SLACK = float(os.environ.get("VCPUSCOPE_TEST_SLACK", "3"))  # this machine may do other things too
RSS_GROWTH_MAX = 1.02
LONG_S = 1200  # from here on, memory is flat without any slack
RSS_SLACK = 3 << 20
FLAT_S, RSS_SLACK_SHORT = 180, 32 << 20  # the flight recorders hold 30 s: before, memory grows
LATE_MAX_MS = 50  # the daemon's loop, less its thread's waits for a CPU
ATTACHED_S = 20  # until the daemon's status forgets how late the loop was when all VMs were attached
STOPPED_S = 4
TALLY = struct.Struct("<IxxxxQQ")  # struct sim_cpu: its number, emitted, dropped
SETTLE_S = 20
DISK_RESERVE = 8 << 20
EVENT_BYTES = 24  # more than a guest's event takes in a recording
VM_BYTES_PER_S = 100 << 10  # more than everything else of a VM takes
FILE_BYTES, FILE_S = 2 << 20, 15  # a file begins with the flight recorder's content; a new one comes less often


class Simulated:
    def __init__(self, daemon, name, rate):
        self.name = name
        self.vm = FakeVm(name, 4)
        self.path = daemon.folder / name
        self.tally = daemon.folder / f"{name}.tally"
        self.rate = rate
        self.agent = None
        self.died = 0  # when a decoder of its own died last
        self.files = []  # its recordings, one after the other
        self.emitted = {}  # by its guest until it was killed, by boot

    def section(self):
        return (f"[vm {self.name}]\npid = {self.vm.pid}\nchannel = listen:unix:{self.path}\n"
                f"record = yes\nflight_size = 1M\n")

    def start(self):
        self.agent = subprocess.Popen([SIM_AGENT, self.path, str(self.rate), self.tally],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def truth(self):
        """Stops it, after it has delivered everything."""
        out, _ = self.agent.communicate()
        return json.loads(out)

    def boot(self):
        """Kills it; its guest boots again."""
        self.agent.kill()
        self.agent.communicate()
        self.emitted[str(self.agent.pid)] = sum(
            emitted for _, emitted, _ in TALLY.iter_unpack(self.tally.read_bytes()))
        self.start()

    def kill(self):
        if self.agent and self.agent.poll() is None:
            self.agent.kill()
            self.agent.wait()
        self.vm.end()


def link_of(daemon, name):
    return daemon.vm(name)["link"]


def decoder_break(daemon, sims, sim, fault):
    """Seconds until the channel was talking again; of the VM whose decoder was spared the longest."""
    sim = min(sims, key=lambda s: s.died)
    sim.died = time.monotonic()
    before = until(f"{sim.name} has a decoder",
                   lambda: (link := link_of(daemon, sim.name))["decoder_pid"] and link)
    begin = time.monotonic()
    os.kill(before["decoder_pid"], SIGNALS[fault])
    until(f"{sim.name} talks again after: {fault}",
          lambda: (vm := daemon.vm(sim.name))["channel"] == "ok"
          and vm["link"]["decoder_deaths"] > before["decoder_deaths"], 60)
    return time.monotonic() - begin


def channel_cut(daemon, sims, sim, fault):
    before = link_of(daemon, sim.name)
    begin = time.monotonic()
    sim.agent.send_signal(signal.SIGUSR2)
    until(f"{sim.name} talks again after: {fault}",
          lambda: (vm := daemon.vm(sim.name))["channel"] == "ok"
          and vm["link"]["connections"] > before["connections"], 60)
    return time.monotonic() - begin


def agent_kill(daemon, sims, sim, fault):
    before = link_of(daemon, sim.name)
    begin = time.monotonic()
    sim.boot()
    until(f"{sim.name} talks again after: {fault}",
          lambda: (vm := daemon.vm(sim.name))["channel"] == "ok"
          and vm["link"]["connections"] > before["connections"], 60)
    return time.monotonic() - begin


def frames_await(daemon, sim, fault, number, n):
    """Sends its agent a signal; seconds until more than `n` frames have come since."""
    before = link_of(daemon, sim.name)["frames"]
    begin = time.monotonic()
    sim.agent.send_signal(number)
    until(f"{sim.name}'s frames come after: {fault}",
          lambda: (vm := daemon.vm(sim.name))["channel"] == "ok"
          and vm["link"]["frames"] > before + n, 60)
    return time.monotonic() - begin


def agent_stop(daemon, sims, sim, fault):
    """It stands still for longer than a heartbeat may be late. Seconds until its frames come again."""
    until(f"{sim.name} talks", lambda: daemon.vm(sim.name)["channel"] == "ok")
    sim.agent.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    return frames_await(daemon, sim, fault, signal.SIGCONT, 2)


def clock_step(daemon, sims, sim, fault):
    """Its frames must go on coming."""
    until(f"{sim.name} talks", lambda: daemon.vm(sim.name)["channel"] == "ok")
    return frames_await(daemon, sim, fault, signal.SIGUSR1, 20)


def disk_resize(daemon, size):
    """Its own small disk is a file system in memory."""
    subprocess.run(["mount", "-o", f"remount,size={size}", daemon.recordings], check=True)


def disk_full(daemon, sims, sim, fault):
    """Seconds from when there is room again until all record again, into new files."""
    disk = os.statvfs(daemon.recordings)
    used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
    disk_resize(daemon, used + DISK_RESERVE // 2)
    until("nothing is recorded", lambda: all(v.get("recording_error")
                                             for v in daemon.ask("list")["vms"]), 60)
    time.sleep(0.5)
    disk_resize(daemon, disk.f_blocks * disk.f_frsize)
    begin = time.monotonic()
    until("all record again", lambda: all(not v.get("recording_error") and v["file_bytes"] > 500
                                          for v in daemon.ask("list")["vms"]), 60)
    for s in sims:
        s.files.append(daemon.vm(s.name)["file"])
    return time.monotonic() - begin


SIGNALS = {"decoder killed": signal.SIGKILL, "decoder crashed": signal.SIGSEGV,
           "decoder stopped": signal.SIGSTOP}
FAULTS = {**{name: decoder_break for name in SIGNALS}, "agent killed": agent_kill,
          "agent stopped": agent_stop, "channel cut": channel_cut, "clock step": clock_step, "disk full": disk_full}


class Series:
    """The daemon's vitals over the time."""

    def __init__(self, daemon, path):
        self._daemon, self._begin, self.rows = daemon, time.monotonic(), []
        self.late_ms, self.late_s = 0, 0  # at worst, and when it was seen
        self._out = open(path, "w") if path else None

    def look(self, fault="-"):
        """Returns the whole of `ctl status`. fault: the last one."""
        status = self._daemon.ask("status")
        now, late_ms = time.monotonic() - self._begin, status["loop_lag_own_ms"]
        self.rows.append((now, status["rss_bytes"], status["descriptors"]))
        if now > ATTACHED_S and late_ms > self.late_ms:
            self.late_ms, self.late_s = late_ms, now
        if self._out:
            print(*self.rows[-1], late_ms, fault.replace(" ", "-"), file=self._out, flush=True)
        return status

    def memory(self, begin, end):
        """The median between two parts of the time until now: a fault leaves more for a moment."""
        now = self.rows[-1][0]
        return statistics.median(rss for t, rss, _ in self.rows if begin * now <= t <= end * now)


def fault_choose(kinds, counts, sims, chance):
    """Each once, then as it comes; but a decoder that dies soon again is waited for longer each time,
    which is as it should be and not what is measured here."""
    if len(counts) < len(kinds):
        return kinds[len(counts)]
    spared_s = time.monotonic() - min(s.died for s in sims)
    return chance.choice([kind for kind in kinds if kind not in SIGNALS or spared_s > SPARED_S])


def soak(n_vms, rate, seconds, series_path):
    disk = n_vms * ((rate * EVENT_BYTES + VM_BYTES_PER_S) * seconds + FILE_BYTES * (seconds // FILE_S)) + (128 << 20)
    d = Daemon(settings=f"file_size = 64G\nfile_time = 24h\ndisk_budget = 128G\n"
                        f"disk_reserve = {DISK_RESERVE}")
    sims = [Simulated(d, f"vm{i}", rate) for i in range(n_vms)]
    d.configure("\n".join(s.section() for s in sims))
    problems, worst, counts = [], {}, {}
    chance = random.Random(6)
    d.recordings.mkdir()
    mounted = not subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk}", "none",
                                  d.recordings]).returncode
    if not mounted:
        print("this machine does not let us mount a small disk: it is never full")
    kinds = [f for f in FAULTS if (mounted or f != "disk full")
             and (seconds >= FLAT_S or f != "clock step")]
    try:
        d.start()
        until("all record", lambda: all(v.get("file_bytes", 0) > 500
                                        for v in d.ask("list")["vms"]), 60)
        for s in sims:
            s.files.append(d.vm(s.name)["file"])
            s.start()
        until("all talk", lambda: all(v["channel"] == "ok" for v in d.ask("list")["vms"]), 60)
        begin, warm, series = time.monotonic(), None, Series(d, series_path)
        while time.monotonic() - begin < seconds:
            fault = fault_choose(kinds, counts, sims, chance)
            took = FAULTS[fault](d, sims, chance.choice(sims), fault)
            worst[fault] = max(worst.get(fault, 0), took)
            counts[fault] = counts.get(fault, 0) + 1
            time.sleep(chance.uniform(0.5, 1.5))
            status = series.look(fault)
            if not warm and time.monotonic() - begin > seconds / 3:
                warm = status
        # What was being started or reported when the last fault came is over in a moment.
        settled = time.monotonic() + SETTLE_S
        memory, memory_end = series.memory(1 / 3, 1 / 2), series.memory(5 / 6, 1)
        while (end := series.look())["descriptors"] > warm["descriptors"] \
                and time.monotonic() < settled:
            time.sleep(0.5)
        truths = {s.name: s.truth() for s in sims}
        until("all has arrived", lambda: all(not v["link"]["decoder_pid"]
                                             for v in d.ask("list")["vms"]), 60)
        problems += [f"{v['name']}: {v['recording_error']}" for v in d.ask("list")["vms"] if v.get("recording_error")]
        links = {s.name: link_of(d, s.name) for s in sims}
        for s in sims:
            d.ask("record", s.name, "stop")
        slack = 0 if seconds >= LONG_S else RSS_SLACK if seconds >= FLAT_S else RSS_SLACK_SHORT
        if memory_end > memory * RSS_GROWTH_MAX + slack:
            problems.append("memory grows")
        late = series.late_ms
        if late > LATE_MAX_MS:
            problems.append(f"the loop was late by {late} ms, without its waits for a CPU, as seen after {series.late_s:.0f} s; "
                            f"limit {LATE_MAX_MS} ms")
        if end["descriptors"] > warm["descriptors"] + n_vms:  # some are between two decoders
            problems.append("descriptors grow")
        for fault, took in worst.items():
            limit = (RECOVERY_MAX_S + (HANG_S if fault == "decoder stopped" else 0)
                     + (FILES_S * n_vms if fault == "disk full" else 0)) * SLACK
            if took > limit:
                problems.append(f"{fault}: back after {took:.1f} s, limit {limit:.0f} s")
        sums = {"emitted": 0, "delivered": 0, "dropped": 0, "lost": 0, "unrecorded": 0, "died": 0}
        print(f"memory {memory / (1 << 20):.1f} then {memory_end / (1 << 20):.1f} MiB, loop late by {late} ms without its "
              f"waits for a CPU; now the accounts of {sum(len(s.files) for s in sims)} files", flush=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                held = {s.name: pool.map(functools.partial(file_account, s.name), s.files) for s in sims}
                for s in sims:
                    problems += account(s, truths[s.name], links[s.name], held[s.name], sums)
            finally:
                pool.shutdown(cancel_futures=True)  # after a signal: what has not begun
        print(f"{n_vms} VMs, {rate} events/s each, {seconds} s: memory "
              f"{memory / (1 << 20):.1f} then {memory_end / (1 << 20):.1f} MiB "
              f"({(memory_end / memory - 1) * 100:+.1f} %), "
              f"descriptors {warm['descriptors']} then {end['descriptors']}, CPU "
              f"{(end['cpu_ns'] - warm['cpu_ns']) / 1e7 / (seconds * 2 / 3):.1f} %, "
              f"loop late by {end['loop_lag_ever_ms']} ms at worst, {late} ms without its waits for a CPU; back after at worst: "
              + ", ".join(f"{fault} {worst[fault]:.1f} s (of {counts[fault]})" for fault in worst)
              + f"; {sums['emitted']} emitted, in the files {sums['delivered']} delivered + "
              f"{sums['dropped']} dropped + {sums['lost']} lost, {sums['unrecorded']} while the disk "
              f"was full, {sums['died']} died with their agents: {'NOT ' if problems else ''}exact")
        return problems
    finally:
        for s in sims:
            s.kill()
        d.stop()
        if mounted:
            subprocess.run(["umount", d.recordings], check=False)
        d.clean()


def account(sim, truth, link, held, sums):
    """Compares what a simulated guest's agents did with what the reports of its recordings say of
    them; `held` has the accounts of its files, in their order."""
    name, problems, ends, unrecorded, died = sim.name, [], {}, 0, 0
    totals = {"delivered": 0, "dropped_user": 0, "lost_channel": 0}
    emitted = {**sim.emitted, str(sim.agent.pid): truth["emitted"]}
    for path, (more, said, boots) in zip(sim.files, held):
        problems += more
        if not said:
            problems.append(f"{name}: {path}: nothing of the guest in it")
            continue
        for part in totals:
            totals[part] += said[part]
        for boot, cpus in boots:
            before = ends.setdefault(boot, {})
            unrecorded += sum(max(0, first - before.get(cpu, 0)) for cpu, (first, _, _) in cpus.items())
            before.update({cpu: last for cpu, (_, last, _) in cpus.items()})
    for boot, cpus in ends.items():
        end = sum(cpus.values())
        died += emitted[boot] - end
        if end > emitted[boot] or (boot == str(sim.agent.pid) and end < emitted[boot]):
            problems.append(f"{name}: {emitted[boot]} emitted, the recordings end at {cpus}")
    if len(sim.files) == 1 and unrecorded:
        problems.append(f"{name}: the recording begins late, or has holes: {unrecorded}")
    print(f"{name}: {sum(emitted.values())} emitted in {len(emitted)} boots; {len(sim.files)} files: "
          f"{totals['delivered']} delivered + {totals['dropped_user']} dropped + "
          f"{totals['lost_channel']} lost on the way, {unrecorded} between files, {died} died with "
          f"their agent; {link['decoder_deaths']} decoders died, "
          f"{link['decoder_cpu_ns'] / max(1, totals['delivered']):.0f} ns of their time per event")
    if truth["left"]:
        problems.append(f"{name}: the agent could not deliver everything")
    if set(ends) != set(emitted):
        problems.append(f"{name}: boots {sorted(emitted)}, in the files {sorted(ends)}")
    if len(sim.files) == len(emitted) == 1 and totals["dropped_user"] != truth["dropped"]:
        problems.append(f"{name}: {truth['dropped']} dropped, the report says {totals['dropped_user']}")
    sums["emitted"] += sum(emitted.values())
    sums["delivered"] += totals["delivered"]
    sums["dropped"] += totals["dropped_user"]
    sums["lost"] += totals["lost_channel"]
    sums["unrecorded"] += unrecorded
    sums["died"] += died
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
    parser.add_argument("--series", metavar="FILE", help="one line a fault: seconds, bytes, descriptors, ms that the loop was late, the fault")
    o = parser.parse_args()
    figures.end_by_signals()
    skip_unless_possible()
    problems = soak(o.vms or (64 if o.full else 2), o.rate or (1000 if o.full else 10000),
                    o.seconds or (1800 if o.full else 15), o.series)
    kill_count = o.kills if o.kills is not None else 200 if o.full else 3
    if kill_count:
        problems += kills(kill_count)
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
