#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the tests of both captures inside guests with the kernels that Debian 12 offers, because the verifier
of one kernel may refuse programs that another one accepts.

With BPF, every suite runs in each guest. Of the chosen events, two tests run: one loads all programs, the other
takes stacks. The perf backend needs no verifier, so each of its two suites runs in only one of the guests. With
VCPUSCOPE_TEST_FULL=1 all suites run in all guests.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../beds")
import bed  # noqa: E402

FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
OLD, NEW = "6.1", "6.12"  # Debian 12's kernel, and the newest one that it offers
EACH = (OLD, NEW)
# Everything with the build that these kernels should take, a little with the fallback; and where.
TESTS = (
    ("test_capture_guest typed", EACH),
    ("test_capture_host typed", EACH),
    ("test_capture_guest perf", (NEW,)),
    ("test_capture_host perf", (OLD,)),
    ("test_capture_both", (NEW,)),
    ("test_guest_stacks", EACH),
    ("test_capture_chosen 'hits_are*'", EACH),
    ("test_capture_chosen 'hits_have*'", EACH),
    ("test_capture_chosen", ()),
    ("test_capture_look", EACH),
    ("test_capture_guest raw 'every_event*'", EACH),
    ("test_capture_host raw 'long_waits*'", EACH),
)


def tests_of(series):
    return [test for test, kernels in TESTS if FULL or series in kernels]


def with_libraries(program):
    """[(from, to)] of a program and the shared libraries it needs."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libraries = set(re.findall(r"(/\S+) \(0x", listed))
    return [(program, f"/usr/bin/{os.path.basename(program)}")] + [(p, p) for p in libraries]


class Kernels(unittest.TestCase):
    def run_in(self, series):
        builder = bed.Builder(series=series)
        tests = tests_of(series)
        programs = sorted({test.split()[0] for test in tests})
        files = dict(pair for name in programs
                     for pair in with_libraries(f"{builder.build}/tests/{name}"))
        # One thread for both CPUs: tracepoints are switched often (see EmulatorFault).
        with bed.boot_a(builder, cpus=2, files=files.items(),
                        accelerator="tcg,thread=single") as guest:
            for test in tests:
                status, output = guest.run_bytes(f"cd /tmp && {test}", timeout_s=180)
                self.assertEqual(status, 0, f"{test}: {output.decode(errors='replace')}")

    def test_each_kernel(self):
        """Side by side: each is emulated by one thread."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in [pool.submit(self.run_in, series) for series in EACH]:
                done.result()


if __name__ == "__main__":
    bed.machine.unittest_main(Kernels)
