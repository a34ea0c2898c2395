#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Every program that is shipped is hardened, as its code shows: usage: test_hardening.py BUILD PROGRAM..

Of the file: position-independent (the agent, which is static, too), relocations read-only and bound at
the start, no stack that can be executed, no memory both writable and executable. Of the code: every
function of ours that can be called through a pointer begins with endbr64; our objects use the stack
protector, the checking variants of libc's functions, and probe large stack frames page by page."""
import json
import pathlib
import platform
import re
import subprocess
import sys

ENDBR64 = "endbr64"
# With _FORTIFY_SOURCE=2 no call of these is left; of snprintf() those that cannot overflow are.
FORTIFIED = {"printf", "fprintf", "vprintf", "vfprintf", "dprintf"}


def run(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def file_faults(program):
    header = run("readelf", "-hW", program)
    segments = run("readelf", "-lW", program)
    dynamic = run("readelf", "-dW", program)
    static = "INTERP" not in segments
    faults = []
    if not re.search(r"Type:\s+DYN", header):
        faults.append("is not position-independent")
    if not re.search(r"FLAGS_1.*\bPIE\b", dynamic):
        faults.append("is not linked as a position-independent program")
    if not re.search(r"FLAGS_1.*\bNOW\b", dynamic):
        faults.append("binds lazily")
    if "GNU_RELRO" not in segments:
        faults.append("its relocations stay writable")
    stack = re.search(r"GNU_STACK\s.*?\s([RWE ]{3})\s+0x", segments)
    if not stack or "E" in stack.group(1):
        faults.append("its stack can be executed")
    for access in re.findall(r"^\s*LOAD\s.*?\s([RWE ]{3})\s+0x", segments, re.M):
        if "W" in access and "E" in access:
            faults.append("a segment is both writable and executable")
    if program.name == "vcpuscope-agent" and not static:
        print(f"{program.name}: not linked statically here")
    return faults


def objects(build, program):
    """Our object files that can be in the program: its own, and those of our libraries."""
    rooms = {"vcpuscope-agent": ("proto", "clock", "bpf", "isolation", "guest-agent"),
             "vcpuscope": ("proto", "clock", "bpf", "isolation", "host-collector")}.get(program.name, ())
    folders = [rf"[\w-]+/CMakeFiles/{program.name}\.dir/"]
    folders += [rf"{room}/CMakeFiles/vs_\w+\.dir/" for room in rooms]
    found = []
    # Not what lies there from an earlier build.
    for entry in json.loads((build / "compile_commands.json").read_text()):
        output = re.search(r" -o (\S+\.o)\b", entry["command"])
        if output and any(re.match(folder, output.group(1)) for folder in folders):
            found.append(build / output.group(1))
    assert found, f"no objects of {program.name}"
    return found


def symbols(files):
    """(global functions defined in the object files, what they need of others)."""
    defined, needed = set(), set()
    for line in run("nm", "-g", *files).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] == "T":
            defined.add(fields[2])
        elif len(fields) == 2 and fields[0] == "U":
            needed.add(fields[1])
    return defined, needed


def code_faults(build, program):
    defined, needed = symbols(objects(build, program))
    code = run("objdump", "-d", "--no-show-raw-insn", program)
    starts = {}  # a static function may have the name of one of ours
    for name, first in re.findall(r"^[0-9a-f]+ <([^>]+)>:\n\s+[0-9a-f]+:\s+(\S+)", code, re.M):
        starts.setdefault(name, set()).add(first)
    ours = defined & set(starts)
    bare = sorted(name for name in ours if ENDBR64 not in starts[name])
    faults = []
    if "main" not in ours:
        faults.append("main is not among its symbols")
    if bare:
        faults.append(f"{len(bare)} of {len(ours)} functions begin without {ENDBR64}: {bare[:5]}")
    if "__stack_chk_fail" not in needed:
        faults.append("no function checks its stack")
    if FORTIFIED & needed:
        faults.append(f"calls without a check: {sorted(FORTIFIED & needed)}")
    if program.name in ("vcpuscope", "vcpuscope-agent") and not re.search(r"or[lq]\s+\$0x0,\(%rsp\)", code):
        faults.append("large stack frames are not probed")
    print(f"{program.name}: {len(ours)} functions of ours")
    return faults


def main():
    build, programs = pathlib.Path(sys.argv[1]), [pathlib.Path(p) for p in sys.argv[2:]]
    faults = []
    for program in programs:
        found = file_faults(program)
        if platform.machine() == "x86_64":
            found += code_faults(build, program)
        faults += [f"{program.name}: {fault}" for fault in found]
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
