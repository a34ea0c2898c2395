# SPDX-License-Identifier: GPL-2.0-only
"""Generates a trace of a host, in the form of `trace-cmd report`, with many VMs of many vCPUs. Each VM has
one pCPU for two of its vCPUs. In each VM, the vCPUs wait in turn for a pCPU that a task with another name
holds.
"""
MS = 0.001


class Trace:
    def __init__(self):
        self.lines = []

    def add(self, t, cpu, task, event):
        comm, pid, tid = task
        self.lines.append((t, f"{comm:>16} {pid}/{tid} [{cpu:03d}] {t:.9f}: {event}"))

    def switch(self, t, cpu, out, state, into):
        self.add(t, cpu, out, "sched:sched_switch: " +
                 f"prev_comm={out[0]} prev_pid={out[2]} prev_prio=120 prev_state={state} ==> "
                 f"next_comm={into[0]} next_pid={into[2]} next_prio=120")


def vcpu_lives(trace, task, vcpu, cpu, begin, end, stalls):
    """It runs 3 ms and halts 7 ms; a stall is (begin, length, who holds the pCPU)."""
    idle, t = (f"swapper/{cpu}", 0, 0), begin + vcpu * 0.1 * MS
    trace.add(t, cpu, task, f"kvm:kvm_entry: vcpu {vcpu}, rip 0xffffffff81000000")
    while t < end:
        stall = next((s for s in stalls if t <= s[0] < t + 10 * MS), None)
        if stall:
            t, length, hog = stall
            trace.add(t - 2e-6, cpu, task, f"kvm:kvm_exit: vcpu {vcpu} reason EXTERNAL_INTERRUPT rip 0x1 info1 0x0")
            trace.switch(t, cpu, task, "R", hog)
            trace.switch(t + length, cpu, hog, "S", task)
            t += length + 2e-6
            trace.add(t, cpu, task, f"kvm:kvm_entry: vcpu {vcpu}, rip 0xffffffff81000000")
        t += 3 * MS
        trace.add(t, cpu, task, f"kvm:kvm_exit: vcpu {vcpu} reason HLT rip 0xffffffff81000010 info1 0x0")
        trace.switch(t + 2e-6, cpu, task, "S", idle)
        t += 7 * MS
        trace.add(t - 4e-6, cpu, idle, f"sched:sched_wakeup: comm={task[0]} pid={task[2]} prio=120 target_cpu={cpu:03d}")
        trace.switch(t - 2e-6, cpu, idle, "R", task)
        trace.add(t, cpu, task, f"kvm:kvm_entry: vcpu {vcpu}, rip 0xffffffff81000000")


def write(path, vms, vcpus, seconds=2.0):
    trace, begin = Trace(), 1000.0
    for vm in range(vms):
        pid = 4000 + 100 * vm
        for vcpu in range(vcpus):
            cpu, stalls = vm * vcpus + vcpu, []
            if vcpu % 4 == vm % 4:
                hog = (f"hog-{vm}-{vcpu}", 7000 + 100 * vm + vcpu, 7000 + 100 * vm + vcpu)
                stalls = [(begin + 0.2 + 0.4 * (vcpu // 4) + 0.01 * vm, 0.25, hog)]
            vcpu_lives(trace, (f"CPU {vcpu}/KVM", pid, pid + 1 + vcpu), vcpu, cpu, begin,
                       begin + seconds, stalls)
    trace.lines.sort(key=lambda line: line[0])
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for _, line in trace.lines)
