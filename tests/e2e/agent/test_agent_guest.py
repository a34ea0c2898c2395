#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the agent in a real guest, on its virtio-serial port: it finds the port by name, connects, and
connects again after the host closed the channel.
"""
import csv
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../beds")
import bed  # noqa: E402

AGENT_LOG = "/tmp/agent.log"
ATTACH_MAX_S = 30
FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"


class Agent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.builder = bed.Builder()
        # One thread for both CPUs: the tests attach and detach tracepoints often (see EmulatorFault).
        cls.guest = bed.boot_a(cls.builder, cpus=2, modules=("virtio_blk",), accelerator="tcg,thread=single", qemu_args=(
            "-drive", "if=none,id=disk,driver=null-co,read-zeroes=on,size=64M", "-device", "virtio-blk-pci,drive=disk"))

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

    def agent_restart(self, options):
        """Emulated, the agent may use more than its budget: it has none here."""
        self.guest.run("kill $(pidof vcpuscope-agent) 2>/dev/null; sleep 1")
        self.guest.run(f"vcpuscope-agent --max-cpu 100% {options} >{AGENT_LOG} 2>&1 &")
        time.sleep(2.5)

    def record(self, run, events, load):
        """What record said: of these events, while the guest runs `load`."""
        program = f"{self.builder.build}/host-collector/vcpuscope"
        record = subprocess.Popen(
            [program, "record", "--pid", str(self.guest.pid), "--channel", self.guest.agent_socket, "-o", run,
             *(word for e in events for word in ("-e", e))], stderr=subprocess.PIPE, text=True)
        said = []
        reader = threading.Thread(target=lambda: said.extend(record.stderr))
        reader.start()
        # The guest answers when it has attached the events: an emulated one may need seconds.
        deadline = time.monotonic() + ATTACH_MAX_S
        while not any("the guest sends" in line for line in said) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.guest.run(load)
        time.sleep(0.5)
        record.send_signal(signal.SIGINT)
        record.wait(timeout=60)
        reader.join(timeout=60)
        said = "".join(said)
        self.assertEqual(record.returncode, 0, said)
        return said

    def reported(self, *arguments):
        program = f"{self.builder.build}/host-collector/vcpuscope"
        done = subprocess.run([program, "report", *arguments], capture_output=True, text=True, timeout=60)
        self.assertIn(done.returncode, (0, 5), done.stderr)
        return done.stdout

    def test_3a_events_of_the_guest_within_the_owners_policy(self):
        """Pairs by sector and by hashed pointer; what the policy refuses is said, and the rest is recorded."""
        allowed = ("guest:block:block_rq_issue", "guest:block:block_rq_complete",
                   "guest:timer:hrtimer_start", "guest:timer:hrtimer_expire_entry")
        refused = {"guest:kmem:kmalloc": "the guest's owner does not allow it",
                   "guest:kprobe:vfs_read": "the guest's owner allows no functions",
                   'guest:sched:sched_switch/prev_comm == "x"/': "a text, which the owner does not allow",
                   "guest:timer:hrtimer_cancel/hrtimer > 5/": "is a pointer",
                   "guest:timer:hrtimer_cancell": "did you mean timer:hrtimer_cancel?"}
        self.agent_restart("")
        with tempfile.TemporaryDirectory() as folder:
            run = f"{folder}/run.vcs"
            said = self.record(run, (*allowed, *refused),
                               "dd if=/dev/vda of=/dev/null bs=4k count=4000 2>/dev/null; "
                               "for i in 1 2 3 4 5; do usleep 5000; done")
            for why in refused.values():
                self.assertIn(why[:30], said)
            report = json.loads(self.reported(run, "--format", "json"))
            guest = [of for name, of in report["loss"].items() if name != "host"][0]
            self.assertIn("kmem:kmalloc is missing: the guest's owner does not allow it", guest["config"])
            self.assertEqual(guest["unknown_events"], 0)
            blocks = self.pairs(run, *allowed[:2], "sector")
            timers = self.pairs(run, *allowed[2:], "hrtimer")
            lines = self.reported(run, "events", "-e", allowed[2], "--format", "json", "--top", "0").splitlines()
        self.assertGreater(blocks["calls"], 20)
        self.assertLess(blocks["ambiguous"], 1)
        self.assertGreater(timers["calls"], 100)
        for row in (blocks, timers):
            self.assertGreater(row["max_ns"], 0)
            self.assertLess(row["max_ns"], 5e9)
        hits = [json.loads(line) for line in lines]
        self.assertGreater(len(hits), 100)
        pointers = {int(str(hit["fields"]["hrtimer"]), 0) for hit in hits}
        self.assertGreater(len(pointers), 1)
        self.assertLess(max(pointers), 1 << 48, "no pointer leaves the guest")
        print(f"guest's blocks: {blocks}\nguest's timers: {timers}")

    def pairs(self, run, first, second, key):
        table = self.reported(run, "pairs", "-e", first, "-e", second, "--key", key, "--format", "json")
        return json.loads(table)["rows"][0]

    if FULL:
        def test_3ab_watch_prints_them_as_they_happen(self):
            program = f"{self.builder.build}/host-collector/vcpuscope"
            watch = subprocess.Popen(
                [program, "watch", "--pid", str(self.guest.pid), "--channel", self.guest.agent_socket, "--for", "6s", "--format",
                 "json", "-e", "guest:block:block_rq_complete"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(2.5)
            self.guest.run("echo 3 >/proc/sys/vm/drop_caches; dd if=/dev/vda of=/dev/null bs=4k count=500 2>/dev/null")
            out, said = watch.communicate(timeout=60)
            self.assertEqual(watch.returncode, 0, said)
            hits = [hit for hit in map(json.loads, out.splitlines()) if hit.get("event") == "guest:block:block_rq_complete"]
            self.assertGreater(len(hits), 5, said)
            self.assertEqual(sum(hit["fields"]["nr_sector"] for hit in hits) % 8, 0)
            self.assertEqual([hit["t_ns"] for hit in hits], sorted(hit["t_ns"] for hit in hits))

    def test_3b_a_host_that_asks_for_everything_gets_what_the_policy_grants(self):
        self.guest.run("printf 'allow = timer:* sched:*\\nmax_events = 3\\nrate = 50\\n' >/tmp/agent.conf")
        self.agent_restart("--policy /tmp/agent.conf")
        with tempfile.TemporaryDirectory() as folder:
            run = f"{folder}/run.vcs"
            said = self.record(run, ("guest:sched:sched_switch", "guest:sched:sched_waking", "guest:timer:hrtimer_start",
                                     "guest:timer:hrtimer_cancel", "guest:block:block_rq_issue"),
                               "for i in $(seq 400); do usleep 1000; done")
            report = json.loads(self.reported(run, "--format", "json"))
            rows = json.loads(self.reported(run, "rate", "-e", "guest:timer:hrtimer_start", "--by", "cpu", "--every",
                                            "1s", "--format", "json"))
        guest = [of for name, of in report["loss"].items() if name != "host"][0]["config"]
        self.assertIn("timer:hrtimer_cancel is missing: the guest's owner allows 3 events", guest)
        self.assertIn("block:block_rq_issue is missing: the guest's owner does not allow it", guest)
        self.assertRegex(guest, "was detached: too many hits: the guest's owner allows 50 per second and CPU")
        self.assertIn("detached: too many hits", said)
        for row in rows["rows"]:
            self.assertLessEqual(row["max"], 100, "hits of a CPU in a second")
        print(f"everything at once: {guest}\n{[(row['key'], row['count'], row['max']) for row in rows['rows']]}")

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
    bed.machine.unittest_main(Agent)
