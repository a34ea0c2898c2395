#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests waits of a vCPU thread that are each far shorter than the threshold: page faults that userspace, a
slow disk or swap serves in 5 ms, a contended memory map, a quota. The report must have each storm with its
cause and with the duration that the storm's own clock measured. A fair share of the pCPU for other tasks is
no incident.

    test_storms.py [--rounds N] [NAME...]

One round by default, ten with VCPUSCOPE_TEST_FULL=1. The host's kernel is that of this machine. The vCPU is a
thread of a process that looks like QEMU (storm-vmm.c).
"""
import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import state_times  # noqa: E402

BUILD = pathlib.Path(os.environ.get("VCPUSCOPE_BUILD", "build"))
PROGRAM = BUILD / "host-collector/vcpuscope"
STORM_VMM = BUILD / "tests/e2e/storms/storm-vmm"
FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
PCPU = max(os.sched_getaffinity(0))
V1_CPU, V2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
GAP_S = 0.3
COUNTED_S = 2  # within which the collector reads the counters of a cgroup that a VM has come to
REPORTED_LEAST, REPORTED_MOST = 0.8, 1.1  # of what the provoker measured


class Group:
    """A cgroup beside which nothing else has a share of a pCPU, v1 or v2. quota: 10 ms of each 100."""

    def __init__(self, name, quota=False):
        v1 = (V1_CPU / "cpu.shares").exists()
        root = V1_CPU if v1 else V2
        self.home = root / "cgroup.procs"
        self.folder = root / f"vcpuscope-{name}.{os.getpid()}"
        if not v1:
            (V2 / "cgroup.subtree_control").write_text("+cpu")
        self.folder.mkdir()
        (self.folder / ("cpu.shares" if v1 else "cpu.weight")).write_text("262144" if v1 else "10000")
        if quota and v1:
            (self.folder / "cpu.cfs_period_us").write_text("100000")
            (self.folder / "cpu.cfs_quota_us").write_text("10000")
        elif quota:
            (self.folder / "cpu.max").write_text("10000 100000")

    def take(self, pid):
        (self.folder / "cgroup.procs").write_text(str(pid))

    def remove(self):
        for pid in (self.folder / "cgroup.procs").read_text().split():
            self.home.write_text(pid)
        self.folder.rmdir()


class StormVm:
    def __init__(self):
        self.process = subprocess.Popen([STORM_VMM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.tid = int(self.process.stdout.readline())
        os.sched_setaffinity(self.tid, {PCPU})

    def act(self, *words):
        """Its begin, end, and the time without a CPU, in ns."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        assert line, f"the VM ended in {words}"
        return tuple(map(int, line))

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)


@contextlib.contextmanager
def nothing(*_):
    yield


@contextlib.contextmanager
def quota(vm, group):
    limited = Group("quota", quota=True)
    limited.take(vm.pid)
    time.sleep(COUNTED_S)
    try:
        yield
    finally:
        group.take(vm.pid)
        limited.remove()


@contextlib.contextmanager
def swapped_out(vm, group):
    """Pages of the VM's that lie in a slow swap file: reclaimed from the memory cgroup that it is in."""
    v1 = pathlib.Path("/sys/fs/cgroup/memory")
    v1 = v1 if (v1 / "memory.usage_in_bytes").exists() else None
    if not v1:
        (V2 / "cgroup.subtree_control").write_text("+memory")
    limited = (v1 or V2) / f"vcpuscope-swap.{os.getpid()}"
    limited.mkdir()
    (limited / "cgroup.procs").write_text(str(vm.pid))
    try:
        vm.act("swap-begin", *STORMS["swap"][0][1:])
        with contextlib.suppress(OSError):  # it cannot have all: some is locked
            (limited / ("memory.force_empty" if v1 else "memory.reclaim")).write_text("0" if v1 else "1G")
        yield
    finally:
        vm.act("swap-end", 1, 0)
        if v1:
            (v1 / "cgroup.procs").write_text(str(vm.pid))
        else:
            group.take(vm.pid)
        limited.rmdir()


def rival(busy_s, idle_s):
    """A process on the same pCPU, of the same priority, that computes and sleeps in turn."""
    @contextlib.contextmanager
    def runs(_, group):
        child = os.fork()
        if not child:
            os.sched_setaffinity(0, {PCPU})
            while os.getppid() != 1:
                end = time.monotonic() + busy_s
                while time.monotonic() < end:
                    pass
                if idle_s:
                    time.sleep(idle_s)
            os._exit(0)
        group.take(child)
        try:
            yield
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return runs


@contextlib.contextmanager
def busy_quota(vm, group):
    """Whenever the quota is used up, another process runs on the pCPU."""
    child = os.fork()
    if not child:
        os.sched_setaffinity(0, {PCPU})
        while os.getppid() != 1:
            pass
        os._exit(0)
    try:
        with quota(vm, group):
            yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# Name: what the vCPU does, beside what, and the verdict and state that are reported; None: no incident.
STORMS = {
    "quiet": (("compute", 500, 0), nothing, None),
    "userfaults": (("userfault", 300, 5000), nothing, ("demand_paging", "blocked")),
    "slow disk": (("disk", 200, 5000), nothing, ("demand_paging", "blocked")),
    "swap": (("swap", 200, 5000), swapped_out, ("demand_paging", "blocked")),
    "memory map": (("map", 1500, 500), nothing, ("mmu_contention", "blocked")),
    "quota": (("compute", 3000, 0), quota, ("cgroup_throttled", "throttled")),
    "quota, busy pCPU": (("compute", 3000, 0), busy_quota, ("cgroup_throttled", "throttled")),
    "half to another": (("compute", 2000, 0), rival(0.1, 0), None),
    "a third to another": (("compute", 2000, 0), rival(0.003, 0.007), None),
}


def play(names, out):
    """What was provoked, by its own clock, and the report of the recording."""
    vm, acts = StormVm(), []
    group = Group("storm")
    group.take(vm.pid)
    pathlib.Path(out).unlink(missing_ok=True)
    record = subprocess.Popen([PROGRAM, "record", "--pid", str(vm.pid), "--no-guest", "-o", out],
                              stderr=subprocess.PIPE, text=True)
    try:
        while not (os.path.exists(out) and os.path.getsize(out)):
            assert record.poll() is None, record.stderr.read()
            time.sleep(0.1)
        time.sleep(1)
        for name in names:
            act, beside, _ = STORMS[name]
            with beside(vm, group):
                time.sleep(GAP_S)
                acts.append((name, *vm.act(*act)))
            time.sleep(GAP_S)
    finally:
        record.send_signal(signal.SIGINT)
        said = record.communicate(timeout=20)[1]
        vm.end()
        group.remove()
    assert record.returncode == 0, said
    return acts, state_times.report(PROGRAM, out)


def judge(expected, begin, end, waited, incidents):
    """What is wrong, "" if nothing; and what was reported. expected: (verdict, state), or None for no incident;
    waited: for how long the thread had no CPU, in ns."""
    inside = [i for i in incidents if i["begin_ns"] < end and i["end_ns"] > begin]
    kinds = sorted({f"{i['verdict']} ({i['confidence']})" for i in inside})
    if not expected:
        return ("reported" if inside else ""), f"{len(inside)} incidents {' '.join(kinds)}"
    verdict, state = expected
    reported = sum(i["breakdown_ns"][state] for i in inside if i["verdict"] == verdict)
    what = f"{len(inside)} incidents, {reported / 1e6:.0f} of {waited / 1e6:.0f} ms: {' '.join(kinds)}"
    wrong = [i for i in inside if i["verdict"] != verdict]
    if wrong:
        return f"{wrong[0]['verdict']}: {wrong[0]['because']}", what
    if not REPORTED_LEAST * waited <= reported <= REPORTED_MOST * waited:
        return "too little, or too much", what
    return "", what


def judge_all(expected, acts, incidents, say):
    """How many acts (name, begin, end, waited) are reported wrongly, or incidents without an act. expected: by name."""
    failed = 0
    for name, *act in acts:
        wrong, what = judge(expected[name], *act, incidents)
        say(f"  {name:20} {what}{'   WRONG: ' + wrong if wrong else ''}")
        failed += bool(wrong)
    stray = [i for i in incidents
             if not any(i["begin_ns"] < end and i["end_ns"] > begin for _, begin, end, _ in acts)]
    for i in stray:
        say(f"  outside: {i['verdict']}, {(i['end_ns'] - i['begin_ns']) / 1e6:.0f} ms: {i['because']}")
    return failed + len(stray)


def round_of(names, out):
    acts, report = play(names, out)
    return judge_all({name: storm[2] for name, storm in STORMS.items()}, acts, report["incidents"],
                     lambda line: print(line, flush=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10 if FULL else 1)
    parser.add_argument("--out", help="where the recordings stay")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if os.geteuid():
        print("skipped: the collector captures the host's events, which needs root")
        return 77
    names = arguments.names or list(STORMS)
    for name, devices in (("slow disk", ["/dev/fuse"]), ("swap", ["/dev/fuse", "/dev/loop-control"])):
        missing = [d for d in devices if not os.path.exists(d)]
        if name in names and missing:
            print(f"not played: {name}, which needs {missing[0]}")
            names.remove(name)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="vcpuscope-storms-") as folder:
        for n in range(arguments.rounds):
            print(f"round {n + 1}", flush=True)
            failed += round_of(names, f"{arguments.out or folder}/{n}.vcs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
