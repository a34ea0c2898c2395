#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests a hostile guest beside a well-behaved one at one daemon. Every attack has exactly its expected
effect. The stream of the other VM is byte for byte the same as without the attacker. The daemon stays within
its limits of memory and CPU, and its recordings can be read.

Every third case by default; all cases with --full or VCPUSCOPE_TEST_FULL=1; selected cases with --only REGEX.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
from daemon_rig import BUILD, Daemon, FakeVm, PROGRAM, skip_unless_possible, until  # noqa: E402

HOSTILE = BUILD / "tests/e2e/hostile/hostile"
ACCEPTED, DAMAGED, REFUSED, REPLAYED, LOST, NOT_REFUSED = 1, 2, 4, 8, 16, 32
HELLO, BATCH, HEARTBEAT = 1, 2, 3
RSS_GROWTH_MAX = 96 << 20  # the live timeline may hold 32 MiB of events that wait, the recorder 8
# Of the log: what one VM may cause, and as much again for what the daemon says of itself.
LINES_PER_10_S, LINES_MORE = 2 * 21, 40
ANSWER_MAX_S = 5  # on a machine that does other things too
REPORT_RSS_MAX = 1 << 30
# What a person or a terminal gets to see must not steer it.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


# These were found from outside.
ALWAYS = ("2000 sessions", "3000 hellos", "20000 answers to no configuration", "20000 echo replies nobody asked for")


class Control:
    """A connection that stays open: ctl's start would cost more than the question."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rw")
        self.slowest = 0

    def ask(self, **request):
        begin = time.monotonic()
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()
        reply = json.loads(self.file.readline())
        self.slowest = max(self.slowest, time.monotonic() - begin)
        assert reply["ok"], reply
        return reply

    def vm(self, name):
        return next(v for v in self.ask(command="list")["vms"] if v["vm"] == name)

    def close(self):
        self.file.close()
        self.socket.close()


def frames_of_guest(path):
    """The frames of source 1 in a recording, except what depends on time (echo replies)."""
    data = pathlib.Path(path).read_bytes()
    frames, at = [], 32
    while at + 24 <= len(data):
        magic, source, _, n, _ = struct.unpack_from("<4sIQII", data, at)
        assert magic == b"VCSE", f"{path}: no entry at {at}"
        frame = data[at + 24:at + 24 + n]
        if source == 1 and frame[5] in (HELLO, BATCH, HEARTBEAT):
            frames.append(frame)
        at += 24 + n
    return frames


def counts(link):
    return {ACCEPTED: link["frames"], DAMAGED: link["damaged_frames"] + link["skipped_bytes"],
            REFUSED: link["refused_frames"], REPLAYED: link["replayed_frames"],
            LOST: link["lost_frames"]}


def play(control, path, number):
    """One attack: what it changed in the counts of its channel."""
    before = control.vm("attacker")["link"]
    subprocess.run([HOSTILE, "play", path, str(number)], check=True, timeout=120)
    until("its connections are over",
          lambda: (link := control.vm("attacker")["link"])["connections"] > before["connections"]
          and not link["decoder_pid"], 60)
    after = control.vm("attacker")["link"]
    was, now = counts(before), counts(after)
    return {k: now[k] - was[k] for k in was}, after["decoder_deaths"] - before["decoder_deaths"]


def judge(family, name, expect, grew, deaths):
    """Why this is not as it should be, or None."""
    if deaths:
        return f"{deaths} decoders died"
    if expect and not any(grew[bit] for bit in grew if expect & bit):
        return f"none of the expected counts grew: {grew}"
    if expect & NOT_REFUSED and grew[REFUSED]:
        return f"something was refused: {grew}"
    if not expect and any(grew.values()):
        return f"something was counted: {grew}"
    # A spoilt HELLO refuses the session; after everything else the channel must still work.
    if family != "flow" and not name.startswith("hello: ") and grew[ACCEPTED] < 2:
        return f"a good frame after it was not understood: {grew}"
    return None


def vm_section(name, pid, folder, more=""):
    return (f"[vm {name}]\npid = {pid}\nchannel = listen:unix:{folder}/{name}\nrecord = yes\n"
            f"flight_size = 4M\n{more}\n")


def undisturbed(n):
    """What the victim's recording holds without an attacker, after n batches."""
    vm = FakeVm("victim")
    d = Daemon()
    d.configure(vm_section("victim", vm.pid, d.folder))
    try:
        d.start()
        until("it records", lambda: d.vm("victim").get("file_bytes", 0) > 1000)
        path = d.vm("victim")["file"]
        subprocess.run([HOSTILE, "victim", d.folder / "victim", str(n), "0"], check=True)
        until("it is over", lambda: not d.vm("victim")["link"]["decoder_pid"])
        d.ask("record", "victim", "stop")
        return frames_of_guest(path)
    finally:
        d.clean()
        vm.end()


def cases_chosen(options):
    lines = subprocess.run([HOSTILE, "list"], check=True, capture_output=True, text=True).stdout
    cases = []
    for line in lines.splitlines():
        number, family, name, expect = line.split("\t")
        cases.append((int(number), family, name, int(expect)))
    if options.only:
        return [c for c in cases if re.search(options.only, f"{c[1]}: {c[2]}")]
    if options.full:
        return cases
    return [c for i, c in enumerate(cases) if i % 3 == 0 or c[2] in ALWAYS]


def looks(path):
    """Recordings of the attacker, as a person would look at them."""
    problems = []
    for words in ([], ["tasks"], ["--format", "json"]):
        done = subprocess.run([PROGRAM, "report", path, *words], capture_output=True, timeout=120)
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        what = " ".join(["report", *words])
        if done.returncode not in (0, 5):
            problems.append(f"{what}: exit code {done.returncode}: {text[-300:]}")
        if bad := UNSAFE.search(text):
            problems.append(f"{what}: shows {bad.group()!r} at {text[max(0, bad.start() - 40):][:80]!r}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"report: at most {peak >> 20} MiB")
    if peak > REPORT_RSS_MAX:
        problems.append(f"a report took {peak >> 20} MiB")
    return problems


def attack(options, cases):
    """Plays the cases. Problems, and the victim's recorded frames."""
    attacker, bystander = FakeVm("attacker"), FakeVm("victim", 4)
    d = Daemon(settings="outbox = no")  # a stall of a busy machine would open its file
    d.configure(vm_section("attacker", attacker.pid, d.folder, "channel_rate = 4M") +
                vm_section("victim", bystander.pid, d.folder))
    problems, victim, control = [], None, None
    try:
        d.start()
        control = Control(d.control)
        until("both record", lambda: all(v.get("file_bytes", 0) > 1000
                                         for v in control.ask(command="list")["vms"]))
        paths = {name: control.vm(name)["file"] for name in ("attacker", "victim")}
        victim = subprocess.Popen([HOSTILE, "victim", d.folder / "victim", "0", "10"],
                                  stdin=subprocess.PIPE)
        until("the victim talks", lambda: control.vm("victim")["channel"] == "ok")
        control.slowest = 0
        before, begin = control.ask(command="status"), time.monotonic()
        for number, family, name, expect in cases:
            case_begin = time.monotonic()
            why = judge(family, name, expect, *play(control, d.folder / "attacker", number))
            print(f"{number:3} {family}: {name}: {why or 'as it should be'} "
                  f"({time.monotonic() - case_begin:.2f} s)", flush=True)
            if why:
                problems.append(f"{family}: {name}: {why}")
        after, seconds = control.ask(command="status"), time.monotonic() - begin
        growth = after["rss_bytes"] - before["rss_bytes"]
        cpu = (after["cpu_ns"] - before["cpu_ns"]) / 1e9 / seconds
        print(f"daemon: {seconds:.0f} s, CPU {cpu * 100:.1f} %, memory {growth / (1 << 20):+.1f} MiB, "
              f"descriptors {after['descriptors'] - before['descriptors']:+}, slowest answer "
              f"{control.slowest * 1000:.0f} ms, loop late by {after['loop_lag_ms']} ms")
        if growth > RSS_GROWTH_MAX:
            problems.append(f"the daemon grew by {growth >> 20} MiB")
        # For a second or two, the daemon may hold a process whose stacks it names.
        until("the daemon has the descriptors of the begin",
              lambda: control.ask(command="status")["descriptors"] <= before["descriptors"], 10)
        if control.slowest > ANSWER_MAX_S:
            problems.append(f"the daemon answered after {control.slowest:.1f} s")
        victim.stdin.close()
        assert not victim.wait(60), "the victim could not send"
        until("all of it has arrived", lambda: not control.vm("victim")["link"]["decoder_pid"])
        if deaths := control.vm("victim")["link"]["decoder_deaths"]:
            problems.append(f"the victim's decoder died {deaths} times")
        for name in paths:
            control.ask(command="record", vm=name, what="stop")
        frames = frames_of_guest(paths["victim"])
        lines = len(d.log.read_text(errors="replace").splitlines())
        print(f"the daemon's log: {lines} lines in {seconds:.0f} s")
        if lines > LINES_PER_10_S * (1 + seconds / 10) + LINES_MORE:
            problems.append(f"{lines} lines in the daemon's log, in {seconds:.0f} s")
        if bad := UNSAFE.search(d.log.read_text(errors="replace")):
            problems.append(f"the daemon's log holds {bad.group()!r}")
        problems += looks(paths["attacker"])
        return problems, frames
    finally:
        if control:
            control.close()
        if victim and victim.poll() is None:
            victim.kill()
            victim.wait()
        if options.keep:
            d.stop()
            print(f"kept {d.folder}")
        else:
            d.clean()
        attacker.end()
        bystander.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true",
                        default=os.environ.get("VCPUSCOPE_TEST_FULL") == "1")
    parser.add_argument("--only", metavar="REGEX")
    parser.add_argument("--keep", action="store_true", help="leave the recordings and the log")
    options = parser.parse_args()
    skip_unless_possible()
    cases = cases_chosen(options)
    problems, frames = attack(options, cases)
    batches = sum(f[5] == BATCH for f in frames)
    same = undisturbed(batches)
    print(f"{len(cases)} cases; the victim's {len(frames)} frames ({batches} batches) are "
          f"{'what they are' if same == frames else 'NOT what they are'} without an attacker")
    if same != frames:
        problems.append("the other VM's stream was touched")
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
