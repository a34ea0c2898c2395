#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests storms of short waits of a VM whose guest runs the agent: a CPU quota of 10 ms in each 100 ms while
the guest's tasks take turns; and a guest task that touches memory that the host has swapped out to a disk
with 5 ms for each read. The report must have each with its cause, with the time in which the vCPU thread did
not run by the kernel's own count. It must not blame a guest task.

Bed A: an emulated guest on this machine's kernel. Exit status: 0 pass, 1 fail, 77 cannot run here.
"""
import argparse
import contextlib
import ctypes
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "beds")]
import bed  # noqa: E402
import cgroups  # noqa: E402
import run_scene  # noqa: E402
import test_storms  # noqa: E402

STORM_S, SETTLE_S, GAP_S, WRITTEN_S = 3, 1, 1, 0.5
TOUCHED_MIB, READ_US = 24, 5000
PAGE = 4096
APART_PAGES = 16  # storm-vmm's unit of swap
STILL_S = 0.5
SYS_PROCESS_MADVISE, MADV_PAGEOUT = 440, 21


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


def quota_storm(played, _, groups):
    """(begin, end, kept from running) in ns."""
    played.guest.run("provoke compute 600000 >/dev/null 2>&1 </dev/null & echo $! >/run/compute.pid")
    time.sleep(SETTLE_S)
    with quota(groups.quota) as throttled_ns:
        begin, before = now_ns(), throttled_ns()
        time.sleep(STORM_S)
        throttled, end = throttled_ns() - before, now_ns()
    time.sleep(GAP_S)
    played.guest.run("kill $(cat /run/compute.pid)")
    return begin, end, throttled


def ram(pid):
    """(begin, end) of the guest's memory in QEMU: its largest private mapping."""
    maps = (line.split() for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines())
    spans = [tuple(int(a, 16) for a in m[0].split("-")) for m in maps if m[1] == "rw-p"]
    return max(spans, key=lambda span: span[1] - span[0])


def touched_pages(pid):
    """Runs [(begin, end)] of the guest's pages in QEMU that hold one byte: provoke touches them so."""
    begin, end = ram(pid)
    runs, nothing = [], bytes(PAGE)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(begin)
        for at in range(begin, end, PAGE):
            page = memory.read(PAGE)
            if page == nothing or page.count(0) != PAGE - 1:
                continue
            if runs and runs[-1][1] == at:
                runs[-1][1] = at + PAGE
            else:
                runs.append([at, at + PAGE])
    return runs


def page_out(pid, runs):
    """Asks the kernel to reclaim these pages of the process now."""
    libc, pidfd = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid)
    try:
        for begin, end in runs:
            one = struct.pack("PP", begin, end - begin)
            if libc.syscall(SYS_PROCESS_MADVISE, pidfd, one, ctypes.c_size_t(1), MADV_PAGEOUT, 0) < 0:
                raise OSError(ctypes.get_errno(), "process_madvise")
    finally:
        os.close(pidfd)


@contextlib.contextmanager
def slow_swap(pages):
    """So many pages of swap, of which each read takes READ_US; storm-vmm serves it."""
    with subprocess.Popen([test_storms.STORM_VMM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        server.stdout.readline()

        def act(*words):
            server.stdin.write(" ".join(map(str, words)) + "\n")
            server.stdin.flush()
            if not server.stdout.readline():
                raise OSError("the server of the slow swap ended")

        act("swap-begin", pages // APART_PAGES, READ_US)
        try:
            yield
        finally:
            act("swap-end", 1, 0)


def without_cpu_ns(pid, tid):
    """For how long the thread had no CPU so far: it was neither running nor runnable."""
    running, waiting, _ = map(int, pathlib.Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split())
    return now_ns() - running - waiting


def swap_storm(played, tid, _):
    """(begin, end, kept from running) in ns."""
    pid, kept = played.qemu_pid, 0
    played.guest.run(f"provoke touch {TOUCHED_MIB} >/dev/null 2>&1 </dev/null & echo $! >/run/touch.pid")
    time.sleep(SETTLE_S)
    with slow_swap(4 * TOUCHED_MIB * 2**20 // PAGE):
        # What the kernel has written but still holds would come back at once. Such a page, mapped again by
        # reading it, is dropped when it is reclaimed once more. The task must not write to it meanwhile.
        played.guest.run("kill -STOP $(cat /run/touch.pid)")
        runs = touched_pages(pid)
        page_out(pid, runs)
        time.sleep(WRITTEN_S)
        touched_pages(pid)
        page_out(pid, runs)
        left = swapped_bytes(pid)
        begin, before = now_ns(), without_cpu_ns(pid, tid)
        end = begin
        played.guest.run("kill -CONT $(cat /run/touch.pid)")
        # The storm is over when no page comes back any more. A page that nobody touches stays where it is.
        while now_ns() < end + STILL_S * 1e9:
            time.sleep(0.01)
            if swapped_bytes(pid) < left:
                left, end, kept = swapped_bytes(pid), now_ns(), without_cpu_ns(pid, tid) - before
        time.sleep(GAP_S)
        played.guest.run("kill $(cat /run/touch.pid)")
    return begin, end, kept


def swapped_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmSwap:")))


# Name: what plays it; the verdict and the state that are reported.
STORMS = {
    "quota": (quota_storm, ("cgroup_throttled", "throttled")),
    "swap": (swap_storm, ("demand_paging", "blocked")),
}


def play(names, builder, out, say):
    """One boot that plays these storms: how many of them are reported wrongly."""
    acts = []
    with (tempfile.TemporaryDirectory(prefix="vcpuscope-storms.") as folder,
          run_scene.direct(builder, folder, say, "tcg") as (played, machine)):
        played.prepare()
        tid = vcpu_thread(played.qemu_pid)
        played.monitor = f"{machine.qmp_socket}-recorder"
        # The recorder looks for new cgroups once a second: these exist before it starts.
        with cgroups.VcpuCgroups(played.host, played.qemu_pid, tid) as groups:
            played.record_start()
            for name in names:
                acts.append((name, *STORMS[name][0](played, tid, groups)))
                time.sleep(GAP_S)
            played.record_stop()
        text, report = played.report()
        run_scene.recording_save(played, out)
        (pathlib.Path(out) / "report.txt").write_text(text)
    weak = [name for name, begin, end, kept in acts if kept < (end - begin) / 2]
    for name in weak:
        say(f"WRONG: {name}: the storm did not take half of the time")
    return len(weak) + test_storms.judge_all({name: storm[1] for name, storm in STORMS.items()}, acts,
                                             report["incidents"], say)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10 if test_storms.FULL else 1)
    parser.add_argument("--out", default="out", help="folder for the recording and the report")
    parser.add_argument("names", nargs="*", help=f"storms of {', '.join(STORMS)}; all by default")
    args = parser.parse_args()
    if os.geteuid():
        print("skipped: BPF on this machine's kernel needs root")
        return run_scene.SKIP
    started = time.time()

    def say(line):
        print(f"[{time.time() - started:5.1f} s] {line}", flush=True)

    names = args.names or list(STORMS)
    missing = [d for d in ("/dev/fuse", "/dev/loop-control") if not os.path.exists(d)]
    if "swap" in names and missing:
        say(f"not played: swap, which needs {missing[0]}")
        names.remove("swap")
    failed = 0
    with run_scene.own_signals():
        builder = bed.Builder(None, "6.1", say)
        for number in range(args.rounds):
            out = os.path.abspath(args.out + (f"/round-{number + 1}" if args.rounds > 1 else ""))
            failed += bool(bed.machine.retry_emulator(lambda o=out: play(names, builder, o, say), say))
    say(f"{args.rounds - failed} of {args.rounds} right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
