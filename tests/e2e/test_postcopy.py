#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests userfault on a real kernel. Bed B's guest migrates to a second QEMU by postcopy. The sending QEMU is
then stopped, so that the vCPU waits for the next page that it touches. The report about the receiver must
give the verdict demand paging, for at least as long as the sender was stopped. Exit status: 0 pass, 1 fail.
"""
import argparse
import json
import os
import shlex
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/beds"]
import bed  # noqa: E402
import run_scene  # noqa: E402
import scene  # noqa: E402
import test_verdicts  # noqa: E402

SENDER, RECEIVER = "/run/guest", "/run/receiver"
STILL_MS = 500
TOUCHED_MIB = 96  # more than is brought before the sender stands still, however fast pages come
AFTER_S = 1.5
# Waits for pages before and after the sender stood still lie in the same incident.
CASE = test_verdicts.Case(
    "a page that a postcopy migration does not bring", "host",
    f"provoke postcopy {SENDER}/qmp {RECEIVER}/qmp {RECEIVER}/migration {{pid}} {STILL_MS}",
    "demand_paging", ("blocked",), ("host", "postcopy/listen"), at_most=float("inf"))


def receiver_start(host, sender_pid):
    """A QEMU like the sender's that waits for its guest: its pid."""
    arguments = host.run(f"tr '\\0' '\\n' </proc/{sender_pid}/cmdline").splitlines()
    command = shlex.join(a.replace(f"{SENDER}/", f"{RECEIVER}/") for a in arguments)
    return int(host.run(
        f"mkdir -p {RECEIVER}; {command} -incoming unix:{RECEIVER}/migration </dev/null "
        f">{RECEIVER}/log 2>&1 & pid=$!; i=0; while [ ! -S {RECEIVER}/migration ] && [ $i -lt 300 ]; do "
        f"sleep 0.1; i=$((i + 1)); done; echo $pid"))


def play(builder, out, say):
    """One migration: what differs."""
    with (tempfile.TemporaryDirectory(prefix="vcpuscope-postcopy.") as folder,
          run_scene.nested(builder, folder, say) as (sender, host)):
        sender.prepare()
        sender.guest.run(f"provoke touch {TOUCHED_MIB} >/dev/null 2>&1 </dev/null & sleep 2")
        received = scene.Scene(host, sender.guest, receiver_start(host, sender.qemu_pid),
                               f"{RECEIVER}/agent", "/root/out", say, emulated=True)
        received.monitor = f"{RECEIVER}/qmp-recorder"
        received.place_threads()
        received.record_start()
        say(CASE.name)
        measured = json.loads(host.run(f"taskset {1 << scene.HOST_CPU:x} "
                                       + CASE.command.format(pid=sender.qemu_pid)))
        measured["window"] = measured["begin_raw_ns"], measured["end_raw_ns"]
        time.sleep(AFTER_S)
        received.record_stop()
        os.makedirs(out, exist_ok=True)
        for name, content in (("run.vcs", host.get(f"{received.folder}/run.vcs")),
                              ("truth.json", json.dumps(measured, indent=1).encode())):
            with open(f"{out}/{name}", "wb") as f:
                f.write(content)
        _, report = received.report()
    return test_verdicts.check(CASE, measured, report)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    test_verdicts.add_round_arguments(p)
    args = p.parse_args()
    started = time.time()

    def say(text):
        print(f"[{time.time() - started:5.1f} s] {text}", flush=True)

    failed = 0
    with run_scene.own_signals():
        for builder, out in test_verdicts.each_round(args, say):
            wrong = bed.machine.retry_emulator(lambda: play(builder, out, say), say)
            say(f"{'WRONG' if wrong else 'right'}: {CASE.name}" + "".join(f"\n    {w}" for w in wrong))
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
