#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The tools of the benchmarks: figures, the table of `run`, and that `run` leaves no process behind.
usage: test_bench.py [--build DIR] [unittest arguments]"""
import argparse
import importlib.machinery
import importlib.util
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import figures  # noqa: E402
import table  # noqa: E402

BUILD = HERE.parents[1] / "build"
PATIENCE_S = 60


def load(name):
    """A program without a suffix, as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def running(mark):
    """The processes `sleep MARK`."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_text().split("\0")[:2] == ["sleep", mark]:
                found.append(int(folder.name))
        except OSError:
            pass  # it ended
    return found


def until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {PATIENCE_S} s still not: {what}")
        time.sleep(0.02)


class Figures(unittest.TestCase):
    def test_a_line_is_read_as_it_was_printed(self):
        figure = figures.of_rounds("switch, added", [5, 1, 4, 2, 3], "ns", "<= 3", "trace-cmd 7 ns")
        self.assertEqual(figure, ("switch, added", 3, "ns", 2, 4, "<= 3", "trace-cmd 7 ns"))
        self.assertEqual(figures.parse(figure.line() + "\n"), figure)

    def test_goals(self):
        for goal, met in (("<= 3", True), ("<= 2.9", False), (">= 3", True), (">= 3.1", False), ("-", None)):
            self.assertIs(figures.of_rounds("x", 3.0, "ns", goal).met(), met, goal)

    def test_other_text_is_no_figure_and_a_broken_line_is_an_error(self):
        self.assertIsNone(figures.parse("figures are fine\n"))
        for line in ("figure\tx\t1\tns\n", "figure\tx\tmany\tns\t1\t1\t-\t-\n",
                     "figure\tx\t1\tns\t1\t1\t< 2 or so\t-\n"):
            with self.assertRaises(ValueError, msg=line):
                figures.parse(line)

    def test_a_program_in_c_prints_the_same_form(self):
        done = subprocess.run([BUILD / "tests/bench/bench_clock"], stdout=subprocess.PIPE, text=True, timeout=300)
        lines = [line for line in done.stdout.splitlines() if line.startswith("figure")]
        found = [figures.parse(line) for line in lines]
        self.assertGreater(len(found), 5)
        for line, figure in zip(lines, found):
            self.assertEqual(figure.line(), line)
            self.assertLessEqual(figure.low, figure.value)
            self.assertLessEqual(figure.value, figure.high)
        self.assertEqual(done.returncode, int(any(figure.met() is False for figure in found)))


class Table(unittest.TestCase):
    def rows(self, value, why=None):
        rows = table.Rows()
        rows.add("the bench of x", [figures.of_rounds("x", [value - 1, value, value + 1], "ns", "<= 10", "y 12 ns"),
                                    figures.of_rounds("a|b", 0.123, "s")], why)
        return rows

    def test_status(self):
        self.assertEqual(self.rows(9).status(), 0)
        self.assertEqual(self.rows(11).status(), 1)
        self.assertEqual(self.rows(9, "no root").status(), 77)
        self.assertEqual(self.rows(9, "failed with exit status 3").status(), 1)

    def test_two_runs(self):
        text = table.markdown([self.rows(9), self.rows(11, "no root")],
                              [("moon", "<= 5 ns", "nobody was there")], "A machine.")
        lines = text.splitlines()
        self.assertIn("| x | 9 (8 to 10) ns | 11 (10 to 12) ns | at most 10 | y 12 ns | **met in one run, missed in "
                      "the other** |", lines)
        self.assertIn("| a\\|b | 0.12 s | 0.12 s |  |  |  |", lines)
        self.assertIn("| the bench of x | measured | no root |  |  | not measured |", lines)
        self.assertIn("| moon | nobody was there |  | at most 5 ns |  | not measured |", lines)
        self.assertEqual({line.replace("\\|", "").count("|") for line in lines[2:]}, {7})

    def test_one_name_is_one_row(self):
        rows = self.rows(9)
        with self.assertRaises(ValueError):
            rows.add("another", [figures.of_rounds("x", 1, "ns")], None)

    def test_a_page_keeps_its_other_text(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
            table.write(page, "new\n")
            self.assertEqual(page.read_text(), f"before\n{table.BEGIN}\n\nnew\n\n{table.END}\nafter\n")
            table.write(pathlib.Path(folder) / "fresh.md", "new\n")
            self.assertEqual((pathlib.Path(folder) / "fresh.md").read_text(), "new\n")


# A bench with a child, and a grandchild in a session of its own that has lost its parent.
LITTER = textwrap.dedent("""
    import os, subprocess, sys, time
    print("figure\\tx\\t1\\tns\\t1\\t1\\t-\\t-", flush=True)
    subprocess.Popen(["sleep", sys.argv[1]])
    subprocess.run(["setsid", "sh", "-c", f"sleep {sys.argv[1]} & exit"])
    print("ready", flush=True)
    time.sleep(float(sys.argv[2]))
    """)
RUN = textwrap.dedent(f"""
    import sys
    sys.dont_write_bytecode = True
    sys.path.insert(0, {str(HERE)!r})
    import figures
    from test_bench import load
    figures.end_by_signals()
    figures.adopt_orphans()
    run = load("run")
    print(run.run_bench(run.Bench("litter", [sys.executable, *sys.argv[1:]]), "build"))
    """)


class Litter(unittest.TestCase):
    def setUp(self):
        self.mark = f"1000.{random.randrange(10**9):09}"

    def run_bench(self, seconds):
        process = subprocess.Popen([sys.executable, "-c", RUN, "-c", LITTER, self.mark, seconds],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        until("both children run", lambda: len(running(self.mark)) >= (2 if seconds != "0" else 0))
        return process

    def test_what_a_bench_leaves_is_ended(self):
        process = self.run_bench("0")
        out = process.stdout.read()
        self.assertEqual(process.wait(PATIENCE_S), 0)
        self.assertIn("left running by this bench, and ended: sleep", out)
        self.assertIn("name='x'", out)
        self.assertEqual(running(self.mark), [])

    def test_an_interrupted_run_leaves_nothing(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = self.run_bench("1000")
            process.send_signal(number)
            process.stdout.read()
            self.assertNotEqual(process.wait(PATIENCE_S), 0)
            self.assertEqual(running(self.mark), [], number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    options, rest = parser.parse_known_args()
    BUILD = options.build
    unittest.main(argv=[sys.argv[0], *rest])
