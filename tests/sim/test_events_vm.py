#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""`vcpuscope events --vm` lists the tracepoints of this kernel, with the fields of tracefs, for a VM that runs (a
process under QEMU's name). A VM that does not run and options that contradict each other are errors of one line."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOTS = "/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"
NAME = f"events-vm-{os.getpid()}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    program = os.path.abspath(p.parse_args().vcpuscope)
    wrong = []

    def run(*words):
        return subprocess.run([program, "events", *words], capture_output=True, text=True, check=False, timeout=120)

    def expect(what, right):
        if not right:
            wrong.append(what)

    for words, code, says in ((["--vm", NAME], 1, "0 VMs here have this name"),
                              (["--vm", NAME, "-e", "kvm:kvm_exit"], 2, "--vm is of a running VM")):
        done = run(*words)
        expect(f"{words}: {done}", done.returncode == code and says in done.stderr and not done.stdout)
    root = next((r for r in ROOTS if os.path.exists(f"{r}/sched/sched_switch/format")), None)
    if os.getuid() or not root:
        print("needs root and tracefs")
        return 1 if wrong else 77
    with tempfile.TemporaryDirectory(prefix="vcpuscope-events.") as folder:
        vmm = f"{folder}/qemu-system-x86_64"
        shutil.copy(os.path.realpath("/bin/sh"), vmm)
        with subprocess.Popen([vmm, "-c", "read wait", "-name", f"guest={NAME}"], stdin=subprocess.PIPE) as vm:
            try:
                time.sleep(0.5)
                done = run("--vm", NAME, "--format", "json")
                expect(f"exit {done.returncode}: {done.stderr}", done.returncode == 0)
                expect(f"says nothing of the guest: {done.stderr}", "policy" in done.stderr and
                       done.stderr.count("\n") == 1)
                rows = json.loads(done.stdout or "{}").get("rows", [])
                host = {r["event"]: r["fields"].replace("(hex)", "").split() for r in rows if r["sides"] == "host"}
                guest = {r["event"] for r in rows if r["sides"] == "guest"}
                expect("events of the guest", "sched:sched_switch" in guest)
                with open(f"{root}/sched/sched_switch/format", encoding="utf-8") as f:
                    fields = re.findall(r"field:.*?(\w+)(?:\[\d+\])?;", f.read())
                expect(f"fields: {host.get('sched:sched_switch')}, not {fields}", host.get("sched:sched_switch") ==
                       [f for f in fields if not f.startswith("common_")])
                systems = set(os.listdir(root)) & {"sched", "irq", "block", "kvm", "timer"}
                for system in systems:
                    theirs = {f"{system}:{e}" for e in os.listdir(f"{root}/{system}")
                              if os.path.isdir(f"{root}/{system}/{e}")}
                    expect(f"{system}: {theirs ^ {e for e in host if e.startswith(system + ':')}}", theirs ==
                           {e for e in host if e.startswith(system + ":")})
                some = run("--vm", NAME, "sched:sched_sw*", "--format", "json")
                rows = json.loads(some.stdout or "{}").get("rows", [])
                expect(f"a pattern: {rows}", {r["event"].startswith("sched:sched_sw") for r in rows} == {True})
                print(f"{len(host)} events of the host, {len(guest)} of the guest")
            finally:
                vm.kill()
    for w in wrong:
        print(w)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
