#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Both doctors on a real kernel where something is missing: BTF or tracefs is hidden in a mount namespace, or a
capability is dropped. Each says what is missing, what is lost without it, and which backend really attaches.
Lockdown cannot be taken back on a running machine: tests/unit/test_kernel_support.c simulates it.

Needs root, BTF, tracefs, and a build with perf.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

# (name, row that says no, shell commands before, capabilities dropped, BPF attaches, perf attaches, words)
CASES = (
    ("all", None, "true", "", True, True, ()),
    ("no BTF", "btf", "mount -t tmpfs none /sys/kernel/btf", "", False, True,
     ("BPF cannot capture; perf can", "CONFIG_DEBUG_INFO_BTF")),
    ("no tracefs", "tracefs", "mount -t tmpfs none /sys/kernel/tracing; mount -t tmpfs none /sys/kernel/debug", "",
     True, False, ("perf cannot capture", "mount -t tracefs")),
    ("no CAP_PERFMON", "rights", "true", "cap_38,-cap_21", False, False,
     ("missing: CAP_PERFMON", "neither BPF nor perf can capture", "BPF is not permitted: run as root")),
    ("no CAP_BPF", "rights", "true", "cap_39,-cap_21", False, None, ("missing: CAP_BPF", "BPF cannot capture")),
)


def said(case, program, *words):
    """What `program` says in the case, and its exit code."""
    _, _, before, dropped, *_ = case
    drop = ["setpriv", f"--bounding-set=-{dropped}"] if dropped else []
    done = subprocess.run(["unshare", "-m", "sh", "-c", f'{{ {before}; }} && exec "$@"', "sh", *drop, program, *words],
                          capture_output=True, text=True, timeout=120, check=False)
    return done.stdout, done.returncode


def agent_check(case, agent):
    _, row, _, _, bpf, perf, words = case
    text, code = said(case, agent, "--doctor")
    rows = {line[:13].strip(): line[14:].split()[0] for line in text.splitlines() if line[:1] not in ("", " ")
            and len(line) > 14}
    wrong = [f"no {word!r}" for word in words if word not in text]
    wrong += [f"row {name}: {answer}" for name, answer in rows.items()
              if name in ("rights", "btf", "tracefs") and (answer == "no") != (name == row)]
    for name, right in (("by BPF", bpf), ("by perf", perf)):
        if right is not None and rows.get(name) != ("yes" if right else "no"):
            wrong.append(f"{name}: {rows.get(name)}")
    if code != (0 if "yes" in (rows.get("by BPF"), rows.get("by perf")) else 4):
        wrong.append(f"exit code {code}")
    if "please report it" in text:
        wrong.append("what the machine lacks is called a fault of vcpuscope")
    return wrong, text


def host_check(case, vcpuscope):
    _, row, _, _, bpf, perf, _ = case
    text, code = said(case, vcpuscope, "doctor", "--format", "json")
    checks = {check["name"]: check for check in json.loads(text)["checks"]}
    wrong = [f"row {name}" for name in ("rights", "btf", "tracefs") if checks[name]["ok"] != (name != row)]
    wrong += [f"{name} does not say what is lost, or what to do" for name in ("rights", "btf", "tracefs")
              if not checks[name]["ok"] and not (checks[name]["without"] and checks[name]["remedy"])]
    capture = checks["host capture"]
    if (bpf or perf) and not (capture["ok"] and capture["detail"].startswith("BPF" if bpf else "perf")):
        wrong.append(f"host capture: {capture['detail']}")
    if not bpf and perf is False and (capture["ok"] or "please report it" in capture["detail"]):
        wrong.append(f"host capture: {capture['detail']}")
    if perf is not None and checks["host by perf"]["ok"] != perf:
        wrong.append(f"host by perf: {checks['host by perf']['detail']}")
    if (code == 0) != capture["ok"]:
        wrong.append(f"exit code {code}")
    return wrong, text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    parser.add_argument("--agent", required=True)
    a = parser.parse_args()
    if os.geteuid() or not shutil.which("setpriv") or not os.path.exists("/sys/kernel/btf/vmlinux"):
        print("skipped: needs root, setpriv and a kernel with BTF")
        return 77
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        print("skipped: no mount namespaces here")
        return 77
    if "no libperf" in said(CASES[0], a.agent, "--doctor")[0]:
        print("skipped: this build has no libperf")
        return 77
    bad = 0
    for case in CASES:
        for who, check, program in (("agent", agent_check, a.agent), ("host", host_check, a.vcpuscope)):
            wrong, text = check(case, program)
            print(f"{case[0]}, {who}: {'; '.join(wrong) or 'right'}")
            if wrong:
                print(text)
            bad += bool(wrong)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
