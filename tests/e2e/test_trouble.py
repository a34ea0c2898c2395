#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests bad input and other faults on a real channel (bed A): lost data is counted, and the rest is still
explained. Each case ends with a real guest stall that the report must find.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/beds"]
import bed  # noqa: E402
import relay  # noqa: E402
import state_times  # noqa: E402

STALL_MS = 300
SETTLE_S = 2.0  # programs attached, clocks met


def flipped(frame, position):
    spoilt = bytearray(frame)
    spoilt[position] ^= 0x10
    return bytes(spoilt)


# Put in after a good frame: must cost nothing.
INJECTIONS = {
    "noise": lambda f: f + os.urandom(5000),
    "a magic and noise": lambda f: f + relay.MAGIC + os.urandom(300),
    "half a frame": lambda f: f + f[:len(f) // 2],
    "a replayed frame": lambda f: f + f,
    "a copy with a flipped bit": lambda f: f + flipped(f, len(f) - 1),
    "a header that promises 4 GiB": lambda f: f + relay.header_with(f, payload_bytes=0xFFFFFFFF),
    "a header that unpacks to 4 GiB": lambda f: f + relay.header_with(f, raw_bytes=0xFFFFFFFF),
    "a frame of another version": lambda f: f + relay.header_with(f, version=99),
    "a frame of unknown kind": lambda f: f + relay.header_with(f, kind=200),
}

# Done to a good frame: must cost exactly this frame.
DAMAGES = {
    "a flipped bit in the payload": lambda f: flipped(f, relay.HEADER.size + 1),
    "a flipped bit in the header": lambda f: flipped(f, 9),
    "a lost frame": lambda f: b"",
    "a frame cut short": lambda f: f[:-3],
}


class Trouble(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.builder = bed.Builder()
        cls.program = f"{cls.builder.build}/host-collector/vcpuscope"

    def setUp(self):
        self.guest = bed.boot_a(self.builder)
        self.addCleanup(self.guest.close)
        self.relay = relay.Relay(f"{self.guest.folder}/relay", self.guest.agent_socket)
        self.addCleanup(self.relay.close)
        self.guest.run("insmod /root/stall.ko; provoke ticker 5000 >/dev/null 2>&1 </dev/null &")
        self.agent_start()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def agent_start(self):
        """Starts the agent and waits until it captures."""
        self.guest.run("vcpuscope-agent >>/root/agent.log 2>&1 </dev/null & echo $! >/run/agent.pid; "
                       "until ls -l /proc/$!/fd | grep -q vport; do sleep 0.1; done")

    def record(self, name="run.vcs"):
        """A running collector."""
        process = subprocess.Popen(
            [self.program, "record", "--pid", str(self.guest.pid), "--channel", self.relay.path,
             "-o", f"{self.folder.name}/{name}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.reap, process)
        time.sleep(SETTLE_S)
        self.assertIsNone(process.poll(), "the collector ended at once")
        return process

    @staticmethod
    def reap(process):
        process.kill()
        process.wait()
        process.stdout.close()

    def stop(self, process):
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0, said)
        return said

    def stall(self):
        self.guest.run(f"provoke stall preempt {STALL_MS}")

    def report(self, name="run.vcs"):
        done = subprocess.run([self.program, "report", f"{self.folder.name}/{name}", "--than", "100ms",
                               "--format", "json"], capture_output=True, text=True, timeout=60)
        self.assertIn(done.returncode, state_times.REPORTED, done.stderr)
        return state_times.check(json.loads(done.stdout))

    def assert_explained(self, report, stalls=1):
        spins = [i for i in report["incidents"] if i["verdict"] == "guest_spin"
                 and i["task"]["comm"] == "guest-spinner"]
        self.assertEqual(len(spins), stalls, report["incidents"])
        for spin in spins:  # a busy machine takes its share of the stall, but not of its length
            self.assertAlmostEqual(spin["duration_ns"] / 1e6, STALL_MS, delta=0.2 * STALL_MS)

    @staticmethod
    def guest_loss(report):
        loss, = (loss for source, loss in report["loss"].items() if source != "host")
        return loss

    def test_injected_bytes_cost_nothing(self):
        process = self.record()
        for name, spoil in INJECTIONS.items():
            with self.subTest(name):
                self.relay.spoil_next(spoil)
        self.stall()
        said = self.stop(process)
        report = self.report()
        self.assert_explained(report)
        self.assertEqual(self.guest_loss(report)["lost_frames"], 0)
        # All of it is counted, and each kind is said once, however often it came.
        counted = re.search(r"(\d+) damaged and (\d+) replayed frames; (\d+) bytes", said)
        self.assertTrue(counted, said)
        self.assertGreater(int(counted[1]), 0)
        self.assertEqual(int(counted[2]), 2)  # the replay, and the unknown kind under an old number
        self.assertGreater(int(counted[3]), 5000)
        self.assertEqual(said.count("damaged or foreign bytes"), 1)

    def test_damaged_frames_are_counted_one_by_one(self):
        process = self.record()
        for name, spoil in DAMAGES.items():
            with self.subTest(name):
                self.relay.spoil_next(spoil)
                time.sleep(0.2)
        self.stall()
        self.stop(process)
        report = self.report()
        self.assert_explained(report)
        self.assertEqual(self.guest_loss(report)["lost_frames"], len(DAMAGES))

    def test_an_agent_that_was_killed_and_comes_back(self):
        process = self.record()
        self.stall()
        time.sleep(0.5)
        self.guest.run("kill -9 $(cat /run/agent.pid)")
        time.sleep(0.5)
        self.agent_start()
        time.sleep(SETTLE_S)
        self.stall()
        self.stop(process)
        report = self.report()
        self.assert_explained(report, stalls=2)
        # What the guest did in between is not known, and nobody may be blamed for it.
        self.assertEqual(len(report["incidents"]), 2, report["incidents"])

    def test_a_collector_that_was_killed_and_comes_back(self):
        process = self.record("first.vcs")
        self.stall()
        time.sleep(1.5)
        process.kill()
        process.wait()
        first = self.report("first.vcs")
        self.assertFalse(first["complete"])
        self.assert_explained(first)
        process = self.record("second.vcs")
        self.stall()
        self.stop(process)
        second = self.report("second.vcs")
        self.assertTrue(second["complete"])
        self.assert_explained(second)

    def test_a_vm_that_disappears(self):
        process = self.record()
        self.stall()
        time.sleep(1)
        os.kill(self.guest.pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=15)
        self.assertIn(str(self.guest.pid), said)
        self.assert_explained(self.report())

    def test_a_channel_that_is_not_there(self):
        self.relay.path = "/nonexistent/socket"
        process = self.record()
        said = self.stop(process)
        self.assertEqual(sum("/nonexistent/socket" in line for line in said.splitlines()), 1, said)
        self.assertEqual(self.report()["incidents"], [])


if __name__ == "__main__":
    if os.geteuid():
        print("skipped: BPF on this machine's kernel needs root")
        sys.exit(77)
    bed.machine.unittest_main(Trouble)
