#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests two KVM guests on bed B that share a pCPU under one daemon. One of them (the thief) takes the pCPU
from the other. The records of the other's stalls must name the thief by UUID and name, and the query
`culprits` must return it first. Exit status: 1 on a difference.

The thief's vCPU has a real-time priority, so it runs whenever its guest computes.
"""
import argparse
import json
import os
import shlex
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/beds", f"{os.path.dirname(HERE)}/fleet/engines"]
import bed  # noqa: E402
import engine  # noqa: E402
import scene  # noqa: E402

RUN = "/run/theft"
UUIDS = {"victim": "11111111-2222-3333-4444-00000000000a", "thief": "11111111-2222-3333-4444-00000000000b"}
THEFTS, THEFT_MS, PAUSE_S = 3, 400, 1.5
# Of the computation, the thief's vCPU has the pCPU at least; of its stall, the victim's record names the thief for it.
SHARE_MIN = 0.6


class Guest:
    def __init__(self, host, name):
        self._host, self.name = host, name
        self.folder = f"/run/{name}"
        self.pid = None

    def boot(self, say):
        command = f"GUEST_RUN={self.folder} GUEST_NAME={self.name} guest-start 1 -uuid {UUIDS[self.name]}"
        self.pid = bed.guest_start(self._host, say, command)
        # As Scene.place_threads() does.
        self._host.run(f"for t in /proc/{self.pid}/task/*; do case $(cat $t/comm 2>/dev/null) in "
                       f"'CPU 0/'*) mask={1 << scene.VCPU_CPU:x}; echo ${{t##*/}} >{self.folder}.tid ;; "
                       f"*) mask={1 << scene.HOST_CPU:x} ;; esac; taskset -p $mask ${{t##*/}} || [ ! -e $t ]; done")

    def run(self, command):
        return self._host.run(f"bed-control call {self.folder}/control {shlex.quote(command)}", timeout_s=60)


def until(host, what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not (got := condition()):
        if time.monotonic() > end:
            raise scene.SceneError(f"after {seconds} s still not: {what}; {host.run(f'cat {RUN}/log')}")
        time.sleep(0.3)
    return got


def ctl(host, words):
    return host.run(f"vcpuscope ctl {words} --control {RUN}/control")


def daemon_start(host, victim, thief):
    """The victim's agent is heard; the thief has none."""
    host.run(f"mkdir -p {RUN}")
    host.put(f"{RUN}/conf", (
        f"[daemon]\ncontrol = {RUN}/control\nlibvirt = no\ndirectory = {RUN}/data\ndisk_reserve = 16M\n"
        f"[vm victim]\npid = {victim.pid}\nchannel = {victim.folder}/agent\nstall = 100ms\nflight_time = 5s\n"
        f"[vm thief]\npid = {thief.pid}\nflight = no\n").encode())
    host.run(f"{{ taskset {1 << scene.HOST_CPU:x} vcpuscope daemon --config {RUN}/conf >{RUN}/log 2>&1 </dev/null & }}")
    until(host, "the daemon answers", lambda: not host.run_bytes(f"vcpuscope ctl status --control {RUN}/control")[0])

    def vms():
        return {vm["vm"]: vm for vm in json.loads(ctl(host, "list --format json"))["vms"]}

    until(host, "the VMs run", lambda: all(vm["state"] == "running" for vm in vms().values()))
    victim.run("vcpuscope-agent >/root/agent.log 2>&1 </dev/null &")
    until(host, "the agent is heard", lambda: vms()["victim"]["channel"] == "ok")
    time.sleep(scene.SETTLE_S)


def outbox_of(host, folder, say):
    """Plays the thefts; copies the outbox to `folder`. Returns the log of the daemon."""
    guests = [Guest(host, name) for name in UUIDS]
    victim, thief = guests
    for guest in guests:
        guest.boot(say)
    say("two guests are up")
    daemon_start(host, victim, thief)
    host.run(f"chrt -f -p 10 $(cat {thief.folder}.tid)")
    victim.run("provoke compute 600000 >/dev/null 2>&1 </dev/null &")
    for _ in range(THEFTS):
        time.sleep(PAUSE_S)
        say(f"the thief computes for {THEFT_MS} ms: {thief.run(f'provoke compute {THEFT_MS}').strip()}")
    time.sleep(PAUSE_S)
    ctl(host, "stop")
    closed = f"! pidof vcpuscope && ls {RUN}/data/outbox/*.jsonl"
    until(host, "the outbox is closed", lambda: not host.run_bytes(closed)[0])
    host.get_folder(f"{RUN}/data/outbox", folder)
    return host.run(f"cat {RUN}/log")


def records_check(folder):
    """What differs, of the records themselves."""
    wrong, named = [], set()
    for name in sorted(os.listdir(folder)):
        if not (name.startswith("incidents-") and name.endswith(".jsonl")):
            continue
        with open(f"{folder}/{name}", encoding="utf-8") as f:
            records = [json.loads(line) for line in f]
        for r in records:
            if r["record"] != "incident" or r["ongoing"] or r["vm_name"] != "victim":
                continue
            print(f"  {r['verdict']} {r['confidence']} {r['duration_ns'] / 1e6:.0f} ms: {r['culprits']}")
            if r["verdict"] != "vcpu_not_scheduled" or r["duration_ns"] < SHARE_MIN * THEFT_MS * 1e6:
                continue
            first = r["culprits"][0] if r["culprits"] else {}
            if (r["vm_uuid"], first.get("vm_uuid"), first.get("vm_name")) != (*UUIDS.values(), "thief"):
                wrong.append(f"the record names {first} as culprit of {r['vm_uuid']}")
            elif first["share_ns"] < SHARE_MIN * r["duration_ns"]:
                wrong.append(f"the thief has {first['share_ns']} of {r['duration_ns']} ns")
            else:
                named.add(r["incident_id"])
    if len(named) < THEFTS and not wrong:
        wrong.append(f"{len(named)} records of {THEFTS} thefts")
    return wrong


def query_check(build, folder):
    """What differs, of the answer of the engine."""
    e = engine.DuckDB(build)
    try:
        e.load(folder)
        rows = e.run(engine.FLEET / "queries/culprits.sql")
        pairs = e.run(engine.FLEET / "queries/culprit-pairs.sql")
    finally:
        e.close()
    print(f"  culprits: {rows}")
    first = rows[0] if rows else {}
    got = [first.get(key) for key in ("thief", "thief_name", "worst_victim", "worst_victim_name")]
    wrong = [] if got == [UUIDS["thief"], "thief", UUIDS["victim"], "victim"] else [f"culprits returns {rows}"]
    if first.get("incidents", 0) < THEFTS or first.get("stolen_s", 0) < SHARE_MIN * THEFTS * THEFT_MS / 1e3:
        wrong.append(f"culprits counts {first}")
    pair = next((row for row in pairs if row["culprit"] == "thief"), {})
    if [pair.get("culprit_vm_uuid"), pair.get("victim_vm_uuid")] != [UUIDS["thief"], UUIDS["victim"]]:
        wrong.append(f"culprit-pairs returns {pairs}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--kernel", default="6.1", choices=("6.1", "6.12"))
    a = p.parse_args()
    begin = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - begin:6.1f} s: {text}", flush=True)

    def round_of_it():
        builder = bed.Builder(series=a.kernel, say=say)
        engine.installed("duckdb", builder.build)
        with tempfile.TemporaryDirectory(prefix="test_theft.") as folder:
            with bed.boot_b(builder, files=[("/usr/bin/chrt", "/usr/bin/chrt")]) as machine:
                say("the host is up")
                log = outbox_of(machine, folder, say)
            wrong = records_check(folder) + query_check(builder.build, folder)
            return wrong, log

    try:
        wrong, log = bed.machine.retry_emulator(round_of_it)
    except (*bed.BedError, scene.SceneError) as error:
        print(f"failed: {error}")
        return 1
    for line in wrong:
        print(f"wrong: {line}")
    if wrong:
        print(log)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
