#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests both doctors on a real kernel on which something is missing: a mount namespace hides BTF, tracefs or
some tracepoints, or a capability is dropped. Each doctor prints what is missing, what cannot be captured
without it, and which backend can attach. The start of a recording prints missing tracepoints, too; this is
tested with a stand-in for a VMM that has real vCPUs. Lockdown cannot be switched off on a running machine, so
tests/unit/test_kernel_support.c simulates it.

Needs root, BTF, tracefs, and a build with perf.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

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


EVENTS = "/sys/kernel/tracing/events"
HIDDEN = ("irq/softirq_entry", "irq/softirq_exit", "kvm/kvm_eoi", "kvm/kvm_inj_virq", "signal/signal_generate")
LOST_BY_AGENT = "softirq_entry, softirq_exit: softirqs: their time counts as the interrupted task's"
LOST_BY_HOST = "signal_generate: signals: verdict vm_paused does not name who stopped the VM"
LOST_OF_KVM = ("kvm_eoi: when the guest ends interrupts (stage service of table chains)",
               "kvm_inj_virq: when KVM injects interrupts (stages wait and enter of table chains)")


def flat(text):
    """Without its line breaks, which depend on the width of the screen."""
    return " ".join(text.split())


def tracepoints_check(agent, vcpuscope, stand_in):
    """What is wrong where some tracepoints are hidden. BPF finds those of BTF all the same."""
    # Events are found below debugfs, too.
    hide = "; ".join(f"mount -t tmpfs none {path}" for path in
                     ["/sys/kernel/debug", *(f"{EVENTS}/{name}" for name in HIDDEN)])
    case = ("no tracepoints", None, hide, "")
    text = said(case, agent, "--doctor")[0]
    wrong = [] if f"without: {LOST_BY_AGENT}" in flat(text.split("by perf")[1]) else [f"agent: {text}"]
    checks = {check["name"]: check for check in json.loads(said(case, vcpuscope, "doctor", "--format", "json")[0])["checks"]}
    perf, kvm = checks["host by perf"], checks["kvm events"]
    if not perf["ok"] or LOST_BY_HOST not in perf["without"]:
        wrong.append(f"host by perf: {perf}")
    if not kvm["ok"] or "without kvm_inj_virq, kvm_eoi" not in kvm["detail"] \
            or not all(lost in kvm["without"] for lost in LOST_OF_KVM):
        wrong.append(f"kvm events: {kvm}")
    text = flat(said(case, vcpuscope, "doctor")[0])
    if not all(lost in text for lost in LOST_OF_KVM):
        wrong.append(f"the text of doctor: {text}")
    for hidden, backend in ((True, "bpf"), (True, "perf"), (False, "bpf"), (False, "perf")):
        text = flat(recorded(case if hidden else CASES[0], vcpuscope, stand_in, backend))
        lost = LOST_OF_KVM + ((LOST_BY_HOST,) if backend == "perf" else ())
        if "2 vCPUs" not in text or any(("this kernel lacks" in text and one in text) != hidden for one in lost):
            wrong.append(f"record --backend {backend}, {'with hidden tracepoints' if hidden else 'plain'}: {text}")
    return wrong


def recorded(case, vcpuscope, stand_in, backend):
    """What `record` says of a VM."""
    with tempfile.TemporaryDirectory() as folder, \
            subprocess.Popen([stand_in], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as vmm:
        try:
            if vmm.stdout.readline() != "ready\n":
                return "the stand-in is not ready"
            script = (f'{{ {case[2]}; }} && "$0" record --pid {vmm.pid} --backend {backend} --no-guest --for 1s '
                      f'-o {folder}/run.vcs 2>&1')
            return subprocess.run(["unshare", "-m", "sh", "-c", script, vcpuscope], capture_output=True, text=True,
                                  timeout=120, check=False).stdout
        finally:
            vmm.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--stand-in", required=True)
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
    if os.path.exists("/dev/kvm") and os.path.exists(f"{EVENTS}/kvm/kvm_inj_virq"):
        wrong = tracepoints_check(a.agent, a.vcpuscope, a.stand_in)
        print("no tracepoints:", "; ".join(wrong) or "right")
        bad += bool(wrong)
    else:
        print("no tracepoints: not tested, no KVM here")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
