#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Every program that is shipped is hardened, as its code shows: usage: test_hardening.py BUILD PROGRAM..

Of the file: position-independent (the agent, which is static, too), relocations read-only and bound at
the start, no stack that can be executed, no memory both writable and executable. Of the code: every
function of ours whose address the program takes, and without link-time optimisation every global one,
begins with endbr64; our functions check their stack, call the checking variants of libc's functions, and
probe large stack frames page by page."""
import collections
import json
import pathlib
import platform
import re
import subprocess
import sys

ENDBR64 = "endbr64"
# With _FORTIFY_SOURCE=2 no call of these is left; of snprintf() those that cannot overflow are.
FORTIFIED = {"printf", "fprintf", "vprintf", "vfprintf", "dprintf", "_IO_printf", "_IO_fprintf", "_IO_vfprintf"}


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
    """Our object files that can be in the program (its own, and those of our libraries), and whether they
    were compiled for link-time optimisation."""
    rooms = {"vcpuscope-agent": ("proto", "clock", "bpf", "isolation", "guest-agent"),
             "vcpuscope-agent-tls": ("proto", "clock"), "vcpuscope-hook": ("proto",),
             "vcpuscope-simulate": ("proto", "bpf", "host-collector"),
             "vcpuscope": ("proto", "clock", "bpf", "isolation", "host-collector")}.get(program.name, ())
    folders = [rf"[\w-]+/CMakeFiles/{program.name}\.dir/"]
    folders += [rf"{room}/CMakeFiles/vs_\w+\.dir/" for room in rooms]
    found, lto = [], False
    # Not what lies there from an earlier build.
    for entry in json.loads((build / "compile_commands.json").read_text()):
        output = re.search(r" -o (\S+\.o)\b", entry["command"])
        if output and any(re.match(folder, output.group(1)) for folder in folders):
            found.append(build / output.group(1))
            lto |= " -flto" in entry["command"]
    assert found, f"no objects of {program.name}"
    return found, lto


def functions(files):
    """Names of the functions that the object files define: (global ones, static ones)."""
    names = {"T": set(), "t": set()}
    # That of gcc reads objects for link-time optimisation as well.
    for line in run("gcc-nm", *files).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in names:
            names[fields[1]].add(fields[2])
    return names["T"], names["t"]


def foreign_functions(build):
    """Names of functions in a dynamic program that are not ours: of the C runtime, and of libperf."""
    archives = list((build / "libperf/lib").glob("*.a"))
    names = {"_start", "_init", "_fini", "_dl_relocate_static_pie", "deregister_tm_clones", "register_tm_clones",
             "__do_global_dtors_aux", "frame_dummy"}
    if archives:
        names |= set.union(*functions(archives))
    return names


def plain(name):
    """Without what the compiler appends to names of parts and copies."""
    return name.split(".")[0]


class Code:
    """The program's functions: by address their name, first instruction, calls and taken addresses."""

    def __init__(self, program):
        self.names, self.first, self.calls = {}, {}, collections.defaultdict(set)
        self.taken, self.probes = set(), False
        here = None
        for line in run("objdump", "-d", "--no-show-raw-insn", program).splitlines():
            start = re.match(r"([0-9a-f]+) <([^>]+)>:", line)
            if start:
                here = int(start[1], 16)
                self.names[here] = start[2]
                continue
            code = re.match(r"\s+([0-9a-f]+):\s+(.+)", line)
            if not code or here is None:
                continue
            if int(code[1], 16) == here:
                self.first[here] = code[2].split()[0]
            self.read(here, code[2])
        for line in run("readelf", "-rW", program).splitlines():
            fields = line.split()
            if len(fields) == 4 and fields[2] == "R_X86_64_RELATIVE":
                self.taken.add(int(fields[3], 16))

    def read(self, here, code):
        called = re.match(r"(?:call|jmp)\S*\s.*<([^>@+]+)(?:@[^>]*)?>", code)
        taken = re.match(r"lea\s.*\(%rip\).*#\s*([0-9a-f]+)", code)
        if called:
            self.calls[here].add(called[1])
        elif taken:
            self.taken.add(int(taken[1], 16))
        elif re.match(r"or[lq]\s+\$0x0,(0x[0-9a-f]+)?\(%r", code):
            self.probes = True

    def of(self, names):
        """Addresses of the functions with these names, but for those whose name another one has, too: in a
        static program that one may be libc's."""
        times = collections.Counter(self.names.values())
        return [a for a, name in self.names.items() if plain(name) in names and times[name] == 1]


def code_faults(build, program):
    files, lto = objects(build, program)
    shared, static = functions(files)
    code = Code(program)
    names = {plain(name) for name in shared | static}
    if lto and "INTERP" in run("readelf", "-lW", program):
        # Objects for link-time optimisation do not list their static functions.
        names |= {plain(name) for name in code.names.values() if "@" not in name} - foreign_functions(build)
    ours = code.of(names)
    callable_ones = {a for a in ours if a in code.taken}
    if not lto:
        callable_ones |= {a for a in ours if code.names[a] in shared - static}
    bare = sorted(code.names[a] for a in callable_ones if code.first.get(a) != ENDBR64)
    called = set().union(*(code.calls[a] for a in ours))
    faults = []
    if "main" not in {code.names[a] for a in ours}:
        faults.append("main is not among its symbols")
    if bare:
        faults.append(f"{len(bare)} of {len(callable_ones)} functions begin without {ENDBR64}: {bare[:5]}")
    checked = sum(any(plain(name).startswith("__stack_chk_fail") for name in code.calls[a]) for a in ours)
    if not checked:
        faults.append("no function checks its stack")
    if FORTIFIED & called:
        faults.append(f"calls without a check: {sorted(FORTIFIED & called)}")
    if not any(re.match(r"__\w+_chk$", name) for name in called - {"__stack_chk_fail"}) and program.name in (
            "vcpuscope", "vcpuscope-agent"):
        faults.append("calls no checking variant of libc's functions")
    if program.name in ("vcpuscope", "vcpuscope-agent") and not code.probes:
        faults.append("large stack frames are not probed")
    print(f"{program.name}: {len(ours)} functions of ours, {len(callable_ones)} can be called through a pointer, "
          f"{checked} check their stack{', link-time optimisation' if lto else ''}")
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
