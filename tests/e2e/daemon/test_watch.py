#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""`vcpuscope watch`: what it takes of a VM, and what it refuses. The VM is a process that looks like one; its
guest's agent is simulated."""
import json
import subprocess
import unittest

from daemon_rig import BUILD, Daemon, FakeVm, PROGRAM, skip_unless_possible, until

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"


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

    def refused(self, words, why):
        done = watch("--pid", self.vm.pid, *words)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(len(done.stderr.splitlines()), 1, done)
        self.assertIn(why, done.stderr)

    def test_no_guest_leaves_the_guest_out(self):
        d = self.daemon()
        through = ("tasks", "-i", "500ms", "--vm", "v", "--control", d.control, "--for", "2s", "--format", "json")
        for more, seen in (((), True), (("--no-guest",), False)):
            done = watch(*through, *more)
            self.assertEqual(done.returncode, 0, done)
            tasks = [row["pid"] for line in done.stdout.splitlines() for row in json.loads(line)["rows"]]
            self.assertEqual(bool(tasks), seen, done.stderr)  # of the guest

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
