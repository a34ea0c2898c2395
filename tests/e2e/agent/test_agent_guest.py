#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The agent in a real guest, on its virtio-serial port: found by name, heard, left and met again."""
import csv
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../beds")
import bed  # noqa: E402

AGENT_LOG = "/tmp/agent.log"


class Agent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.builder = bed.Builder()
        cls.guest = bed.boot_a(cls.builder, cpus=2)

    @classmethod
    def tearDownClass(cls):
        cls.guest.close()

    def probe(self, seconds):
        probe = f"{self.builder.build}/tests/e2e/agent/agent_probe"
        done = subprocess.run([probe, self.guest.agent_socket, str(seconds)], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr + self.guest.run(f"cat {AGENT_LOG}"))
        return {name: int(value) for name, value in map(str.split, done.stdout.splitlines())}

    def cpu_ticks(self):
        stat = self.guest.run("cat /proc/$(pidof vcpuscope-agent)/stat").rsplit(")", 1)[1].split()
        return int(stat[11]) + int(stat[12])

    def test_1_waits_quietly_then_serves_a_host_twice(self):
        self.guest.run(f"vcpuscope-agent >{AGENT_LOG} 2>&1 &")
        time.sleep(2.5)  # it loads its programs
        before = self.cpu_ticks()
        time.sleep(3)
        ticks = self.cpu_ticks() - before
        # Emulated on a busy machine, so generous; turning in a circle takes 300.
        self.assertLess(ticks, 60, "a port without a host must not be polled in a circle")

        seen = self.probe(4)
        self.assertEqual(seen["cpus"], 2)
        self.assertGreater(seen["clock_hz"], 100_000_000)
        self.assertEqual(seen["dmesg_known"], 1)
        self.assertEqual(seen["new_session"], 1)
        self.assertGreater(seen["first_received"], 100)
        self.assertGreater(seen["received"], seen["first_received"])
        self.assertEqual(seen["balanced"], 1)
        self.assertEqual(seen["late"], 0)
        self.assertEqual(seen["heartbeat_violations"], 0)
        self.assertEqual(seen["dropped_user"], 0)
        self.assertGreater(seen["heartbeats"], 40)
        self.assertGreater(seen["echoes"], 40)
        self.assertLess(seen["rss_kib"], 24 << 10)
        print("agent in a guest:", seen)

    def recorded(self, *asks):
        """What record said, what report said, and how the report accounts for the guest."""
        with tempfile.TemporaryDirectory() as folder:
            run = f"{folder}/run.vcs"
            program = f"{self.builder.build}/host-collector/vcpuscope"
            record = subprocess.run(
                [program, "record", "--pid", str(self.guest.pid), "--channel",
                 self.guest.agent_socket, "--for", "6s", "-o", run, *asks],
                capture_output=True, text=True, timeout=60)
            self.assertEqual(record.returncode, 0, record.stderr)
            report = subprocess.run([program, "report", run, "--format", "json"],
                                    capture_output=True, text=True, timeout=60)
            self.assertIn(report.returncode, (0, 5), report.stderr)
        loss = json.loads(report.stdout)["loss"]
        return record.stderr, report.stderr, [of for name, of in loss.items() if name != "host"][0]

    def test_2_a_host_is_told_what_it_asks_for_within_the_owners_limits(self):
        said, _, guest = self.recorded("--sample-hz", "1000", "--guest-events", "wakeups,vectors",
                                       "--guest-task-filter", "init,ksoftirqd*")
        told = "the guest sends switches,wakeups,vectors of init,ksoftirqd*"
        self.assertIn(told, said)
        self.assertIn("sample-hz: at most 100 here (--max-sample-hz)", said)
        self.assertTrue(guest["config"].startswith(told), guest["config"])
        self.assertIn("100 stacks per second", said)
        # Emulated, that may be more than a fifth of a CPU: then the agent's budget ended it.
        self.assertRegex(guest["config"], "100 stacks per second|CPU was used up")
        self.assertGreater(guest["delivered"], 0)
        print("asked for less:", guest["config"], "-", guest["delivered"], "events")

    def test_3_short_handlers_are_counted_if_asked_for(self):
        said, report, guest = self.recorded("--guest-level", "summary",
                                            "--guest-handlers-over", "5ms")
        told = "the guest sends all events, handlers of at least 5000 us"
        self.assertIn(told, said)
        self.assertIn("was captured at summary level", report)
        self.assertEqual(guest["config"], told)
        softirqs = guest["untold"]["softirqs"]
        self.assertGreater(softirqs["count"], 0)
        self.assertLess(softirqs["max_ns"], 5_000_000)
        self.assertGreaterEqual(softirqs["total_ns"], softirqs["max_ns"])
        self.assertNotIn("switches", guest["untold"])
        for part in ("dropped_kernel", "dropped_user", "lost_channel", "overdelivered"):
            self.assertEqual(guest[part], 0)
        print("counted:", guest["untold"], "-", guest["delivered"], "events")

    def test_4_ends_cleanly_and_says_what_it_did(self):
        self.guest.run("kill $(pidof vcpuscope-agent); sleep 1; ! pidof vcpuscope-agent")
        self.assertRegex(self.guest.run(f"cat {AGENT_LOG}"), r"\d+ events in .* lost 0 in the kernel")

    def test_5_every_start_is_quiet(self):
        """Probes are attached while the host records already: no interrupt stays open, none is a stall."""
        program = f"{self.builder.build}/host-collector/vcpuscope"
        with tempfile.TemporaryDirectory() as folder:
            run = f"{folder}/run.vcs"
            record = subprocess.Popen([program, "record", "--pid", str(self.guest.pid), "--channel",
                                       self.guest.agent_socket, "-o", run], stderr=subprocess.PIPE, text=True)
            for _ in range(2):
                self.guest.run(f"vcpuscope-agent >{AGENT_LOG} 2>&1 & sleep 3; kill $!; wait $!; true")
            record.send_signal(signal.SIGINT)
            said = record.communicate(timeout=60)[1]
            self.assertEqual(record.returncode, 0, said)
            report = subprocess.run([program, "report", run, "--than", "20ms", "--format", "json"],
                                    capture_output=True, text=True, timeout=60)
            subprocess.run([program, "export", run, "--to", "csv", "-o", f"{folder}/run.csv"], check=True,
                           timeout=60)
            with open(f"{folder}/run.csv", encoding="utf-8", newline="") as f:
                rows = list(csv.DictReader(f))
        stalls = [i for i in json.loads(report.stdout)["incidents"] if i["kind"] in ("hardirq", "softirq")]
        self.assertEqual(stalls, [])
        handlers = {}
        for row in rows:
            if row["kind"] == "interrupt":
                handlers.setdefault((row["cpu"], row["interrupt"]), []).append(
                    (int(row["begin_ns"]), int(row["end_ns"])))
        self.assertEqual(len({cpu for cpu, _ in handlers}), 2, said)
        nested = [(where, a, b) for where, all_of in handlers.items()
                  for a, b in itertools.pairwise(sorted(all_of)) if b[0] < a[1]]
        self.assertEqual(nested, [])
        # Of one whose exit was never captured only the begin is known.
        self.assertEqual([where for where, all_of in handlers.items() for a in all_of if a[0] == a[1]], [])
        print(f"two starts: {sum(map(len, handlers.values()))} handlers, none open")

    def test_6_a_missing_port_is_one_line_and_exit_code_3(self):
        status, out = self.guest.run_bytes("vcpuscope-agent --connect port:no.such.port 2>&1")
        self.assertEqual(status, 3)
        last = out.decode().strip().splitlines()[-1]
        self.assertIn("no virtio-serial port 'no.such.port'", last)


if __name__ == "__main__":
    unittest.main()
