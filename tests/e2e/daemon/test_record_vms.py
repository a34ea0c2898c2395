#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests `record` of several VMs (stand-ins, with simulated agents). One recording has both sides of each VM,
and continues when a VM ends or has no agent. Also tests which options `record` refuses.
"""
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from daemon_rig import BUILD, PROGRAM, Daemon, FakeVm, report_json, skip_unless_possible, until

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"
RATE = 2000


class RecordVms(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-vms-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.vms = [FakeVm("one", 2), FakeVm("two", 3)]
        for vm in self.vms:
            self.addCleanup(vm.end)
        self.run_vcs = self.folder / "run.vcs"

    def agent(self, name):
        agent = subprocess.Popen([SIM_AGENT, self.folder / name, str(RATE)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(agent.stdout.close)
        return agent

    def record(self, *words):
        process = subprocess.Popen([PROGRAM, "record", "-o", self.run_vcs, *words], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        until("it records", lambda: process.poll() is not None or self.run_vcs.exists())
        return process

    def pids(self):
        return [word for vm in self.vms for word in ("--pid", str(vm.pid))]

    def refused(self, words, says):
        done = subprocess.run([PROGRAM, "record", "-o", self.run_vcs, *words], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn(says, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done)
        self.assertFalse(self.run_vcs.exists())

    def test_both_sides_of_each(self):
        """Each VM has its vCPUs, its guest and its own losses, and --vm selects it."""
        process = self.record(*self.pids(), "--channel", f"listen:unix:{self.folder}/a", f"listen:unix:{self.folder}/b")
        agents = [self.agent("a"), self.agent("b")]
        time.sleep(4)
        truths = []
        for agent in agents:  # at its end, an agent delivers everything
            out, _ = agent.communicate(timeout=60)
            truths.append(json.loads(out))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("of 2 VMs (5 vCPUs)", said)
        report = report_json(self.run_vcs)
        names = sorted({v["vm"] for v in report["vcpus"]})
        self.assertEqual(len(names), 2, names)
        by_pid = {name: next(vm for vm in self.vms if str(vm.pid) in name) for name in names}
        for vm, vcpus in zip(self.vms, (2, 3)):
            name = next(name for name, its in by_pid.items() if its is vm)
            rows = [v for v in report["vcpus"] if v["vm"] == name]
            self.assertEqual(sorted(v["vcpu"] for v in rows), list(range(vcpus)))
            for v in rows:  # they sleep 10 ms at a time, and on a busy machine they wait in between
                self.assertGreater(v["states_ns"]["halted"] + v["states_ns"]["blocked"], 1e8, v)
                self.assertGreater(sum(v["states_ns"].values()) - v["states_ns"]["unknown"], 2e9, v)
            loss = report["loss"][name]
            truth = truths[self.vms.index(vm)]
            self.assertEqual(loss["emitted"], truth["emitted"], (loss, truth))
            self.assertEqual(loss["delivered"] + loss["dropped_user"] + loss["dropped_kernel"], truth["emitted"])
            self.assertGreater(loss["delivered"], RATE)
            narrow = json.loads(subprocess.run([PROGRAM, "report", self.run_vcs, "vcpu", "--vm", name, "--format", "json"],
                                               capture_output=True, text=True).stdout)
            self.assertEqual({row["vm"] for row in narrow["rows"]}, {name})
        host = report["loss"]["host"]
        self.assertFalse(host["lost_frames"] or host["overdelivered"] or host["nonsense_frames"], host)

    def test_one_ends(self):
        """The others are still recorded; the recording ends with the last one, whichever it is."""
        for first in (0, 1):
            self.run_vcs.unlink(missing_ok=True)
            process = self.record(*self.pids(), "--no-guest")
            time.sleep(1)
            self.vms[first].end()
            time.sleep(2.5)
            if process.poll() is not None:
                self.fail(process.communicate()[1])
            self.vms[1 - first].end()
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, said)
            self.assertEqual(said.count("has exited: the other VMs are still recorded"), 1, said)
            self.assertEqual(said.count("has exited: the recording ends"), 1, said)
            report = report_json(self.run_vcs)
            self.assertEqual(len(report["vcpus"]), 5)
            for v in report["vcpus"]:
                gone = v["unknown_ns"].get("thread_ended", 0)
                if str(self.vms[first].pid) in v["vm"]:
                    self.assertGreater(gone, 2e9, v)
                else:
                    self.assertLess(gone, 1e9, v)
            self.vms = [FakeVm("one", 2), FakeVm("two", 3)]
            for vm in self.vms:
                self.addCleanup(vm.end)

    def test_one_ends_with_its_channel(self):
        """The channel of a VM that has ended is closed: another guest could find it. Lines name their VM."""
        process = self.record(*self.pids(), "--channel", f"listen:unix:{self.folder}/a", f"listen:unix:{self.folder}/b")
        agents = [self.agent("a"), self.agent("b")]
        time.sleep(2)
        self.vms[0].end()
        until("its channel is closed", lambda: not (self.folder / "a").exists())
        self.assertTrue((self.folder / "b").exists())
        agents[0].communicate(timeout=60)
        time.sleep(2)
        truth = json.loads(agents[1].communicate(timeout=60)[0])
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, said)
        for vm in self.vms:
            self.assertRegex(said, f"(?m)^[^:\n]*{vm.pid}: .*agent")
        report = report_json(self.run_vcs)
        losses = {pid: loss for name, loss in report["loss"].items() for pid in (vm.pid for vm in self.vms) if str(pid) in name}
        self.assertEqual(losses[self.vms[1].pid]["emitted"], truth["emitted"])
        self.assertGreater(losses[self.vms[0].pid]["delivered"], RATE)

    def test_one_has_no_agent(self):
        """Its channel fails; the other guest is recorded all the same, and the end names the VM without a guest side."""
        process = self.record(*self.pids(), "--channel", self.folder / "missing", f"listen:unix:{self.folder}/b")
        agent = self.agent("b")
        time.sleep(2)
        truth = json.loads(agent.communicate(timeout=60)[0])
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, said)
        missing = [line for line in said.splitlines() if "has only its host side" in line]
        self.assertEqual(len(missing), 1, said)
        self.assertIn(str(self.vms[0].pid), missing[0])
        loss = next(loss for name, loss in report_json(self.run_vcs)["loss"].items() if str(self.vms[1].pid) in name)
        self.assertEqual(loss["emitted"], truth["emitted"])

    def test_level_and_names(self):
        """--vm takes several names, and a VM can be without an agent."""
        listed = json.loads(subprocess.run([PROGRAM, "list", "--all", "--format", "json"], capture_output=True, text=True,
                                           check=True).stdout)
        names = [next(vm["name"] for vm in listed["vms"] if vm["pid"] == one.pid) for one in self.vms]
        process = self.record("--vm", names[0], "--vm", names[1], "--channel", "none", "--channel",
                              f"listen:unix:{self.folder}/b", "--for", "3s", "--level", "summary")
        agent = self.agent("b")
        _, said = process.communicate(timeout=60)
        agent.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, said)
        report = report_json(self.run_vcs)
        self.assertEqual({v["vm"] for v in report["vcpus"]}, set(names))
        self.assertGreater(report["loss"][names[1]]["delivered"], 100)
        self.assertEqual(report["loss"].get(names[0], {"emitted": 0})["emitted"], 0)
        hint = subprocess.run([PROGRAM, "report", self.run_vcs, "--vm", names[0]], capture_output=True, text=True).stdout
        self.assertIn(f"The guest of VM {names[0]} was not recorded", hint)

    def test_an_older_recording_stays(self):
        """If one of the VMs cannot be recorded, nothing is written."""
        self.run_vcs.write_text("older")
        for last in (["--pid", "1", "--no-guest"], ["--pid", str(self.vms[1].pid), "--channel", "none", "tcp:x:y"]):
            done = subprocess.run([PROGRAM, "record", "-o", self.run_vcs, "--pid", str(self.vms[0].pid), *last],
                                  capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(self.run_vcs.read_text(), "older", done)

    def test_refusals(self):
        pid = str(self.vms[0].pid)
        two = self.pids()
        self.refused(["--pid", pid, "--pid", pid, "--no-guest"], "is given twice")
        self.refused([*two, "--channel", "listen:unix:/tmp/x"], "one for each VM")
        self.refused(["--pid", pid, "--channel", "a", "--channel", "b"], "there is one VM")
        self.refused([*two, "--qmp", "/tmp/x", "--no-guest"], "--qmp selects one VM")
        self.refused([*two, "--vm", "web1", "--no-guest"], "--vm NAME, --pid N or --qmp PATH")
        self.refused(["--pid", pid, "0", "--no-guest"], "expected a process ID")
        self.refused(two, "the channel to the agent is missing")
        d = Daemon(f"[vm web1]\npid = {pid}\nflight = no\n")
        self.addCleanup(d.clean)
        d.start()
        until("it runs", lambda: d.vm("web1")["state"] == "running")
        self.refused(["--control", str(d.control), *two, "--no-guest"], "the daemon watches it")


if __name__ == "__main__":
    skip_unless_possible()
    unittest.main()
