#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the flight recorder. A stall leaves a folder with the correct verdict and only the last seconds,
although names, threads and stacks were sent long before. Many stalls leave few folders, within a budget. The
guest side is in the folder, without false losses. Events of libvirt about a domain leave a folder, too. The
VM is a process that looks like a VM; its guest's agent captures this machine.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from daemon_rig import BUILD, PROGRAM, Daemon, FakeVm, skip_unless_possible, until

AGENT = BUILD / "guest-agent/vcpuscope-agent"
FLIGHT_S = 2
GAP = "incident_gap = 1s"  # a busy machine may make stalls of its own
# The agent watches this machine. Beside builds its tasks wait all the time, and the waits add up to
# stalls of up to 1 s that would take the folders.
BUSY_GUEST_STALL_S = 1.5
BUSY_GUEST_PAUSE_S = BUSY_GUEST_STALL_S + 0.4
STALLS = 3


def stall(vm, seconds=0.4):
    os.kill(vm.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(vm.pid, signal.SIGCONT)


class FlightTest(unittest.TestCase):
    def setUp(self):
        self.vm = FakeVm("web1")
        self.addCleanup(self.vm.end)

    def daemon(self, vm="", settings=GAP):
        daemon = Daemon(f"[vm web1]\npid = {self.vm.pid}\nflight_time = {FLIGHT_S}s\n{vm}", settings)
        self.addCleanup(daemon.clean)
        self.start(daemon)
        return daemon

    @staticmethod
    def start(daemon):
        daemon.start()
        until("it watches", lambda: daemon.vm("web1")["state"] == "running")
        until("events come", lambda: daemon.vm("web1")["flight"]["bytes"] > 10000)
        time.sleep(1)

    @staticmethod
    def folders(daemon):
        root = daemon.recordings / "incidents"
        return sorted(p for p in root.iterdir() if p.suffix != ".part") if root.is_dir() else []

    def folder_after_stall(self, daemon, seconds=0.4):
        """The new one, and how long after the stall's end it was there. One of the machine's own just
        before would have the only folder of that second: then once more."""
        for left in reversed(range(STALLS)):
            before = self.folders(daemon)
            stall(self.vm, seconds)
            end = time.monotonic()
            try:
                return until("a folder of the stall", lambda: self.folder_of_pause(daemon, before),
                             15 if left else 30), time.monotonic() - end
            except AssertionError:
                if not left:
                    self.tell(daemon)
                    raise

    def tell(self, daemon):
        """What there is instead of the folder: a failure elsewhere must be understood from its print."""
        for folder in self.folders(daemon):
            summary = json.loads((folder / "incident.json").read_text())
            print(folder.name, {key: summary.get(key) for key in
                                ("verdict", "confidence", "state", "duration_ns", "sentence")})
        print(json.dumps(daemon.vm("web1"), indent=1))
        print(daemon.log.read_text()[-4000:], flush=True)

    def folder_of_pause(self, daemon, before):
        new = [p for p in self.folders(daemon) if p not in before and
               json.loads((p / "incident.json").read_text()).get("verdict") == "vm_paused"]
        self.assertLessEqual(len(new), 1)
        return new[0] if new else None

    def check(self, folder):
        summary = json.loads((folder / "incident.json").read_text())
        report = json.loads((folder / "report.json").read_text())
        self.assertEqual(summary["verdict"], "vm_paused")
        self.assertEqual(summary["directory"], str(folder))
        self.assertTrue(300e6 < summary["duration_ns"] < 5e9, summary)
        paused = [i for i in report["incidents"] if i["verdict"] == "vm_paused"]
        # The ring still has a stall that ended less than flight_time ago, as a whole.
        self.assertIn(len(paused), (1, 2), report["incidents"])
        self.assertTrue(any(c["comm"].startswith("python") for c in paused[-1]["culprits"]), paused)
        self.assertIn("vm_paused", (folder / "report.txt").read_text())
        self.assertIn("vm_paused", (folder / "report.html").read_text())
        return report

    def test_a_stall_leaves_a_folder_of_the_last_seconds(self):
        daemon = self.daemon()
        time.sleep(2 * FLIGHT_S)  # what the beginning told is older than what is kept
        folder, after_s = self.folder_after_stall(daemon)
        report = self.check(folder)
        seconds = (report["end_ns"] - report["begin_ns"]) / 1e9
        self.assertTrue(1 < seconds < FLIGHT_S + 2, f"{seconds} s are in it")
        self.assertLess(after_s, 20)
        stacks = subprocess.run([PROGRAM, "report", folder / "run.vcs"], capture_output=True,
                                text=True).stdout
        self.assertIn("do_signal_stop", stacks)
        done = daemon.ctl("snapshot", "web1")
        self.assertEqual(done.returncode, 0, done.stderr)
        until("the snapshot's folder", lambda: os.path.isdir(done.stdout.strip()))

    def test_a_stall_beyond_the_rings_time_is_whole(self):
        daemon = self.daemon()
        folder, _ = self.folder_after_stall(daemon, 3 * FLIGHT_S)
        report = json.loads((folder / "report.json").read_text())
        paused = [i for i in report["incidents"] if i["verdict"] == "vm_paused"]
        self.assertEqual(len(paused), 1, report["incidents"])
        self.assertGreater(paused[0]["end_ns"] - paused[0]["begin_ns"], 3 * FLIGHT_S * 0.95e9)
        time.sleep(2.5 * FLIGHT_S)  # then the ring keeps its usual time again
        done = daemon.ctl("snapshot", "web1")
        self.assertEqual(done.returncode, 0, done.stderr)
        snapshot = pathlib.Path(done.stdout.strip())
        until("the snapshot's folder", snapshot.is_dir)
        report = json.loads((snapshot / "report.json").read_text())
        self.assertLess((report["end_ns"] - report["begin_ns"]) / 1e9, FLIGHT_S + 2)

    def test_the_command_reads_the_incident(self):
        daemon = self.daemon()
        got = daemon.folder / "got"
        daemon.stop()
        daemon.settings = f"{GAP}\non_incident = cat >{got}"
        daemon.configure(f"[vm web1]\npid = {self.vm.pid}\n")
        self.start(daemon)
        folder, _ = self.folder_after_stall(daemon)
        until("the command read it", lambda: got.exists() and got.read_text().endswith("}") and
              json.loads(got.read_text())["directory"] == str(folder))

    def test_many_stalls_leave_few_folders(self):
        daemon = self.daemon(settings="incident_gap = 4s")
        begin = time.monotonic()
        for _ in range(8):
            stall(self.vm, 0.15)
            time.sleep(0.4)
        most = (time.monotonic() - begin) / 4 + 1
        flight = until("all are counted", lambda: (lambda f: f if f["stalls"] >= 8 else None)(
            daemon.vm("web1")["flight"]))
        until("folders are done", lambda: len(self.folders(daemon)) ==
              daemon.vm("web1")["flight"]["folders"])
        self.assertTrue(1 <= len(self.folders(daemon)) <= most, self.folders(daemon))
        self.assertGreaterEqual(flight["stalls_without_folder"], 8 - most - 1)

    def test_a_budget_removes_the_oldest(self):
        daemon = self.daemon(settings="incidents_budget = 300K\nincident_gap = 1s")
        made = []
        for _ in range(4):
            made.append(self.folder_after_stall(daemon)[0])
            time.sleep(1.1)
        left = self.folders(daemon)
        self.assertNotIn(made[0], left)
        self.assertIn(made[-1], left)
        self.assertIn("budget is used up", daemon.log.read_text())

    def test_the_agents_half_is_whole(self):
        daemon = self.daemon()
        socket = daemon.folder / "agent"
        daemon.ctl("detach", "web1")
        done = daemon.ctl("attach", "web1", f"pid={self.vm.pid}", f"channel=listen:unix:{socket}",
                          f"flight_time={2 * FLIGHT_S}s", f"stall={BUSY_GUEST_STALL_S * 1000:.0f}ms")
        self.assertEqual(done.returncode, 0, done.stderr)
        until("it listens", socket.exists)
        agent = subprocess.Popen([AGENT, "--connect", f"unix:{socket}"], stderr=subprocess.DEVNULL)
        try:
            until("the agent is heard", lambda: daemon.vm("web1")["channel"] == "ok")
            time.sleep(2 * FLIGHT_S)
            folder, _ = self.folder_after_stall(daemon, BUSY_GUEST_PAUSE_S)
        finally:
            agent.kill()
            agent.wait()
        self.without_the_agent(daemon)
        report = self.check(folder)
        guest = next(loss for name, loss in report["loss"].items() if name != "host")
        self.assertGreater(guest["delivered"], 100)
        self.assertEqual(guest["lost_frames"], 0)
        self.assertEqual(guest["emitted"], guest["delivered"] + guest["dropped_kernel"] +
                         guest["dropped_user"])
        clock = report["clock"][0]
        self.assertEqual(clock["causality_violations"], 0)
        self.assertNotEqual(clock["method"], "none")
        rows = json.loads(subprocess.run(
            [PROGRAM, "report", folder / "run.vcs", "tasks", "--top", "0", "--format", "json"],
            capture_output=True, text=True, check=True).stdout)["rows"]
        named = [row for row in rows if row.get("comm") or row.get("task")]
        self.assertGreater(len(named), len(rows) / 2, rows)

    def without_the_agent(self, daemon):
        """It was killed: the host's half goes on alone."""
        until("its end is told", lambda: "stalls are reported from the host's side alone" in
              daemon.log.read_text(), 5)
        time.sleep(1.1)  # a folder a second
        folder, after_s = self.folder_after_stall(daemon, BUSY_GUEST_PAUSE_S)
        self.check(folder)
        self.assertLess(after_s, 5)

    def test_watch_goes_on_without_the_agent(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-watch-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, folder, True)
        out = folder / "out"
        with open(out, "wb") as f:
            watch = subprocess.Popen([PROGRAM, "watch", "--pid", str(self.vm.pid), "--than", "300ms", "--channel",
                                      f"listen:unix:{folder}/agent"], stdout=f, stderr=subprocess.STDOUT)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.terminate)
        until("it listens", (folder / "agent").exists)
        agent = subprocess.Popen([AGENT, "--connect", f"unix:{folder}/agent"], stderr=subprocess.DEVNULL)
        until("the agent is heard", lambda: "on guest kernel" in out.read_text())
        time.sleep(2)
        agent.kill()
        agent.wait()
        until("its end is told", lambda: "stalls are reported from the host's side alone" in out.read_text(), 5)
        for told in (1, 2):
            stall(self.vm, 0.7)
            end = time.monotonic()
            until("the incident", lambda: len(re.findall(r"^vm_paused \(decided\)  \d", out.read_text(), re.M)) >= told,
                  10)
            self.assertLess(time.monotonic() - end, 3, out.read_text())  # 1 s and a busy machine
        ongoing = re.findall(r"^ongoing.*", out.read_text(), re.M)
        self.assertTrue(any("vm_paused (decided)" in line for line in ongoing), ongoing)
        self.assertNotIn("task vcpuscope-agent", out.read_text())

    def test_libvirts_events_leave_a_folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-feed-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, folder, True)
        shutil.copy(PROGRAM, folder / "vcpuscope")
        uuid = "01234567-89ab-cdef-0123-456789abcdef"
        told = ({"event": "connected"},
                {"event": "domain", "name": "web1", "uuid": uuid, "pid": self.vm.pid,
                 "settings": {"libvirt_watchdog": "no", "stall": "60s", "runnable": "no", "steal": "lots"}})
        notes = ({"event": "note", "uuid": uuid, "trigger": "libvirt_watchdog", "text": "not wanted"},
                 {"event": "note", "uuid": uuid, "trigger": "nonsense", "text": "not known"},
                 {"event": "note", "uuid": uuid, "trigger": "libvirt_io_error", "text": "I/O error on vda"},
                 {"event": "note", "uuid": uuid, "trigger": "libvirt_panic", "text": "the guest panicked"})
        helper = folder / "vcpuscope-libvirt"
        helper.write_text("#!/bin/sh\n" + "".join(f"echo '{json.dumps(o)}'\n" for o in told) +
                          f"while [ ! -e {folder}/go ]; do sleep 0.1; done\n" +
                          "".join(f"echo '{json.dumps(o)}'\n" for o in notes) + "cat >/dev/null\n")
        helper.chmod(0o755)
        daemon = Daemon(settings="libvirt = test:///", program=folder / "vcpuscope")
        self.addCleanup(daemon.clean)
        daemon.start()
        until("the domain is watched", lambda: (daemon.vm("web1") or {}).get("state") == "running")
        until("events come", lambda: daemon.vm("web1")["flight"]["bytes"] > 10000)
        (folder / "go").touch()
        made = until("a folder of the event", lambda: self.folders(daemon))
        self.assertEqual(len(made), 1)
        summary = json.loads((made[0] / "incident.json").read_text())
        self.assertEqual((summary["trigger"], summary["because"]), ("libvirt_io_error", "I/O error on vda"))
        flight = daemon.vm("web1")["flight"]
        self.assertEqual((flight["triggers"], flight["folders"], flight["stalls_without_folder"]), (2, 1, 1))
        log = daemon.log.read_text()
        for line in ("libvirt: not wanted", "libvirt: not known", "steal: `lots` is wrong"):
            self.assertIn(line, log)

    def test_top_shows_the_daemons_vms(self):
        other = FakeVm("web2", 2)
        self.addCleanup(other.end)
        daemon = self.daemon(vm=f"[vm web2]\npid = {other.pid}\n")
        until("it watches the other", lambda: daemon.vm("web2")["state"] == "running")
        os.kill(self.vm.pid, signal.SIGSTOP)
        try:
            time.sleep(2.5)
            done = subprocess.run([PROGRAM, "top", "--batch", "--count", "2", "--control", daemon.control],
                                  capture_output=True, text=True, timeout=30)
        finally:
            os.kill(self.vm.pid, signal.SIGCONT)
        self.assertEqual(done.returncode, 0, done.stderr)
        last = done.stdout.strip().split("\n\n")[-1]
        rows = {line.split()[0]: line for line in last.splitlines() if line.split()[:1] in (["web1"], ["web2"])}
        self.assertEqual(sorted(rows), ["web1", "web2"], done.stdout)
        self.assertIn("100", rows["web1"])
        done = subprocess.run([PROGRAM, "top", "--batch", "--control", f"{daemon.folder}/none"],
                              capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("does `vcpuscope daemon` run?", done.stderr)


if __name__ == "__main__":
    skip_unless_possible()
    unittest.main()
