#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the records of a daemon. There is one line for each incident, however many vCPUs a VM has and however
often the line is written, also if the daemon ends meanwhile. Above the limit, a line `sum` counts the others.
A recording is delivered before the line that names it. Each VM has figures. All are delivered by a shipper
that runs as the configured user.
"""
import collections
import hashlib
import json
import os
import signal
import subprocess
import time
import unittest

from daemon_rig import FAKE_VMM, PROGRAM, Daemon, FakeVm, skip_unless_possible, until

MANY = 16  # vCPUs of the first VM
LABELS = {"zone": "fra1", "ring": "canary"}


def newest(lines):
    """{id: the record with the highest seq}, as an engine keeps them. No two lines have the same id and seq."""
    best, seen = {}, set()
    for line in lines:
        key = line["incident_id"]
        assert (key, line["seq"]) not in seen, line
        seen.add((key, line["seq"]))
        if key not in best or line["seq"] > best[key]["seq"]:
            best[key] = line
    return best


class Records(unittest.TestCase):
    def setUp(self):
        self.vms = [FakeVm("many", MANY), FakeVm("one")]
        for vm in self.vms:
            self.addCleanup(vm.end)

    def start(self, settings):
        """settings: lines, with the daemon's folder as {}."""
        d = Daemon()
        self.addCleanup(d.clean)
        d.settings = ("labels = " + ", ".join(f"{k}={v}" for k, v in LABELS.items()) + "\n" +
                      settings.format(d.folder))
        d.configure("".join(f"[vm vm{i}]\npid = {vm.pid}\nstall = 200ms\nflight_time = 2s\n"
                            for i, vm in enumerate(self.vms)))
        d.start()
        until("all run", lambda: all(vm["state"] == "running" for vm in d.ask("list")["vms"]))
        time.sleep(1)
        return d

    def stop(self, seconds):
        for vm in self.vms:
            os.kill(vm.pid, signal.SIGSTOP)
        time.sleep(seconds)

    def go_on(self):
        for vm in self.vms:
            os.kill(vm.pid, signal.SIGCONT)

    def lines(self, d, kind="incidents"):
        """Of all segments, in the order of their numbers."""
        found = {}
        for path in (d.recordings / "outbox").rglob(f"{kind}-*"):
            try:
                found[path.name.split(".")[0].split("-")[3]] = path.read_text()
            except FileNotFoundError:  # it got its name meanwhile
                return self.lines(d, kind)
        # The last line may be incomplete.
        return [json.loads(line) for _, text in sorted(found.items()) for line in text.splitlines(True)
                if line.endswith("\n")]

    def paused(self, d):
        """The newest records of the stops, by (VM, vCPU)."""
        return {(one["vm_name"], one["vcpu"]): one for one in newest(self.lines(d)).values()
                if one["verdict"] == "vm_paused"}

    def test_lasting(self):
        """Lines of an incident that lasts are replaced by the line of its end, for each vCPU."""
        d = self.start("")
        self.stop(2.5)
        until("an incident that lasts has a record", lambda: any(one["ongoing"] for one in self.lines(d)))
        self.go_on()
        ended = until("all have ended", lambda: (
            lambda of: of if len(of) == MANY + 1 and not any(one["ongoing"] for one in of.values()) else None)(
            self.paused(d)))
        for one in ended.values():
            self.assertGreater(one["duration_ns"], 2e9)
            # There is no monitor, as with libvirt's domains: it is in the program, which root must own.
            self.assertEqual(one["vm_vmm_version"], None if FAKE_VMM.stat().st_uid else "QEMU 7.2.99 (fake 1:2)")
            self.assertEqual(sum(one["breakdown_ns"].values()), one["duration_ns"])
            self.assertEqual((one["labels"], one["guest_text"], one["guest_task"]), (LABELS, None, None))
            self.assertGreater(one["end_realtime_ns"], one["begin_realtime_ns"])
        listed = subprocess.run([PROGRAM, "incidents", "--vm", "vm0", "--verdict", "vm_paused", "--format", "json",
                                 "--since", "1h", d.recordings / "outbox"], capture_output=True, text=True, check=True)
        self.assertEqual(len(listed.stdout.splitlines()), MANY, listed)

    def test_ends_meanwhile(self):
        """A daemon that ends leaves no record that lasts for ever."""
        d = self.start("")
        self.stop(1.5)
        until("an incident that lasts has a record", lambda: any(one["ongoing"] for one in self.lines(d)))
        d.stop()
        self.go_on()
        left = newest(self.lines(d))
        self.assertGreaterEqual(len(left), 2)
        self.assertFalse([one for one in left.values() if one["ongoing"]])
        self.assertFalse(list((d.recordings / "outbox").glob("*.part")))

    def test_rate(self):
        """Above the rate, each incident is in the sum, once."""
        d = self.start("outbox_rate = 4")
        self.stop(0.5)  # shorter than what is reported while it lasts
        self.go_on()

        def stalls():
            return sum(vm["flight"]["stalls"] for vm in d.ask("list")["vms"])

        def counted():
            of = newest(self.lines(d)).values()
            return (sum(one["trigger"] == "stall" for one in of) +
                    sum(n for one in of for verdict, n in one["verdicts"].items() if verdict != "trigger"))

        until("all stalls are known", lambda: stalls() >= MANY + 1)
        until("all are counted", lambda: counted() >= stalls())
        time.sleep(2)  # the sum is written at most once more
        self.assertEqual(counted(), stalls())
        sums = [one for one in newest(self.lines(d)).values() if one["record"] == "sum"]
        self.assertEqual(len(sums), 1)
        self.assertEqual(sum(sums[0]["verdicts"].values()), sums[0]["count"])
        self.assertGreater(sums[0]["count"], MANY - 4)
        self.assertGreaterEqual(sums[0]["end_realtime_ns"], sums[0]["begin_realtime_ns"])

    def test_shipped(self):
        """Recordings come before the lines that name them, figures cover the time, and nothing is left behind."""
        d = self.start("ship = {0}/deliver\nship_user = nobody\nship_evidence = yes\nfigures_every = 10s")
        target, command = d.folder / "target", d.folder / "deliver"
        target.mkdir()
        target.chmod(0o777)
        d.folder.chmod(0o755)
        command.write_text(f"#!/bin/sh\nset -e\nid -un > {target}/user\n"
                           f"n=$(ls {target} | wc -l)\ncp \"$1\" {target}/$(printf %06d $n)-${{1##*/}}\n")
        command.chmod(0o755)
        self.stop(0.6)
        self.go_on()
        until("records with evidence", lambda: sum(
            one["evidence_key"] is not None for one in newest(self.lines(d)).values()) >= 2)
        time.sleep(11)  # figures
        d.stop()  # completes the segments
        done = subprocess.run([PROGRAM, "ship", "--once", "--config", d.folder / "conf"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual((target / "user").read_text(), "nobody\n")
        seen, evidence = collections.Counter(), {}
        for path in sorted(target.glob("0*")):
            kind = path.name.split("-")[1]
            seen[kind] += 1
            if kind == "evidence":
                _, _, host, incident, _ = path.name.split("-")
                evidence[f"{host}/{incident}.vcs"] = path
            if kind == "incidents":
                for one in map(json.loads, path.read_text().splitlines()):
                    if one["evidence_key"]:
                        data = evidence[one["evidence_key"]].read_bytes()  # it came before
                        self.assertEqual((len(data), hashlib.sha256(data).hexdigest()),
                                         (one["evidence_bytes"], one["evidence_sha256"]))
        self.assertTrue(seen["incidents"] and seen["figures"] and len(evidence) >= 2, seen)
        figures = [json.loads(line) for path in target.glob("*-figures-*") for line in path.read_text().splitlines()]
        self.assertEqual({one["vm_name"] for one in figures}, {"vm0", "vm1"})
        for one in figures:
            known = sum(ns for state, ns in one["states_ns"].items() if state != "unknown")
            self.assertEqual(known, one["observed_ns"])
            self.assertEqual(len(one.get("run_delay_wakeup_buckets", [])), len(one.get("run_delay_wakeup_counts", [])))
        self.assertGreater(sum(sum(one.get("run_delay_wakeup_counts", [])) for one in figures), 100)


if __name__ == "__main__":
    skip_unless_possible()
    unittest.main(verbosity=2)
