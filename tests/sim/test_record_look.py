#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""`record --look` and `--guest-look` with the real programs: the stand-in of a VM has a thread that spins without a
switch and one that sleeps often. Only the first is looked at while nothing is scheduled, and only the second while much
is; also by the agent, which runs beside it. Reports and graphs say that these stacks are no samples of all time, and each
mistake is named with its place."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

SPINNER, SLEEPER = "CPU 0/TCG", "CPU 1/TCG"
# The first is a real-time task, so that no other task of this machine runs between; it leaves as much time to others as it
# takes. Both compute without Python's lock.
STAND_IN = """
import hashlib, os, threading, time
open("/proc/self/comm", "w").write("qemu-system-x86")
cpus = sorted(os.sched_getaffinity(0))
def compute(turns):
    begin = time.monotonic()
    hashlib.pbkdf2_hmac("sha256", b"p", b"s", turns)
    return time.monotonic() - begin
def vcpu(n):
    tid = threading.get_native_id()
    os.sched_setaffinity(tid, {cpus[n % len(cpus)]})
    open(f"/proc/self/task/{tid}/comm", "w").write(f"CPU {n}/TCG")
    while n:
        compute(500)
        time.sleep(0.00005)
    os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(1))
    turns = 1000
    while compute(turns) < 0.05:
        turns *= 2
    while True:
        time.sleep(compute(turns))
for n in (0, 1):
    threading.Thread(target=vcpu, args=(n,)).start()
"""


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    p.add_argument("--agent", required=True)
    a = p.parse_args()
    program, agent = os.path.abspath(a.vcpuscope), os.path.abspath(a.agent)
    wrong = []

    def expect(what, right):
        if not right:
            wrong.append(what)

    def run(*words):
        return subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=120)

    with tempfile.TemporaryDirectory(prefix="vcpuscope-look.") as folder:
        out = f"{folder}/run.vcs"
        nobody = ["record", "--pid", "1", "--no-guest", "-o", out]
        switches = ["--look", "20ms", "--when", "sched_switch == 0"]
        mistakes = (
            (["--look", "20ms"], "--look needs a condition: give --when EXPR"),
            (["--when", "cpu == 0"], "--when needs --look PERIOD"),
            (["--guest-look", "20ms"], "--guest-look needs a condition: give --guest-when EXPR"),
            (["--look", "2s", "--when", "cpu == 0"], "--look 2s: expected a duration with its unit from 1ms to 1s"),
            (["--look", "20ms", "--when", "cpu==0 && sched_swich==0"],
             "--when: there is no field 'sched_swich'; did you mean 'sched_switch'?\n"
             "  cpu==0 && sched_swich==0\n            ^\n"),
            (["--look", "20ms", "--when", "irq_handler_entry>0"], "'irq_handler_entry' is an event of the guest only"),
            (["--guest-look", "20ms", "--guest-when", "kvm_exit>0"],
             "--guest-when: 'kvm_exit' is an event of the host only\n  kvm_exit>0\n  ^\n"),
            (["--look", "20ms", "--when", "cpu==0" + " " * 300], "--when: at most 255 characters"),
            (["--guest-look", "20ms", "--guest-when", "cpu==0"], "--guest-look and --no-guest cannot be combined"),
        )
        for words, says in mistakes:
            done = run(*nobody, *words)
            expect(f"{words}: {done}", done.returncode == 2 and says in done.stderr)
            expect(f"{words} wrote a file", not os.path.exists(out))
        done = run("record", "-e", "sched:sched_switch", "--tid", "1", "-o", out, *switches)
        expect(f"without a VM: {done}", done.returncode == 2 and "need a VM" in done.stderr)

        stand_in = subprocess.Popen([sys.executable, "-c", STAND_IN], stdin=subprocess.DEVNULL)
        pid = str(stand_in.pid)
        try:
            if os.geteuid() != 0:
                raise Unsupported("needs root")
            for _ in range(100):
                time.sleep(0.1)
                threads = [open(f"/proc/{pid}/task/{t}/comm", encoding="utf-8").read().strip()
                           for t in os.listdir(f"/proc/{pid}/task")]
                if SPINNER in threads and SLEEPER in threads:
                    break
            look_with_bpf(program, agent, folder, pid, run, expect)
        except Unsupported as e:
            print(f"skipped: {e}")
            return 77 if not wrong else 1
        finally:
            stand_in.kill()
            stand_in.wait()
    for what in wrong:
        print("wrong:", what)
    return 1 if wrong else 0


class Unsupported(Exception):
    """This machine cannot capture through BPF."""


def look_with_bpf(program, agent, folder, pid, run, expect):
    def threads_of(recording, *words):
        done = run("flame", recording, "--kind", "looks", *words)
        expect(f"flame of {recording}: {done.stderr}", done.returncode == 0)
        return {line.rsplit(" ", 1)[0].split(";")[0] for line in done.stdout.splitlines()}

    def record(recording, *words):
        done = run("record", "--pid", pid, "-o", recording, "--for", "2s", "--backend", "bpf", *words)
        if done.returncode == 3:
            raise Unsupported(done.stderr)
        expect(f"record {words}: {done}", done.returncode == 0)
        return done.stderr

    idle, busy, guest = f"{folder}/idle.vcs", f"{folder}/busy.vcs", f"{folder}/guest.vcs"
    record(idle, "--no-guest", "--look", "10ms", "--when", "sched_switch == 0")
    expect(f"while nothing is scheduled: {threads_of(idle)}", threads_of(idle) == {SPINNER})
    record(busy, "--no-guest", "--look", "10ms", "--when", "sched_switch > 2 && sched_switch < 1000000")
    expect(f"while much is scheduled: {threads_of(busy)}", SLEEPER in threads_of(busy))

    # They are no samples: other graphs have none of them, and reports say what they are.
    says = "looks every 10 ms, when sched_switch == 0"
    report = json.loads(run("report", idle, "--format", "json").stdout)
    expect(f"the report's configuration: {report['loss']['host']['config']}", report["loss"]["host"]["config"] == says)
    done = run("flame", idle, "--kind", "looks", "-o", f"{folder}/looks.svg")
    with open(f"{folder}/looks.svg", encoding="utf-8") as f:
        expect("the graph does not say the condition", says in f.read())
    done = run("flame", idle, "--kind", "oncpu", "--of", "vcpus")
    expect(f"looks as samples: {done.stdout[:300]}", all(line.count(";") <= 1 for line in done.stdout.splitlines()))
    done = run("report", idle, "events", "-e", "vcpuscope:stack/role==5/", "--top", "0", "--format", "jsonl")
    periods = [json.loads(line)["fields"]["wait_ns"] for line in done.stdout.splitlines()]
    expect(f"no look: {done.stderr}", periods)
    expect(f"shorter than the period: {periods}", all(int(ns) >= 9_000_000 for ns in periods))
    # It runs for half of 2 s; the machine may be busy.
    expect(f"only {len(periods)} looks", len(periods) >= 20)

    # The same by an agent beside it, within its owner's limits.
    socket = f"{folder}/agent.sock"

    def record_guest(recording, until, *words):
        """Until `until` was said, and 2 s more."""
        with open(f"{folder}/said", "wb") as log:
            recorder = subprocess.Popen([program, "record", "--pid", pid, "-o", recording, "--channel",
                                         f"listen:unix:{socket}", *words], stdout=log, stderr=log)
            for _ in range(600):
                time.sleep(0.1)
                with open(f"{folder}/said", encoding="utf-8") as f:
                    said = f.read()
                if until in said or recorder.poll() is not None:
                    break
            time.sleep(2)
            recorder.terminate()
            expect(f"record {words}: {said}", recorder.wait() == 0 and until in said)
            return said

    with open(f"{folder}/log", "wb") as log, \
            subprocess.Popen([agent, "--connect", f"unix:{socket}", "--policy", "/dev/null", "--max-cpu", "100%"],
                             stdout=log, stderr=log) as beside:
        try:
            said = record_guest(guest, "look: at most 100 ticks per second here (--max-sample-hz)",
                                "--guest-look", "5ms", "--guest-when", "sched_switch == 0")
            expect(f"in force: {said}", says in said)
            found = threads_of(guest, "--of", "tasks")
            expect(f"in the guest: {found}", SPINNER in found and SLEEPER not in found)
            record_guest(f"{folder}/text.vcs",
                         "look: character 1 of the condition: a text, which the owner does not allow",
                         "--guest-look", "10ms", "--guest-when", 'comm == "x"')
        finally:
            beside.terminate()

    # Through perf there are none; a line says so, and the recording goes on, with the chosen events.
    done = run("record", "--pid", pid, "--no-guest", "-o", f"{folder}/perf.vcs", "--for", "1s", "--backend", "perf",
               "--look", "10ms", "--when", "sched_switch == 0", "-e", "sched:sched_switch/prev_prio > 0/")
    expect(f"through perf: {done}", done.returncode == 3 or
           done.returncode == 0 and "no looks through perf (--look)" in done.stderr)
    if done.returncode == 0:
        found = run("report", f"{folder}/perf.vcs", "top", "-e", "host:sched:sched_switch", "--by", "comm")
        expect(f"chosen through perf: {done.stderr}: {found}", "sched_switch/prev_prio > 0/: " in done.stderr
               and "/: 0 hits" not in done.stderr and found.returncode == 0)


if __name__ == "__main__":
    sys.exit(main())
