#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""50 VMs stall at once. Each gets one record and one folder with its evidence immediately. The reports come
from a queue, within their budget. A daemon that starts again continues the rest of the queue. The daemon
answers all the time, and frees the memory of a VM that ended. With --goals it is an error if a record comes
later than 2 s after the stalls, or the evidence later than 30 s.
"""
import argparse
import collections
import json
import os
import signal
import time

from daemon_rig import Daemon, FakeVm, skip_unless_possible, until

VMS = 50
RECORDS_GOAL_S, EVIDENCE_GOAL_S = 2, 30
PAUSE_S = 1
JOBS = 2
ANSWER_S = 10  # the machine is busy with 64 VMs and the reports


class Burst:
    def __init__(self, goals):
        self.goals = goals
        self.vms = {f"vm{i}": FakeVm(f"vm{i}") for i in range(VMS)}
        self.daemon = Daemon("".join(f"[vm {name}]\npid = {vm.pid}\nflight_time = 2s\nstall = 500ms\n"
                                     for name, vm in self.vms.items()),
                             f"incident_gap = 60s\nreport_jobs = {JOBS}")
        self.slowest_s = 0

    def ask(self, *words):
        begin = time.monotonic()
        answer = self.daemon.ask(*words)
        self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
        return answer

    def running(self):
        return sum(vm["state"] == "running" for vm in self.ask("list")["vms"])

    def folders(self):
        """Those whose evidence is whole."""
        root = self.daemon.recordings / "incidents"
        found = sorted(root.iterdir()) if root.is_dir() else []
        return [path for path in found if (path / "incident.json").exists()]

    def verdicts(self):
        """The folders of each VM that was paused."""
        of = collections.defaultdict(list)
        for path in self.folders():
            try:
                summary = json.loads((path / "incident.json").read_text())
            except FileNotFoundError:  # it got its name meanwhile
                continue
            of[summary["vm"]].append(summary.get("verdict"))
        return of

    def storm(self):
        stopped = list(self.vms.values())
        for vm in stopped:
            os.kill(vm.pid, signal.SIGSTOP)
        time.sleep(PAUSE_S)
        for vm in stopped:
            os.kill(vm.pid, signal.SIGCONT)

    def recorded(self):
        """{VM: verdicts of its records} in the outbox, also in a segment that is being written, of what has ended."""
        root = self.daemon.recordings / "outbox"
        of = collections.defaultdict(set)
        for path in [*root.glob("incidents-*"), *root.glob("sent/incidents-*")]:
            try:
                lines = path.read_text().splitlines()
            except FileNotFoundError:  # it got its name meanwhile
                continue
            records = [json.loads(line) for line in lines]
            assert all(one["vm_vmm"] for one in records if one["vm_name"]), records
            for one in records:
                if one["ongoing"]:
                    continue
                of[one["vm_name"]].add(one["verdict"])
        return of

    def reported(self):
        status = self.ask("status")
        assert status["reports_running"] <= JOBS, status
        return [path for path in self.folders() if path.suffix != ".part"]

    def run(self):
        begin = time.monotonic()
        self.daemon.start()
        until("all run", lambda: self.running() == VMS)
        print(f"  {VMS} VMs run after {time.monotonic() - begin:.1f} s")
        time.sleep(1)
        self.storm()
        begin = time.monotonic()
        recorded = until("everybody's record", lambda: (lambda of: of if of.keys() >= self.vms.keys() else None)(
            self.recorded()))
        records_s = time.monotonic() - begin
        print(f"  records of {len(recorded.keys() & self.vms.keys())} VMs are there {records_s:.1f} s after the stalls")
        assert sum("vm_paused" in verdicts for verdicts in recorded.values()) > VMS * 3 // 4, recorded
        of = until("everybody's evidence", lambda: (lambda of: of if len(of) == VMS else None)(
            self.verdicts()))
        evidence_s = time.monotonic() - begin
        print(f"  all evidence is there {evidence_s:.1f} s after the stalls")
        if self.goals:
            assert records_s <= RECORDS_GOAL_S and evidence_s <= EVIDENCE_GOAL_S, (records_s, evidence_s)
        assert all(len(verdicts) == 1 for verdicts in of.values()), of
        # A busy machine stalls some by itself, just before: these have their folder already.
        paused = sum(verdicts == ["vm_paused"] for verdicts in of.values())
        assert paused > VMS * 3 // 4, of
        assert sum(path.suffix == ".part" for path in self.folders()) > JOBS, "no queue to speak of"
        flight = [vm["flight"] for vm in self.ask("list")["vms"]]
        assert all(one["folders"] == 1 for one in flight), flight
        done = until("some reports", lambda: (lambda done: done if len(done) >= 4 else None)(self.reported()))
        for path in done[:4]:
            for name in ("run.vcs", "report.json", "report.txt", "report.html"):
                assert (path / name).stat().st_size, path / name
        print(f"  the slowest answer took {self.slowest_s:.1f} s, the loop was late by "
              f"{self.ask('status')['loop_lag_ever_ms']} ms")
        assert self.slowest_s < ANSWER_S
        assert "gets no folder" not in self.daemon.log.read_text()

    def restart(self):
        self.daemon.stop()
        left = sum(path.suffix == ".part" for path in self.folders())
        assert left, "all were reported: too fast for this test"
        self.daemon.start()
        until("it takes up what is left",
              lambda: f"{left} incidents that an earlier daemon left get" in self.daemon.log.read_text())
        until("all run again", lambda: self.running() == VMS)
        self.vms["vm0"].end()
        until("all are reported", lambda: len(self.reported()) >= VMS, 120)
        for path in self.reported():
            assert (path / "report.html").stat().st_size, path
        until("what was known of a VM that ended is forgotten",
              lambda: self.daemon.vm("vm0")["flight"]["bytes"] == 0)

    def end(self):
        self.daemon.clean()
        for name, vm in self.vms.items():
            if name != "vm0" or vm.process.poll() is None:
                vm.end()


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--goals", action="store_true")
    a = p.parse_args()
    skip_unless_possible()
    burst = Burst(a.goals)
    try:
        burst.run()
        burst.restart()
    finally:
        burst.end()
