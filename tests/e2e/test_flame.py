#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests flame graphs of a real guest (bed A), in which a task computes while a hog takes its vCPU's pCPU. The
graph must show the function in which the task computed. Its stack must continue with the hog, as wide as the
hog's own measurement. Sleeping guest tasks must have the symbols of their kernel. The widths of every thread
must sum to its wall-clock time.

Leaves run.vcs and the folded files in the output folder. Exit status: 0 pass, 1 fail, 77 cannot run here.
"""
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/beds"]
import run_scene  # noqa: E402
import scene  # noqa: E402
import state_times  # noqa: E402

SAMPLE_HZ, HOG_MS, HOGS, COMPUTE_MS = 199, 400, 3, 6000
# What flamegraph.pl, inferno and speedscope all read: frames without `;`, a blank, a whole number; and
# no frame that ends in a blank and a number, which flamegraph.pl takes for a second weight.
LINE = re.compile(r"^(?P<stack>[^;\s][^;]*(?:;[^;]+)*) (?P<us>[1-9][0-9]*)$")
GRAPHS = {
    "wall": ["--kind", "wall"],
    "vcpu": ["--kind", "wall", "--vcpu", "0"],
    "oncpu": ["--kind", "oncpu"],
    "hostcpu": ["--kind", "oncpu", "--of", "vcpus"],
    "offcpu": ["--kind", "offcpu", "--of", "tasks"],
    "offwake": ["--kind", "offwake"],
    "wakeup": ["--kind", "wakeup", "--of", "tasks"],
}


def play(played, say):
    played.place_threads()
    tid = int(played.host.run(f"for t in /proc/{played.qemu_pid}/task/*; do case $(cat $t/comm 2>/dev/null) in "
                              "'CPU 0/'*) echo ${t##*/} ;; esac; done"))
    played.agent_start(f"--sample-hz {SAMPLE_HZ}")
    played.record_arguments = f"--sample-hz {SAMPLE_HZ}"
    played.host.run(f"chrt -f -p 1 {tid}")
    try:
        played.record_start()
        say(f"a task computes; a hog takes its vCPU's pCPU {HOGS} times for {HOG_MS} ms")
        begin = time.monotonic()
        played.guest.run(f"provoke compute {COMPUTE_MS} >/dev/null 2>&1 </dev/null & sleep 0.2")
        for _ in range(HOGS):
            played.host.run(f"provoke hog {scene.VCPU_CPU} {HOG_MS}")
            time.sleep(0.2)
        # On a busy machine the hogs take longer to come than they stay: it computes until they are over.
        time.sleep(max(1, begin + COMPUTE_MS / 1e3 + 1 - time.monotonic()))
        played.record_stop()
    finally:
        played.host.run(f"chrt -o -p 0 {tid}")


def drawn(vcpuscope, recording, arguments):
    """({stack: us}, what it says, what is no folded text)."""
    done = subprocess.run([vcpuscope, "flame", recording, *arguments], capture_output=True, text=True)
    stacks, wrong = {}, []
    if done.returncode:
        return {}, done.stderr, [f"flame {arguments} ends with {done.returncode}: {done.stderr}"]
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        if not match or re.search(r"\s[0-9.]+$", match["stack"]) or match["stack"] in stacks:
            wrong.append(f"flame {arguments}: no folded text: {line!r}")
        else:
            stacks[match["stack"]] = int(match["us"])
    return stacks, done.stderr, wrong


def having(stacks, *frames):
    """The microseconds of stacks that hold all these frames, or what they begin with (`x...`)."""
    def holds(stack, frame):
        return any(f == frame or (frame.endswith("...") and f.startswith(frame[:-3]))
                   for f in stack.split(";"))
    return sum(us for stack, us in stacks.items() if all(holds(stack, frame) for frame in frames))


def check(graphs, said, span_ms):
    """What is not as it should be: a list of lines."""
    wrong = []

    def expect(what, us, low_ms, high_ms):
        if not low_ms <= us / 1e3 <= high_ms:
            wrong.append(f"{what}: {us / 1e3:.1f} ms, not {low_ms:.0f} to {high_ms:.0f}")

    wall = graphs["wall"]
    compute = {s: us for s, us in wall.items() if s.startswith("compute-")}
    hogged = HOGS * HOG_MS
    expect("the hog beneath compute", having(compute, "[vCPU runnable: pCPU held by cpu-hog]"),
           hogged * 0.9, hogged * 1.2)
    # A hog may hit while compute waits for the agent; its stack then is not the one that was hit.
    expect("... where it computed", having(compute, "[vCPU runnable: pCPU held by cpu-hog]", "main"),
           HOG_MS * 0.9, hogged * 1.2)
    # The slower the emulated CPU, the more of its stays on it end before a sample.
    expect("compute, sampled where it computes", having(compute, "main", "running"),
           COMPUTE_MS * 0.1, COMPUTE_MS)
    expect("compute on its CPU", having(graphs["oncpu"], "compute", "main"),
           COMPUTE_MS * 0.1, COMPUTE_MS)
    expect("wall time of compute", sum(compute.values()), COMPUTE_MS, COMPUTE_MS * 1.1)
    if not any("_[k]" in s and "[task sleeping]" in s for s in wall):
        wrong.append("no sleeper shows where in its kernel it sleeps")
    if not having(graphs["offcpu"], "schedule_[k]"):
        wrong.append("no wait of a task ends in the kernel's scheduler")
    ran = having(graphs["vcpu"], "running") / 1e3
    expect("samples of the vCPU thread", having(graphs["hostcpu"], "CPU 0/TCG"), ran * 0.7, ran * 1.3)
    if not any(s.startswith("qemu-system") and "_[k]" in s for s in graphs["hostcpu"]):
        wrong.append("no sample shows what QEMU's main thread did")
    expect("the vCPU's wall time", sum(graphs["vcpu"].values()), span_ms * 0.995, span_ms * 1.005)
    for root in {s.split(";")[0] for s in wall if having({s: 1}, "vcpuscope-agent...")}:
        expect(f"wall time of {root}", sum(us for s, us in wall.items() if s.split(";")[0] == root),
               COMPUTE_MS, span_ms * 1.005)  # the host's events begin before the guest's
    counted = re.search(r"([0-9.]+) % counted, ([0-9.]+) % unknown", said["wall"])
    if not counted or abs(float(counted[1]) - 100) > 0.5 or float(counted[2]) > 5:
        wrong.append(f"wall time is not covered: {said['wall']}")
    if "missing or double" in said["wall"] + said["vcpu"]:
        wrong.append(said["wall"] + said["vcpu"])
    return wrong


def once(builder, folder, args, say):
    with run_scene.direct(builder, folder, say, "tcg") as (played, _):
        play(played, say)
        run_scene.recording_save(played, args.out)
        say(played.guest.run("cat /root/agent.log").strip())
    vcpuscope = f"{builder.build}/host-collector/vcpuscope"
    graphs, said, wrong = {}, {}, []
    for name, arguments in GRAPHS.items():
        graphs[name], said[name], bad = drawn(vcpuscope, f"{args.out}/run.vcs", arguments)
        wrong += bad
        with open(f"{args.out}/{name}.folded", "w") as f:
            f.writelines(f"{stack} {us}\n" for stack, us in graphs[name].items())
        if not graphs[name]:
            wrong.append(f"{name} is empty: {said[name]}")
    report = state_times.report(vcpuscope, f"{args.out}/run.vcs")
    span_ms = (report["end_ns"] - report["begin_ns"]) / 1e6
    say(said["wall"].strip())
    return wrong + check(graphs, said, span_ms)


if __name__ == "__main__":
    sys.exit(run_scene.test_main(__doc__, once, ("6.1", "6.12")))
