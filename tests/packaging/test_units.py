#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The services' sandboxes: tight by systemd's own measure, and not so tight that a part stops working
without a word: usage: test_units.py FOLDER."""
import pathlib
import re
import shutil
import subprocess
import sys

# Most exposure by `systemd-analyze security`, in tenths.
LIMITS = {"vcpuscope.service": 40, "vcpuscope-agent.service": 50}
# Why: helpers become nobody (SETUID, SETGID) and must be ended (KILL); stacks of any process are named
# from what it has mapped (SYS_PTRACE, SYS_ADMIN); kernel addresses are shown (SYSLOG).
CAPABILITIES = {"CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SYS_PTRACE", "CAP_SYS_ADMIN", "CAP_SYSLOG"}
CALLS = {"@system-service", "bpf", "perf_event_open", "seccomp"}


def settings(path):
    found = {}
    for line in path.read_text().splitlines():
        match = re.match(r"(\w+)=(.*)", line)
        if match:
            found.setdefault(match.group(1), []).extend(match.group(2).split() or [""])
    return found


def faults(path):
    s = settings(path)
    wrong = []
    if missing := CAPABILITIES - set(s.get("CapabilityBoundingSet", [])):
        wrong.append(f"lacks {sorted(missing)}")
    if missing := CALLS - set(s.get("SystemCallFilter", [])):
        wrong.append(f"forbids {sorted(missing)}")
    if s.get("ProtectKernelTunables", ["no"]) != ["no"]:
        wrong.append("ProtectKernelTunables= hides /proc/kallsyms")
    if s.get("PrivateDevices") == ["yes"] and "/dev/kmsg" not in s.get("BindReadOnlyPaths", []):
        wrong.append("PrivateDevices= hides /dev/kmsg")
    if s.get("NoNewPrivileges") != ["yes"]:
        wrong.append("processes may gain privileges")
    if shutil.which("systemd-analyze"):
        done = subprocess.run(["systemd-analyze", "security", "--no-pager", "--offline=yes",
                               f"--threshold={LIMITS[path.name]}", path], capture_output=True, text=True)
        print(done.stdout.strip().splitlines()[-1] if done.stdout else done.stderr)
        if done.returncode:
            wrong.append(f"more than {LIMITS[path.name] / 10} by systemd-analyze security")
    else:
        print("its exposure was not measured: no systemd-analyze here")
    return wrong


def main():
    wrong = [f"{name}: {fault}" for name in LIMITS for fault in faults(pathlib.Path(sys.argv[1]) / name)]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
