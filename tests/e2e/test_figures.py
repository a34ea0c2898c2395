#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares figures with the host scheduler's own count (bed A). A guest task always runs, and a hog takes the
vCPU's pCPU from it again and again. The time that the report counts as lost by the task must be the run delay
of the vCPU thread in /proc/PID/schedstat, and the report must name the hog. Then tests the same table live.

Leaves run.vcs and figures.json in the output folder. Exit status: 0 pass, 1 fail, 77 cannot run here.
"""
import json
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/beds"]
import check_quickstart  # noqa: E402
import run_scene  # noqa: E402

HOGS, HOG_MS = 8, 300
TOLERANCE = 0.01
TABLES = ("vcpu", "pcpu", "culprits", "steal", "tasks", "irq", "ticks")
WATCH_S = 4


def vcpu_tid(played):
    return played.host.run(f"for t in /proc/{played.qemu_pid}/task/*; do case $(cat $t/comm 2>/dev/null) in "
                           "'CPU 0/'*) echo ${t##*/} ;; esac; done").strip()


def play(played, say):
    """Records the scene. The vCPU thread runs in real time, so that on a busy machine, too, it waits for
    nobody but the hog, which outranks it; and the guest idles until the recording runs, so that what the
    thread waited inside the recording and around it differ little."""
    tid = vcpu_tid(played)
    played.prepare()
    played.host.run(f"chrt -f -p 1 {tid}")
    played.record_start()
    say(f"a hog takes the vCPU's pCPU {HOGS} times for {HOG_MS} ms")
    played.guest.run("provoke compute 600000 >/dev/null 2>&1 </dev/null & echo $! >/run/compute.pid")
    time.sleep(0.5)
    # Once the guest computes, its CPU is never idle: somebody pays for every wait.
    delay_ns = played.run_delay_ns()
    for _ in range(HOGS):
        played.truth["stalls"].append(played.hog(HOG_MS))
        time.sleep(0.1)
    played.truth["computing_run_delay_ns"] = played.run_delay_ns() - delay_ns
    played.guest.run("kill $(cat /run/compute.pid)")
    time.sleep(0.5)
    played.record_stop()
    played.host.run(f"chrt -o -p 0 {tid}")
    return {name: played.table(name) for name in TABLES}


def check(figures, truth):
    """What differs: a list of lines."""
    inside, around = truth["run_delay_ns"]
    wrong = []

    def expect_delay(found, whose, least, within):
        if not least * (1 - TOLERANCE) <= found <= around * (1 + TOLERANCE):
            wrong.append(f"{whose} is {found / 1e6:.1f} ms; /proc says {least / 1e6:.1f} {within}, "
                         f"{around / 1e6:.1f} around the recording")

    delay = figures["vcpu"][0]["run_delay_ns"]
    billed = sum(row["run_delay_ns"] for row in figures["tasks"])
    expect_delay(delay, "the vCPU's run delay", inside, "inside the recording")
    expect_delay(sum(row["run_delay_ns"] for row in figures["pcpu"]), "the pCPUs' sum", inside,
                 "inside the recording")
    # A vCPU that is woken while the guest is idle may wait, too: no task pays for that.
    expect_delay(billed, "what all tasks are billed", truth["computing_run_delay_ns"],
                 "while the guest computed")
    if inside < HOGS * HOG_MS * 1e6 / 2:
        wrong.append(f"the vCPU waited only {inside / 1e6:.1f} ms: the hog did not share its pCPU")
    wrong += check_payers(figures["tasks"], truth["stalls"])
    held = sum(row["held_ns"] for row in figures["culprits"] if row["comm"] == "cpu-hog")
    if held < 0.8 * inside:
        wrong.append(f"the hog held the pCPU for {held / 1e6:.1f} ms only: {figures['culprits']}")
    steal = figures["steal"]
    if len(steal) != 1 or steal[0]["accounted_ns"] is not None or steal[0]["readings"] < 3:
        wrong.append(f"steal of a guest without a steal clock: {steal}")
    elif not inside * 0.8 <= steal[0]["measured_ns"] <= around * (1 + TOLERANCE):
        wrong.append(f"steal measured is {steal[0]['measured_ns'] / 1e6:.1f} ms")
    timer = [row for row in figures["irq"] if row["name"] == "local_timer"]
    if not timer or not timer[0]["rate"]:
        wrong.append(f"no timer interrupts: {figures['irq']}")
    if not figures["ticks"] or figures["ticks"][0]["interval_ns"] != 4000000:
        wrong.append(f"ticks of 250 Hz: {figures['ticks']}")
    return wrong


def check_payers(tasks, hogs):
    """Who was on the guest's CPU when the hog came pays for that wait; the guest's own account knows
    who that was, unless more than one task ran so long."""
    certain = {}
    for hog in hogs:
        may = check_quickstart.payers(hog)
        if len(may) == 1:
            certain[may[0]] = certain.get(may[0], 0) + hog["duration_ns"]
    if sum(certain.values()) < HOGS * HOG_MS * 1e6 / 2:
        return [f"the guest's account does not tell who was denied the CPU: {hogs}"]
    wrong = []
    for comm, least in certain.items():
        paid = sum(row["run_delay_ns"] for row in tasks if row["comm"] == comm)
        if paid < (1 - check_quickstart.SHARE_TOLERANCE) * least:
            wrong.append(f"{comm} pays {paid / 1e6:.1f} ms; by the guest's own account it was on the CPU "
                         f"while {least / 1e6:.1f} ms were denied")
    return wrong


def check_watch(builder, played):
    """The bill live, one line a second, until Ctrl-C: what differs."""
    played.guest.run("provoke compute 600000 >/dev/null 2>&1 </dev/null &")
    process = subprocess.Popen(
        [f"{builder.build}/host-collector/vcpuscope", "watch", "--pid", str(played.qemu_pid),
         "--channel", played.channel, "--format", "json", "-i", "1s", "tasks"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = [json.loads(process.stdout.readline()) for _ in range(WATCH_S)]
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
    lines += [json.loads(line) for line in rest.splitlines()]
    wrong = []
    lines = [line for line in lines if line["end_ns"]]  # the clocks may meet after the first
    if process.returncode or "incidents" not in said:
        wrong.append(f"watch ended with {process.returncode}: {said}")
    for before, after in zip(lines, lines[1:]):
        if after["begin_ns"] != before["end_ns"]:
            wrong.append(f"an interval ends at {before['end_ns']}, the next begins at {after['begin_ns']}")
    spans = [line["end_ns"] - line["begin_ns"] for line in lines]
    if not any(0.5e9 < span < 2e9 for span in spans):
        wrong.append(f"no interval is about a second: {spans}")
    computed = sum(row["believed_ns"] for line in lines for row in line["rows"]
                   if row["comm"] == "compute")
    if not 0.3 * sum(spans) < computed <= sum(spans) * 1.01:
        wrong.append(f"compute believed it ran {computed / 1e6:.0f} ms of {sum(spans) / 1e6:.0f}")
    return wrong


def once(builder, folder, args, say):
    with run_scene.direct(builder, folder, say, "tcg") as (played, _):
        figures = play(played, say)
        run_scene.recording_save(played, args.out)
        with open(f"{args.out}/figures.json", "w") as f:
            json.dump({"truth": played.truth, **figures}, f, indent=1)
        inside, around = played.truth["run_delay_ns"]
        say(f"/proc: {inside / 1e6:.1f} ms inside, {around / 1e6:.1f} around; the vCPU's run delay "
            f"{figures['vcpu'][0]['run_delay_ns'] / 1e6:.1f}, billed "
            f"{sum(row['run_delay_ns'] for row in figures['tasks']) / 1e6:.1f}, "
            f"worst culprit {figures['culprits'][0]['comm']}")
        wrong = check(figures, played.truth)
        say("live")
        return wrong + check_watch(builder, played)


if __name__ == "__main__":
    sys.exit(run_scene.test_main(__doc__, once))
