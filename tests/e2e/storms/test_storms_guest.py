#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A storm of short waits of a VM whose guest runs the agent: a CPU quota of 10 ms in each 100 ms, while the
guest's tasks take turns. The report must explain it as a storm of the quota, for as long as the cgroup's own
account says that the vCPU thread was throttled, and must blame nobody in the guest.

Bed A: an emulated guest on this machine's kernel. Exit status: 0 right, 1 wrong, 77 cannot run here."""
import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "beds")]
import bed  # noqa: E402
import cgroups  # noqa: E402
import run_scene  # noqa: E402

FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
STORM_S, SETTLE_S, GAP_S = 3, 1, 1
VERDICT, REPORTED_LEAST = "cgroup_throttled", 0.9


def vcpu_thread(pid):
    """The id of the vCPU thread of a QEMU on this machine."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return next(t.name for t in tasks if (t / "comm").read_text().startswith("CPU 0/"))


@contextlib.contextmanager
def quota(group):
    """10 ms in each 100 ms. Yields a function: for how long the group was throttled so far, in ns."""
    group = pathlib.Path(group)
    v1 = (group / "cpu.cfs_quota_us").exists()

    def throttled_ns():
        account = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
        return int(account["throttled_time"]) if v1 else int(account["throttled_usec"]) * 1000

    if v1:
        (group / "cpu.cfs_period_us").write_text("100000")
    (group / ("cpu.cfs_quota_us" if v1 else "cpu.max")).write_text("10000" if v1 else "10000 100000")
    try:
        yield throttled_ns
    finally:
        (group / ("cpu.cfs_quota_us" if v1 else "cpu.max")).write_text("-1" if v1 else "max 100000")


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def storm(played, groups):
    """(begin, end, throttled) in ns."""
    played.guest.run("provoke compute 600000 >/dev/null 2>&1 </dev/null & true")
    time.sleep(SETTLE_S)
    begin = now_ns()
    with quota(groups.quota) as throttled_ns:
        before = throttled_ns()
        time.sleep(STORM_S)
        throttled = throttled_ns() - before
    return begin, now_ns(), throttled


def judge(begin, end, throttled, incidents):
    """What is wrong, "" if nothing; and what was reported."""
    inside = [i for i in incidents if i["begin_ns"] < end and i["end_ns"] > begin]
    kinds = sorted({f"{i['verdict']} ({i['confidence']})" for i in inside})
    # An incident may begin before the storm's account does, or end after it.
    reported = sum(i["breakdown_ns"]["throttled"] for i in inside if i["verdict"] == VERDICT)
    what = f"{len(inside)} incidents, {reported / 1e6:.0f} of {throttled / 1e6:.0f} ms: {' '.join(kinds)}"
    wrong = [i for i in inside if i["verdict"] != VERDICT]
    if throttled < (end - begin) / 2:
        return "the storm did not take half of the time", what
    if wrong:
        return f"{wrong[0]['verdict']}: {wrong[0]['because']}", what
    if reported < REPORTED_LEAST * throttled:
        return "too little", what
    return "", what


def play(builder, out, say):
    """One boot, one storm: True if something is wrong."""
    with (tempfile.TemporaryDirectory(prefix="vcpuscope-storms.") as folder,
          run_scene.direct(builder, folder, say, "tcg") as (played, machine)):
        played.prepare()
        groups = cgroups.VcpuCgroups(played.host, played.qemu_pid, vcpu_thread(played.qemu_pid))
        with groups:
            played.monitor = f"{machine.qmp_socket}-recorder"
            played.record_start()
            begin, end, throttled = storm(played, groups)
            time.sleep(GAP_S)
            played.record_stop()
        text, report = played.report()
        run_scene.recording_save(played, out)
        (pathlib.Path(out) / "report.txt").write_text(text)
    wrong, what = judge(begin, end, throttled, report["incidents"])
    say(f"{'WRONG' if wrong else 'right'}: {what}{': ' + wrong if wrong else ''}")
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10 if FULL else 1)
    parser.add_argument("--out", default="out", help="folder for the recording and the report")
    args = parser.parse_args()
    if os.geteuid():
        print("skipped: BPF on this machine's kernel needs root")
        return run_scene.SKIP
    started = time.time()

    def say(line):
        print(f"[{time.time() - started:5.1f} s] {line}", flush=True)

    failed = 0
    with run_scene.own_signals():
        builder = bed.Builder(None, "6.1", say)
        for number in range(args.rounds):
            out = os.path.abspath(args.out + (f"/round-{number + 1}" if args.rounds > 1 else ""))
            failed += bed.machine.retry_emulator(lambda o=out: play(builder, o, say), say)
    say(f"{args.rounds - failed} of {args.rounds} right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
