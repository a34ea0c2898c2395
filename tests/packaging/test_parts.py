#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Every optional part can be left out: usage: test_parts.py SOURCE [PART...|all].

Configures with -DVCPUSCOPE_PART=OFF for all parts at once and, with VCPUSCOPE_TEST_FULL=1, for each one alone;
builds; and runs the result. The end of the configuration names the part, its cost and the option. The version
and the report of a recording are as always. Each command that needs the part is refused in one line that names
the option, and the commands of the parts that are there are not. The build is a folder of its own, without
ccache and, in the short run, without optimisation."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

DATA = "tests/data/sim-lock.vcs"
EXPECTED = "tests/golden/output/sim-lock/report.txt"
# What install.md says is lost, in the words of the configuration.
COSTS = {
    "LIBVIRT": "VMs are not found through libvirt",
    "TRACECMD": "import reads trace-cmd's text, not its trace.dat files",
    "METRICS": "the daemon serves no metrics and no page by HTTP",
    "LIBPERF": "no capture through perf",
    "SQLITE": "no `query`, no `export --to sqlite`",
}
# A process that looks like a VM without KVM: it and its thread have the names that QEMU gives. Ends with its input.
STAND_IN = '''
import ctypes, sys, threading, time
def named(name):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)  # PR_SET_NAME
named(b"qemu-system-x86")
threading.Thread(target=lambda: (named(b"CPU 0/TCG"), print(flush=True), time.sleep(60)), daemon=True).start()
sys.stdin.read()
'''
FULL = os.environ.get("VCPUSCOPE_TEST_FULL", "0") == "1"
DAEMON_S = 2  # one that is not refused runs on


def run(words, **options):
    return subprocess.run(words, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)


def environment():
    """No cache of compilers, nothing of this user's."""
    env = {name: value for name, value in os.environ.items()
           if not re.match(r"CC?C?ACHE|CMAKE_|CFLAGS|CPPFLAGS|LDFLAGS", name)}
    return {**env, "CCACHE_DISABLE": "1", "LC_ALL": "C", "TZ": "UTC"}


class Built:
    """One variant: configured and built in `folder`/build."""

    def __init__(self, source, folder, off):
        self.source, self.folder, self.off = pathlib.Path(source), pathlib.Path(folder), off
        self.build = self.folder / "build"
        self.program = self.build / "host-collector/vcpuscope"
        self.faults = []
        self.said = ""

    def fault(self, text):
        self.faults.append(f"without {', '.join(self.off)}: {text}")

    def make(self):
        words = ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DVCPUSCOPE_TESTS=OFF",
                 "-DVCPUSCOPE_WERROR=ON", f"-DCMAKE_BUILD_TYPE={'RelWithDebInfo' if FULL else 'Debug'}"]
        done = run([*words, *(f"-DVCPUSCOPE_{part}=OFF" for part in self.off)], env=environment())
        if done.returncode:
            raise RuntimeError(f"cmake: {done.stdout[-1000:]}{done.stderr[-2000:]}")
        self.said = done.stdout
        done = run(["cmake", "--build", self.build, *([] if FULL else ["--target", "vcpuscope", "vcpuscope-agent"])],
                   env=environment())
        if done.returncode:
            raise RuntimeError(f"without {', '.join(self.off)} it does not build: {done.stdout[-4000:]}")

    def configuration(self):
        """What it says at its end, of the parts that are off."""
        end = self.said.partition("Left out of this build:")[2]
        for part in self.off:
            line = next((line for line in end.splitlines() if line.strip().startswith(f"{part}: ")), "")
            if COSTS[part] not in line or f"-DVCPUSCOPE_{part}=OFF" not in line:
                self.fault(f"the end of the configuration says of {part}: {line!r}")

    def has(self, part):
        """Whether the part was built: AUTO leaves out what this machine has no library for."""
        return part not in self.off and not re.search(rf"^  {part}: ", self.said, re.M)

    def works(self):
        for program in (self.program, self.build / "guest-agent/vcpuscope-agent"):
            done = run([program, "--version"])
            if done.returncode or not re.search(r"\d+\.\d+\.\d+", done.stdout):
                self.fault(f"{program.name} --version: {done.returncode} {done.stdout!r} {done.stderr!r}")
        done = run([self.program, "report", pathlib.Path(DATA).name], env=environment(),
                   cwd=(self.source / DATA).parent)
        if done.stdout != (self.source / EXPECTED).read_text(encoding="utf-8"):
            self.fault(f"report of {DATA}: {done.stdout[:2000]!r} {done.stderr!r}")

    def answer(self, *words):
        """(exit code or None if it still runs, what it prints to standard error)"""
        process = subprocess.Popen([self.program, *map(str, words)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + DAEMON_S
        while words[0] == "daemon" and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        if words[0] == "daemon" and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            return None, process.communicate()[1]
        said = process.communicate()[1]
        return process.returncode, said

    def commands(self, vm):
        """part -> command lines that need it; vm: a process that looks like one"""
        recording = self.source / DATA
        (self.folder / "trace.dat").write_bytes(b"\x17\x08\x44tracing6\0" + bytes(64))
        for key in ("metrics", "page"):
            (self.folder / f"{key}.conf").write_text(
                f"[daemon]\ncontrol = {self.folder}/{key}.control\ndirectory = {self.folder}/recordings\n"
                f"libvirt = no\n{key} = listen:unix:{self.folder}/{key}.http\n", encoding="utf-8")
        return {
            "LIBVIRT": [("attach", "web1", "--connect", "test:///default"), ("detach", "web1")],
            "TRACECMD": [("import", "--host", "trace.dat", "-o", "imported.vcs")],
            "METRICS": [("daemon", "--config", "metrics.conf"), ("daemon", "--config", "page.conf")],
            "LIBPERF": [("record", "--backend", "perf", "--no-guest", "--pid", vm, "--for", "100ms",
                         "-o", "perf.vcs")] if os.geteuid() == 0 else [],
            "SQLITE": [("query", recording, "SELECT 1"), ("query", recording),
                       ("export", recording, "--to", "sqlite", "-o", "run.db")],
        }

    def refusals(self):
        with subprocess.Popen([sys.executable, "-c", STAND_IN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as vm:
            vm.stdout.readline()
            self.refusals_with(vm.pid)

    def refusals_with(self, vm):
        for part, lines in self.commands(vm).items():
            for words in lines:
                if part == "LIBVIRT" and self.has(part):
                    continue  # it would look for libvirt
                code, said = self.answer(*words)
                command = " ".join(map(str, words[:3]))
                named = f"-DVCPUSCOPE_{part}=ON" in said
                if not self.has(part) and (not code or not named or said.count("\n") != 1):
                    self.fault(f"{command}: exit code {code}: {said!r}")
                elif self.has(part) and named:
                    self.fault(f"{command}: {part} is there, and it says {said!r}")
        there = (self.build / "host-collector/vcpuscope-libvirt").exists()
        if (there and not self.has("LIBVIRT")) or (FULL and not there and self.has("LIBVIRT")):
            self.fault(f"vcpuscope-libvirt is {'' if there else 'not '}built")


def check(source, off):
    began, used = time.monotonic(), os.times()
    with tempfile.TemporaryDirectory(prefix="vcpuscope-parts.") as folder:
        built = Built(source, folder, off)
        built.make()
        took, after = time.monotonic() - began, os.times()
        cpu = after.children_user + after.children_system - used.children_user - used.children_system
        built.configuration()
        built.works()
        built.refusals()
    print(f"without {', '.join(off)}: built in {took:.0f} s ({cpu:.0f} s of CPU), {len(built.faults)} faults", flush=True)
    return built.faults


def main():
    source, chosen = sys.argv[1], sys.argv[2:]
    every = tuple(COSTS)
    variants = [every]
    if chosen:
        variants = [every if name == "all" else (name,) for name in chosen]
    elif FULL:
        variants += [(part,) for part in every]
    faults = [fault for off in variants for fault in check(source, off)]
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
