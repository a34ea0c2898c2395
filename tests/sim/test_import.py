#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What an imported text has beyond the scheduler and the exits: KVM's injections make chains of interrupts, and events
without a type of ours can be named in events, pairs, top and query, on both sides, with the texts' values."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

ROUNDS = 50
VECTORS = 3
MS = 1000000
KVM = "intr_info 0x0 error_code 0x0"


def texts():
    """(host, guest, ns from each interrupt's message to its handler): in each round a vhost thread sends a message while
    the vCPU runs, the vCPU exits, KVM injects, the guest handles. The device's command ends within the same round."""
    host, guest, latencies = [], [], []

    def put(lines, task, cpu, at, event, text):
        lines.append(f"{task} [{cpu:03}] d..1. {at // 10**9}.{at % 10**9:09}: {event}: {text}")

    vcpu, vhost = "CPU 0/KVM-101", "vhost-99-107"
    put(host, vcpu, 0, 100 * MS, "kvm_entry", "vcpu 0, rip 0x1000")
    for i in range(ROUNDS):
        t, vector, delay = (101 + i) * MS, 0x27 + i % VECTORS, 30000 + 1000 * i
        put(host, vhost, 1, t, "kvm_msi_set_irq", f"dst 0 vec {vector} (Fixed|physical|edge)")
        put(host, vhost, 1, t + 1000, "kvm_apic_accept_irq", f"apicid 0 vec {vector} (Fixed|edge)")
        put(host, vhost, 1, t + 2000, "nvme:nvme_setup_cmd", f"nvme0: disk=nvme{i % 2}n1, qid=1, cmdid={i}, nsid=1")
        put(host, vhost, 1, t + 2000 + 100 * i + 100, "nvme:nvme_complete_rq",
            f"nvme0: disk=nvme{i % 2}n1, qid=1, cmdid={i}, res=0x0")
        put(host, vcpu, 0, t + 5000, "kvm_exit", f"vcpu 0 reason EXTERNAL_INTERRUPT rip 0x1 info1 0x0 info2 0x0 {KVM}")
        put(host, vcpu, 0, t + 6000, "kvm_inj_virq", f"IRQ 0x{vector:x}" if i % 2 else f"irq {vector}")
        put(host, vcpu, 0, t + 7000, "kvm_entry", "vcpu 0, rip 0x1")
        put(guest, "app-500", 0, t + delay, "irq_handler_entry", f"irq={24 + i % VECTORS} name=virtio{i % VECTORS}")
        put(guest, "app-500", 0, t + delay + 2000, "irq_handler_exit", f"irq={24 + i % VECTORS} ret=handled")
        put(guest, "app-500", 0, t + delay + 3000, "net:netif_rx", f"dev=eth0 skbaddr=0x{i:x} len={100 + i}")
        put(host, vcpu, 0, t + 200000, "kvm_exit", f"vcpu 0 reason APIC_WRITE rip 0x1 info1 0x0 info2 0x0 {KVM}")
        put(host, vcpu, 0, t + 201000, "kvm_eoi", f"apicid 0 vector {vector}")
        put(host, vcpu, 0, t + 202000, "kvm_entry", "vcpu 0, rip 0x1")
        latencies.append(delay)
    return "\n".join(host) + "\n", "\n".join(guest) + "\n", latencies


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    program = os.path.abspath(p.parse_args().vcpuscope)
    bad = []

    def run(*words):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def check(what, got, wanted):
        if got != wanted:
            bad.append(f"{what}: {got}, not {wanted}")

    with tempfile.TemporaryDirectory() as folder:
        host, guest, latencies = texts()
        for side, text in ("host", host), ("guest", guest):
            with open(f"{folder}/{side}.txt", "w", encoding="ascii") as f:
                f.write(text)
        recording = f"{folder}/run.vcs"
        said = run("import", "--host", f"{folder}/host.txt", "--guest", f"{folder}/guest.txt", "--guest-offset-ns", "0",
                   "--guest-error-ns", "100", "-o", recording)
        for line in (f"host: {host.count(chr(10))} events", f"guest: {guest.count(chr(10))} events",
                     f"{2 * ROUNDS} of these are events of 2 kinds", f"{ROUNDS} of these are events of 1 kind "):
            if line not in said:
                bad.append(f"import does not print {line!r}: {said}")
        if "not understood" in said or "not in the recording" in said:
            bad.append(f"import left something out: {said}")

        page = json.loads(run("report", recording, "irq", "--format", "json"))
        rows = [r for t in page["tables"] if t["table"] == "chains" for r in t["rows"] if r["stage"] == "latency"]
        for i in range(VECTORS):
            mine = [r for r in rows if r["vector"] == f"0x{0x27 + i:x}"]
            check(f"chains of vector {0x27 + i:#x}", [(r["source"], r["irq"], r["count"], r["total_ns"]) for r in mine],
                  [("msi", 24 + i, len(latencies[i::VECTORS]), sum(latencies[i::VECTORS]))])

        events = [json.loads(x) for x in run("report", recording, "events", "-e", "host:nvme:*,guest:net:netif_rx", "--top",
                                             "0", "--format", "json").splitlines()]
        check("events", len(events), 3 * ROUNDS)
        check("fields of the guest's", [e["fields"] for e in events if e["side"] == "guest"],
              [{"dev": "eth0", "skbaddr": f"0x{i:x}", "len": 100 + i} for i in range(ROUNDS)])
        check("a filter", len(run("report", recording, "events", "-e", "nvme:nvme_setup_cmd/cmdid>=40/", "--top", "0",
                                  "--format", "json").splitlines()), ROUNDS - 40)

        pairs = [json.loads(x) for x in run("report", recording, "pairs", "-e", "nvme:nvme_setup_cmd", "-e",
                                            "nvme:nvme_complete_rq", "--key", "cmdid", "--format", "jsonl").splitlines()]
        check("pairs", sorted((int(x["key"]), x["duration_ns"]) for x in pairs), [(i, 100 * i + 100) for i in range(ROUNDS)])
        pairs = [json.loads(x) for x in run("report", recording, "pairs", "-e", "kvm:kvm_inj_virq", "-e",
                                            "guest:net:netif_rx", "--format", "jsonl").splitlines()]
        check("pairs of both sides", [x["duration_ns"] for x in pairs], [x - 3000 for x in latencies])

        top = json.loads(run("report", recording, "top", "-e", "nvme:nvme_complete_rq", "--by", "disk", "--format", "json"))
        check("top", sorted((r["key"], r["count"]) for r in top["rows"]),
              [("nvme0n1", ROUNDS // 2), ("nvme1n1", ROUNDS // 2)])
        check("query", run("query", recording, "--format", "csv", "SELECT count(*) FROM events WHERE event = 'net:netif_rx' "
                           "AND side = 'guest' AND json_extract(fields, '$.len') >= 140").split()[-1], str(ROUNDS - 40))
    for line in bad:
        print(line)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
