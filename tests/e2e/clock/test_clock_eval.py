#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares `vcpuscope clock eval` with an independent implementation of KVM's formulas in Python. Forward:
the values are equal. Backward: the host tick that it prints reads the value, and the tick before it does not.
Prints the seed of the random numbers. Then each command in docs/clocks.md must print what the page shows.
"""
import os
import random
import re
import subprocess
import sys

ROOT = os.path.abspath(f"{os.path.dirname(os.path.abspath(__file__))}/../../..")
BUILD = os.environ.get("VCPUSCOPE_BUILD") or f"{ROOT}/build"
CASES = 1000 if os.environ.get("VCPUSCOPE_TEST_FULL") == "1" else 150
WRAP = 1 << 64
SCALINGS = (None, ((1 << 48) * 5 // 6, 48), ((1 << 48) * 6 // 5, 48), ((1 << 32) * 25 // 26, 32),
            ((1 << 32) * 3, 32), (1 << 32, 32))
OFFSETS = (0, -81502304, -(1 << 63), (1 << 64) - 5)


def guest_tsc(host, offset, scaling):
    return ((host * scaling[0] >> scaling[1] if scaling else host) + offset) % WRAP


def kvmclock(guest, line):
    delta = guest - line["tsc_timestamp"]
    delta = delta << line["shift"] if line["shift"] >= 0 else delta >> -line["shift"]
    return line["system_time"] + (delta * line["mul"] >> 32)


def evaluate(offset, scaling, line, *what):
    command = [f"{BUILD}/host-collector/vcpuscope", "clock", "eval", "--tsc-offset", str(offset)]
    if scaling:
        command += ["--scaling", "%d/%d" % scaling]
    if line:
        command += ["--pvclock", ",".join(f"{k}={v}" for k, v in line.items())]
    command += map(str, what)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return command, {"error": done.stderr.strip()}
    return command, {k: int(v) for k, v in map(str.split, done.stdout.splitlines())}


def case(dice):
    """What is wrong with the answers to one random case."""
    scaling = dice.choice(SCALINGS)
    offset = dice.choice((*OFFSETS, dice.randrange(-(1 << 62), 1 << 62)))
    host = dice.choice((dice.randrange(1 << 20), dice.randrange(1 << 44), dice.randrange(1 << 50)))
    guest = guest_tsc(host, offset, scaling)
    ahead = dice.random() < 0.1  # the line may begin after this tick
    line = {"tsc_timestamp": min(WRAP - 1, guest + dice.randrange(1 << 20)) if ahead
            else max(0, guest - dice.randrange(1 << 40)),
            "system_time": dice.randrange(1 << 41, 1 << 50), "mul": dice.randrange(1 << 31, 1 << 32),
            "shift": dice.randrange(-4, 4), "flags": 1}
    value = kvmclock(guest, line)
    command, said = evaluate(offset, scaling, line, "--host-tsc", host)
    if (said.get("host_tsc"), said.get("guest_tsc"), said.get("kvmclock_ns")) != (host, guest, value):
        yield f"{command}: {said}, not guest_tsc {guest}, kvmclock_ns {value}"
    for end, step in (("first", -1), ("last", 1)):
        command, said = evaluate(offset, scaling, line, "--kvmclock", value, "--inverse", end)
        named = said.get("host_tsc")
        if named is None or kvmclock(guest_tsc(named, offset, scaling), line) != value:
            yield f"{command}: {said} does not read {value}"
        elif named + step >= 0 and kvmclock(guest_tsc(named + step, offset, scaling), line) == value:
            yield f"{command}: {said} is not the {end} to read {value}"


def examples():
    """(number of examples in docs/clocks.md, what is wrong with them)"""
    with open(f"{ROOT}/docs/clocks.md", encoding="utf-8") as f:
        found = re.findall(r"^```\n\$ ((?:[^\n]*\\\n)*[^\n]*\n)(.*?)^```$", f.read(), flags=re.M | re.S)
    wrong = []
    for command, shown in found:
        path = f"{BUILD}/host-collector:{os.environ['PATH']}"
        done = subprocess.run(command, shell=True, cwd=ROOT, env={**os.environ, "PATH": path},
                              capture_output=True, text=True)
        if done.stdout != shown:
            wrong.append(f"docs/clocks.md: {command}prints\n{done.stdout}{done.stderr}")
    return len(found), wrong


def main():
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    wrong = [text for _ in range(CASES) for text in case(dice)]
    shown, differ = examples()
    for text in wrong[:10] + differ:
        print("wrong:", text)
    print(f"seed {seed}: {CASES} cases, {len(wrong)} wrong answers; {shown} examples, {len(differ)} differ")
    return bool(wrong or differ) or not shown


if __name__ == "__main__":
    sys.exit(main())
