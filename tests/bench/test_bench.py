#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The tools of the benchmarks: figures, the table of `run`, what `run` and `compare` leave behind, and the statistics
of `compare`. usage: test_bench.py [--build DIR] [--itself] [unittest arguments]"""
import argparse
import importlib.machinery
import importlib.util
import os
import pathlib
import random
import re
import shutil
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
import ratios  # noqa: E402
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
        text = table.markdown([self.rows(9), self.rows(11, "no root")], "A machine.")
        lines = text.splitlines()
        self.assertIn("| x | 9 (8 to 10) ns | 11 (10 to 12) ns | at most 10 | y 12 ns | **met in one run, missed in "
                      "the other** |", lines)
        self.assertIn("| a\\|b | 0.12 s | 0.12 s |  |  |  |", lines)
        self.assertIn("| the bench of x | measured | no root |  |  | not measured |", lines)
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


class Load(unittest.TestCase):
    """bench_load, on which bench_guest's figures rest."""

    @staticmethod
    def trips(pid):
        """How often those who answer (the children's children) have waited: once in each round trip."""
        def children(pid):
            return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

        texts = [pathlib.Path(f"/proc/{answers}/status").read_text() for pings in children(pid) for answers in children(pings)]
        return sum(int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M)[1]) for text in texts)

    def test_its_rate_follows_what_it_is_told(self):
        for folder in ([], [str(BUILD)]):
            process = subprocess.Popen([BUILD / "tests/bench/bench_load", *folder], stdin=subprocess.PIPE, text=True)
            try:
                until("the pairs wait", lambda: self.trips(process.pid) >= os.cpu_count())
                time.sleep(0.2)
                self.assertLessEqual(self.trips(process.pid), 4 * os.cpu_count())
                for rate in ("300", "flood"):
                    before = self.trips(process.pid)
                    process.stdin.write(f"{rate}\n")
                    process.stdin.flush()
                    until(f"there are round trips: {rate}", lambda: self.trips(process.pid) > before + 200)
                mark = f"/proc/{process.pid}/task/{process.pid}/children"
                children = pathlib.Path(mark).read_text().split()
            finally:
                process.stdin.close()
            self.assertEqual(process.wait(PATIENCE_S), 0)
            until("its children have ended", lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in children))

    def test_a_part_that_cannot_be_played_is_an_error(self):
        process = subprocess.Popen([BUILD / "tests/bench/bench_load", "/nowhere"], stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        time.sleep(0.5)
        process.stdin.close()
        self.assertEqual(process.wait(PATIENCE_S), 1)
        self.assertIn("could not be played", process.stderr.read())


class Statistics(unittest.TestCase):
    def test_known_ranks(self):
        """Of tables of the sign test."""
        for n, k in ((6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (50, 18), (100, 40)):
            self.assertEqual(ratios.rank(n), k, n)

    def test_known_samples(self):
        self.assertEqual(ratios.interval([0.9, 1.1, 1.0, 1.2, 0.8, 1.3]), (1.05, 0.8, 1.3))
        self.assertEqual(ratios.interval([n / 100 for n in range(95, 106)]), (1.0, 0.96, 1.04))
        self.assertRaises(ValueError, ratios.interval, [1.0] * 5)

    def test_verdicts(self):
        for low, high, verdict in ((0.9, 0.96, "SLOWER"), (0.9, 0.97, "ok, but unsure"), (0.97, 1.2, "ok"),
                                   (0.5, 1.5, "ok, but unsure")):
            self.assertEqual(ratios.verdict(low, high, 0.97), verdict)

    @staticmethod
    def pairs(seed, slowdown, n, busy):
        """Each run is disturbed by itself: by some percent always, by up to 30 % at times on a busy machine."""
        dice = random.Random(seed)

        def took(true):
            return true * (1 + abs(dice.gauss(0, 0.03)) + (dice.random() < busy) * dice.uniform(0, 0.3))
        return [took(1) / took(slowdown) for _ in range(n)]

    def alarms(self, slowdown, n, busy):
        return sum(ratios.verdict(*ratios.interval(self.pairs(seed, slowdown, n, busy))[1:], 0.97) == "SLOWER"
                   for seed in range(100))

    def test_a_planted_slowdown_of_10_percent_is_found(self):
        self.assertGreaterEqual(self.alarms(1.10, 11, 0), 95)
        self.assertGreaterEqual(self.alarms(1.10, 21, 0.1), 95)

    def test_equal_ones_raise_no_alarm(self):
        self.assertLessEqual(self.alarms(1.0, 11, 0), 5)
        self.assertLessEqual(self.alarms(1.0, 21, 0.1), 5)

    def test_the_interval_holds_the_median_as_often_as_it_says(self):
        held = 0
        for seed in range(1000):
            dice = random.Random(seed)
            _, low, high = ratios.interval([dice.expovariate(1) for _ in range(11)])
            held += low <= 0.6931 <= high
        self.assertGreaterEqual(held, 950)


class Compare(unittest.TestCase):
    """`compare` in a small repository, whose build can be made to fail or to last."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="test_bench.")
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        self.tmp = self.tree / "tmp"
        (self.tree / "tests/bench").mkdir(parents=True)
        self.tmp.mkdir()
        for name in ("compare", "figures.py", "offline.py", "ratios.py", "revision.py"):
            shutil.copy(HERE / name, self.tree / "tests/bench" / name)
        (self.tree / "CMakePresets.json").write_text('{"version": 3, "configurePresets": [{"name": "release", '
                                                     '"generator": "Ninja", "binaryDir": "${sourceDir}/build"}]}')
        self.git("init", "-q")

    def git(self, *words):
        done = subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words], cwd=self.tree,
                              check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout

    def commit(self, cmake):
        (self.tree / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.20)\nproject(x NONE)\n{cmake}\n")
        self.git("add", "CMakeLists.txt", "CMakePresets.json")
        self.git("commit", "-q", "-m", "x")

    def start(self, *words):
        return subprocess.Popen([self.tree / "tests/bench/compare", "--no-build", *words], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env={**os.environ, "TMPDIR": str(self.tmp)})

    def check_nothing_left(self):
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)
        self.assertEqual(list(self.tmp.iterdir()), [])

    def test_a_revision_that_does_not_build_is_a_skip_with_the_reason(self):
        self.commit('message(FATAL_ERROR "no compiler on the moon")')
        for rev, reason in (("HEAD", "no compiler on the moon"), ("nowhere", "no revision nowhere")):
            process = self.start(rev)
            out, _ = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 77, out)
            self.assertIn(reason, out)
            self.check_nothing_left()

    def test_an_interrupted_build_leaves_nothing(self):
        mark = f"1000.{random.randrange(10**9):09}"
        self.commit(f"execute_process(COMMAND sleep {mark})")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("HEAD")
            until("it builds", lambda: running(mark))
            process.send_signal(number)
            out, _ = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 130 if number == signal.SIGINT else 143, out)
            self.assertEqual(running(mark), [])
            self.check_nothing_left()


def compare_itself():
    """The last commit against this tree, which a test expects to be equal: a real build, real figures."""
    if os.environ.get("VCPUSCOPE_TEST_FULL") != "1":
        print("skipped: builds the last commit and measures it for minutes: tests/run --full")
        return 77
    done = subprocess.run([HERE / "compare", "HEAD", "--no-build", "--events", "1000000"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    return done.returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--itself", action="store_true")
    options, rest = parser.parse_known_args()
    if options.itself:
        sys.exit(compare_itself())
    BUILD = options.build
    unittest.main(argv=[sys.argv[0], *rest])
