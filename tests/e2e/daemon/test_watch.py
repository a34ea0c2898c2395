#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests which events of a VM `vcpuscope watch` takes, and which options it refuses. The VM is a process that
looks like a VM; its guest's agent is simulated.
"""
import json
import os
import re
import signal
import subprocess
import time
import unittest

from daemon_rig import BUILD, Daemon, FakeVm, PROGRAM, skip_unless_possible, until

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"
OFF_CPU = "off=host:sched:sched_switch//key=prev_pid/..host:sched:sched_switch//key=next_pid/"


def watch(*words):
    return subprocess.run([PROGRAM, "watch", *map(str, words)], capture_output=True, text=True, timeout=60)


class Watch(unittest.TestCase):
    def setUp(self):
        self.vm = FakeVm("v", 2)
        self.addCleanup(self.vm.end)

    def daemon(self):
        """One that watches the VM, whose agent makes events."""
        d = Daemon()
        self.addCleanup(d.clean)
        d.configure(f"[vm v]\npid = {self.vm.pid}\nchannel = listen:unix:{d.folder}/agent\n")
        d.start()
        agent = subprocess.Popen([SIM_AGENT, d.folder / "agent", "1000"], stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL)
        self.addCleanup(agent.communicate)
        self.addCleanup(agent.kill)
        until("the guest's events come", lambda: d.vm("v")["guest_emitted"] > 1000 and "clock" in d.vm("v"))
        return d

    def refused(self, words, why, lines=1):
        done = watch("--pid", self.vm.pid, *words)
        self.assertEqual(done.returncode, 2, done)
        if lines:
            self.assertEqual(len(done.stderr.splitlines()), lines, done)
        self.assertIn(why, done.stderr)

    def test_no_guest_leaves_the_guest_out(self):
        d = self.daemon()
        through = ("tasks", "-i", "500ms", "--vm", "v", "--control", d.control, "--for", "2s", "--format", "json")
        for more, seen in (((), True), (("--no-guest",), False)):
            done = watch(*through, *more)
            self.assertEqual(done.returncode, 0, done)
            tasks = [row["pid"] for line in done.stdout.splitlines() for row in json.loads(line)["rows"]]
            self.assertEqual(bool(tasks), seen, done.stderr)  # of the guest

    def stalled(self, *words):
        """What watch prints when the VM stands still for half a second."""
        process = subprocess.Popen([PROGRAM, "watch", "--pid", str(self.vm.pid), *map(str, words)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        time.sleep(3)  # until it captures, on a busy machine
        os.kill(self.vm.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(self.vm.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        return out, err

    def test_a_long_pair_is_a_line(self):
        out, _ = self.stalled("--no-guest", "--for", "5s", "--pair", OFF_CPU, "--pair-than", "300ms")
        lines = re.findall(r"^[\d:.+]{21}  VM (\S+), vCPU (\d): pair off took (\d+) ms \(\+-.*\), key (\d+)", out, re.M)
        self.assertEqual({vcpu for _, vcpu, *_ in lines}, {"0", "1"}, out)
        self.assertTrue(all(int(ms) >= 300 for _, _, ms, _ in lines), out)
        self.assertIn("pair off, host:sched:sched_switch", out)  # evidence of the stall

    def test_what_is_not_captured_anyway_is_captured(self):
        out, err = self.stalled("--no-guest", "--for", "5s", "--format", "json", "-e", "sched:sched_process_exit",
                                "--pair", "a=sched:sched_stat_runtime//key=pid/..host:sched:sched_switch//key=prev_pid/",
                                OFF_CPU, "b=sched:sched_stat_runtime//key=pid/..host:sched:sched_switch//key=next_pid/",
                                "never=host:sched:sched_switch//key=tid/..host:kvm:kvm_exit//key=tid/",
                                "--pair-than", "1us", "300ms", "300ms", "1us")
        lines = [json.loads(line) for line in out.splitlines()]
        pairs = [line for line in lines if "pair" in line]
        self.assertEqual({p["pair"] for p in pairs}, {"a", "off", "b"}, err)
        self.assertFalse([line for line in lines if "event" in line])  # of the pairs, no hits
        for p in pairs:
            self.assertGreaterEqual(p["duration_ns"], 1000 if p["pair"] == "a" else 300000000)
            self.assertEqual(p["duration_ns"], p["to"]["t_ns"] - p["from"]["t_ns"])
        runs = [p for p in pairs if p["pair"] == "a" and not p["past_losses"]]
        self.assertTrue(runs and all("runtime" in p["from"]["fields"] for p in runs), runs[:2])

    def test_an_event_that_e_names_too_is_captured_once(self):
        done = watch("--pid", self.vm.pid, "--no-guest", "--for", "3s", "--format", "json", "-e", "sched:sched_stat_runtime",
                     "--pair", "a=sched:sched_stat_runtime//key=pid/..host:sched:sched_switch//key=prev_pid/")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        hits = [(h["t_ns"], h["cpu"], h["tid"]) for h in lines if "event" in h]
        self.assertTrue(hits)
        self.assertEqual(len(hits), len(set(hits)))
        self.assertTrue(any("pair" in line for line in lines))

    def test_pairs_of_a_vm_of_the_daemon(self):
        d = self.daemon()
        done = watch("--vm", "v", "--control", d.control, "--for", "6s", "--format", "json", "--pair",
                     "own=host:sched:sched_switch..guest:sched:sched_switch", "not=sched:sched_stat_runtime..kvm:kvm_exit")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("pair not is not counted: from: ", done.stderr)
        pairs = [p for p in map(json.loads, done.stdout.splitlines()) if "pair" in p]
        self.assertTrue(pairs)
        for p in pairs:
            self.assertEqual((p["pair"], p["from"]["side"], p["to"]["side"]), ("own", "host", "guest"))

    def test_pairs_that_cannot_be(self):
        pair = "x=sched:sched_stat_runtime..host:sched:sched_switch"
        self.refused(["--pair-than", "1ms"], "--pair-than needs --pair")
        self.refused(["--pair", pair, "--pair-than", "1ms", "2ms"], "one for each --pair")
        self.refused(["--pair", pair, "--pair-than", "soon"], "expected a time")
        self.refused(["--pair", "x=sched:sched_switch"], "want two events")
        self.refused(["--pair", "x=kvm:kvm_exit..guest:irq:irq_handler_entry", "--no-guest"], "--no-guest", lines=None)
        self.refused(["--pair", "x=kvm:kvm_exit..sched:sched_nonsense", "--no-guest"], "no tracepoint", lines=None)

    def test_no_guest_needs_no_channel(self):
        done = watch("--pid", self.vm.pid, "--no-guest", "--for", "500ms")
        self.assertEqual(done.returncode, 0, done)
        self.assertNotIn("channel", done.stderr)

    def test_no_guest_excludes_what_asks_the_guest(self):
        self.refused(["--no-guest", "--channel", "/tmp/x"], "--channel and --no-guest cannot be combined")
        self.refused(["--no-guest", "-e", "guest:block:block_rq_issue"], "-e guest:... and --no-guest cannot")
        self.refused(["--no-guest", "--guest-level", "summary"], "--guest-* and --no-guest cannot be combined")


if __name__ == "__main__":
    skip_unless_possible()
    unittest.main()
