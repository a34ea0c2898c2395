#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the checker: it accepts a correct report, and finds each single change that makes the report wrong."""
import copy
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_quickstart import check, check_run_delay, check_steal, interference, is_excused  # noqa: E402

STATES = ("guest", "kvm", "vmm", "runnable", "halted", "blocked", "throttled", "stopped", "unknown")


def incident(verdict, state, begin, share, rest, side, comm, task):
    breakdown = dict.fromkeys(STATES, 0)
    breakdown[state] = share
    breakdown["kvm"] += rest
    return {"verdict": verdict, "confidence": "decided", "begin_ns": begin,
            "end_ns": begin + share + rest, "duration_ns": share + rest, "because": "",
            "task": {"pid": 7, "comm": task}, "breakdown_ns": breakdown,
            "culprits": [{"side": side, "pid": 1, "comm": comm, "role": "", "share_ns": share}]}


def stall(action, verdict, state, begin, duration, side, comm):
    return {"action": action, "verdict": verdict, "state": state, "side": side, "comm": comm,
            "begin_raw_ns": begin, "end_raw_ns": begin + duration, "duration_ns": duration,
            "on_host_clock": side == "host", "run_delay_ns": 0}


MS = 1_000_000
TRUTH = {"interference": [], "stalls": [
    stall("sigstop", "vm_paused", "stopped", 1000 * MS, 400 * MS, "host", "vm-stopper"),
    stall("hog", "vcpu_not_scheduled", "runnable", 3000 * MS, 500 * MS, "host", "cpu-hog"),
    stall("stall", "guest_spin", "guest", 0, 600 * MS, "guest", "guest-spinner")]}
LOSS = {"emitted": 9, "delivered": 9, "dropped_kernel": 0, "dropped_user": 0, "lost_frames": 0,
        "damaged_bytes": 0, "late": 0}
REPORT = {
    "schema": "vcpuscope.report/1", "complete": True, "loss": {"host": LOSS, "guest": dict(LOSS)},
    "clock": [{"vm": "guest", "method": "echo", "error_ns": 100_000, "causality_violations": 0}],
    "incidents": [
        incident("vm_paused", "stopped", 1000 * MS, 401 * MS, 2 * MS, "host", "vm-stopper", "compute"),
        incident("vcpu_not_scheduled", "runnable", 2999 * MS, 502 * MS, 0, "host", "cpu-hog", "compute"),
        incident("guest_spin", "guest", 5000 * MS, 603 * MS, 1, "guest", "guest-spinner",
                 "guest-spinner")]}


def first(report):
    return report["incidents"][0]


def lengthen(report):
    first(report)["end_ns"] += 30 * MS
    first(report)["duration_ns"] += 30 * MS
    first(report)["breakdown_ns"]["stopped"] += 30 * MS


WRONGS = {
    "another schema": lambda r: r.update(schema="vcpuscope.report/2"),
    "a recording that was cut": lambda r: r.update(complete=False),
    "no clock": lambda r: r["clock"][0].update(method="none"),
    "a causality violation": lambda r: r["clock"][0].update(causality_violations=1),
    "a guest loss": lambda r: r["loss"]["guest"].update(dropped_kernel=1),
    "a late event": lambda r: r["loss"]["host"].update(late=1),
    "a missing incident": lambda r: r["incidents"].pop(),
    "one incident more": lambda r: r["incidents"].append(r["incidents"][2]),
    "the wrong verdict": lambda r: first(r).update(verdict="guest_spin"),
    "no verdict": lambda r: first(r).pop("verdict"),
    "no confidence": lambda r: first(r).update(confidence="undetermined"),
    "a breakdown that does not sum": lambda r: first(r)["breakdown_ns"].update(halted=1),
    "a duration that is not end minus begin": lambda r: first(r).update(end_ns=0),
    "a share that is too long": lengthen,
    "another culprit": lambda r: first(r)["culprits"][0].update(comm="bash"),
    "a culprit on the wrong side": lambda r: first(r)["culprits"][0].update(side="guest"),
    "another guest task": lambda r: r["incidents"][2]["task"].update(comm="compute"),
    "another time": lambda r: first(r).update(begin_ns=1200 * MS, end_ns=1603 * MS),
}


class Check(unittest.TestCase):
    def test_accepts_what_is_right(self):
        self.assertEqual(check(REPORT, TRUTH), [])

    def test_steal_is_what_was_measured(self):
        row = {"accounted_ns": 740 * MS, "measured_ns": 692 * MS, "unit_ns": 10 * MS, "readings": 13}
        vcpus = [{"waits": 600}, {"waits": 500}]
        truth = {"emulated": True, "interference": []}
        self.assertEqual(check_steal([row], vcpus, truth), [])
        self.assertTrue(check_steal([row], vcpus, {**truth, "emulated": False}))
        self.assertTrue(check_steal([row], [{"waits": 10}], truth))
        self.assertTrue(check_steal([], vcpus, truth))
        self.assertTrue(check_steal([{**row, "accounted_ns": None}], vcpus, truth))
        self.assertTrue(check_steal([{**row, "accounted_ns": 200 * MS}], vcpus, truth))
        self.assertTrue(check_steal([{**row, "readings": 1}], vcpus, truth))

    def test_run_delay_is_the_schedulers_own(self):
        vcpus = [{"run_delay_ns": 700 * MS, "waits": 100}]
        tasks = [{"comm": "compute", "run_delay_ns": 600 * MS}, {"comm": "sh", "run_delay_ns": 5 * MS}]
        hog = {"duration_ns": 500 * MS, "guest_ran_ns": {"compute": 610 * MS, "ticker": 10 * MS}}
        good = {"run_delay_ns": [695 * MS, 710 * MS], "stalls": [{"duration_ns": 1}, hog]}
        self.assertEqual(check_run_delay(vcpus, tasks, good), [])
        self.assertTrue(check_run_delay(vcpus, tasks, {**good, "run_delay_ns": [720 * MS, 730 * MS]}))
        self.assertTrue(check_run_delay(vcpus, tasks, {**good, "run_delay_ns": [600 * MS, 650 * MS]}))
        self.assertTrue(check_run_delay(vcpus, [*tasks, {"comm": "x", "run_delay_ns": 99 * MS}], good))
        self.assertTrue(check_run_delay(vcpus, tasks[1:], good))
        # The guest had chosen the ticker, and its sched_switch came after the hog.
        chosen = {**hog, "guest_ran_ns": {"ticker": 505 * MS, "compute": 174 * MS}}
        self.assertTrue(check_run_delay(vcpus, tasks, {**good, "stalls": [{"duration_ns": 1}, chosen]}))
        chosen["waiter"] = "ticker"
        self.assertEqual(check_run_delay(vcpus, tasks, {**good, "stalls": [{"duration_ns": 1}, chosen]}), [])
        hog["guest_ran_ns"] = {"compute": 90 * MS, "ticker": 501 * MS}
        self.assertTrue(check_run_delay(vcpus, tasks, good))
        tasks[0]["comm"] = "ticker"
        self.assertEqual(check_run_delay(vcpus, tasks, good), [])
        tasks[0]["run_delay_ns"] = 400 * MS
        self.assertTrue(check_run_delay(vcpus, tasks, good))
        tasks[0]["run_delay_ns"] = 600 * MS
        busy = {**good, "run_delay_ns": [730 * MS, 740 * MS], "emulated": True, "interference": [{}]}
        self.assertEqual(check_run_delay(vcpus, tasks, busy), [])
        self.assertTrue(check_run_delay(vcpus, tasks, {**busy, "interference": []}))

    def test_an_incident_inside_a_gap_of_the_machine_is_no_mistake(self):
        report, truth = copy.deepcopy(REPORT), copy.deepcopy(TRUTH)
        report["incidents"].insert(2, incident("guest_spin", "guest", 4000 * MS, 120 * MS, 0, "guest",
                                               "compute", "compute"))
        gap = {"cpu": 1, "begin_raw_ns": 3990 * MS, "duration_ns": 60 * MS}
        truth["interference"] = [gap]
        self.assertTrue(check(report, truth))
        gap["duration_ns"] = 90 * MS
        self.assertEqual(check(report, truth), [])
        self.assertEqual(len(interference(report, truth)), 1)

    def excused(self, report, *gaps):
        gaps = [{"begin_raw_ns": begin * MS, "duration_ns": duration * MS} for begin, duration in gaps]
        wrong = check(report, {**TRUTH, "interference": gaps})
        self.assertTrue(wrong)
        return all(is_excused(difference, gaps) for difference in wrong)

    def test_only_a_gap_where_it_differs_and_long_enough_excuses(self):
        report = copy.deepcopy(REPORT)
        lengthen(report)  # 1000..1431 ms, 31 - 20 ms too long
        self.assertFalse(self.excused(report))
        self.assertFalse(self.excused(report, (3100, 90)))
        self.assertTrue(self.excused(report, (1100, 20)))
        first(report)["breakdown_ns"]["stopped"] += 60 * MS
        first(report)["end_ns"] += 60 * MS
        first(report)["duration_ns"] += 60 * MS
        self.assertFalse(self.excused(report, (1100, 20)))
        self.assertTrue(self.excused(report, (1100, 20), (1200, 50)))

    def test_a_wrong_verdict_needs_a_machine_that_was_away_for_long(self):
        report = copy.deepcopy(REPORT)
        first(report).update(verdict="guest_spin")
        self.assertFalse(self.excused(report, (1100, 30)))
        self.assertTrue(self.excused(report, (1100, 100)))

    def test_an_unprovoked_incident_is_excused_by_gaps_in_itself_alone(self):
        report = copy.deepcopy(REPORT)
        report["incidents"].insert(2, incident("guest_spin", "guest", 4000 * MS, 200 * MS, 0, "guest",
                                               "compute", "compute"))
        self.assertFalse(self.excused(report, (1100, 90)))
        self.assertFalse(self.excused(report, (4050, 20)))
        self.assertTrue(self.excused(report, (4050, 60)))

    def test_what_no_gap_excuses(self):
        for name in ("a missing incident", "a guest loss", "no clock", "a causality violation",
                     "a recording that was cut", "a breakdown that does not sum"):
            with self.subTest(name):
                report = copy.deepcopy(REPORT)
                WRONGS[name](report)
                self.assertFalse(self.excused(report, (990, 190), (2990, 190), (5000, 190)))

    def test_a_guest_that_spins_has_less_of_what_its_vcpu_waited(self):
        report, truth = copy.deepcopy(REPORT), copy.deepcopy(TRUTH)
        report["incidents"][2] = incident("guest_spin", "guest", 5000 * MS, 540 * MS, 60 * MS, "guest",
                                          "guest-spinner", "guest-spinner")
        self.assertTrue(check(report, truth))
        truth["stalls"][2]["run_delay_ns"] = 55 * MS
        self.assertEqual(check(report, truth), [])

    def test_finds_what_is_wrong(self):
        for name, spoil in WRONGS.items():
            with self.subTest(name):
                report = copy.deepcopy(REPORT)
                spoil(report)
                self.assertTrue(check(report, TRUTH))


class Views(unittest.TestCase):
    """What the quick start leaves to be looked at, of a kept recording."""

    def test_page_graph_and_trace_are_made_and_named(self):
        top = pathlib.Path(__file__).resolve().parents[2]
        build = pathlib.Path(os.environ.get("VCPUSCOPE_BUILD", top / "build"))
        with tempfile.TemporaryDirectory() as out:
            shutil.copy(top / "tests/data/quickstart.vcs", f"{out}/run.vcs")
            done = subprocess.run([top / "deploy/quickstart-views", build / "host-collector/vcpuscope", out],
                                  capture_output=True, text=True, check=True)
            for name, begin in (("report.html", b"<!DOCTYPE html>"), ("wall.svg", b"<?xml"),
                                ("run.pftrace", b"\n")):
                content = pathlib.Path(out, name).read_bytes()
                self.assertTrue(content.startswith(begin) and len(content) > 10000, name)
                self.assertIn(f"{out}/{name}", done.stdout)

    def test_a_folder_without_a_recording_is_refused(self):
        with tempfile.TemporaryDirectory() as out:
            top = pathlib.Path(__file__).resolve().parents[2]
            done = subprocess.run([top / "deploy/quickstart-views", "true", out], capture_output=True)
            self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
