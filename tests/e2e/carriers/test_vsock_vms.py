#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests three KVM guests with a vsock device each (vhost-vsock, in bed B) at one daemon. All connect to the
same port. The daemon records each guest as its own VM, which the boot id of the guest's kernel proves. It
refuses a guest that belongs to no VM, and accepts this guest once its VM is attached.
"""
import json
import os
import shlex
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.dirname(HERE)
sys.path[:0] = [f"{E2E}/beds", E2E]
import bed  # noqa: E402
from scene import SceneError  # noqa: E402

RUN = "/run/vms"
CIDS = {"web3": 3, "web4": 4, "web5": 5}
LATE = "web5"  # its VM is attached after its agent's start
EVENTS_MIN, FRAMES_MIN = 200, 20


class Guest:
    def __init__(self, host, name):
        self._host, self.name, self.cid = host, name, CIDS[name]
        self.folder = f"/run/{name}"

    def boot(self):
        """Begins to; its pid is in a file when it is up."""
        self._host.run(f"{{ GUEST_RUN={self.folder} guest-start 1 -device vhost-vsock-pci,guest-cid={self.cid} "
                       f">{self.folder}.pid 2>{self.folder}.err </dev/null & }}")

    def pid(self):
        return self._host.run(f"cat {self.folder}.pid").strip()

    def run(self, command):
        return self._host.run(f"bed-control call {self.folder}/control {shlex.quote(command)}", timeout_s=60)


class Host:
    def __init__(self, machine):
        self.machine = machine
        self.run = machine.run

    def ctl(self, words):
        return self.run(f"vcpuscope ctl {words} --control {RUN}/control")

    def vms(self):
        return {vm["vm"]: vm for vm in json.loads(self.ctl("list --format json"))["vms"]}

    def until(self, what, condition, seconds=150):
        end = time.monotonic() + seconds
        while not (got := condition()):
            if time.monotonic() > end:
                raise SceneError(f"after {seconds} s still not: {what}; {self.run(f'cat {RUN}/log /run/*.err')}")
            time.sleep(0.3)
        return got


def keys(guest):
    return {"pid": guest.pid(), "channel": f"vsock:{guest.cid}:7431", "record": "yes", "flight": "no"}


def daemon_start(host, guests):
    vms = "".join(f"[vm {guest.name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys(guest).items())
                  for guest in guests if guest.name != LATE)
    host.run(f"mkdir -p {RUN}")
    host.machine.put(f"{RUN}/conf", (f"[daemon]\ncontrol = {RUN}/control\nlibvirt = no\noutbox = no\n"
                                     f"directory = {RUN}/recordings\ndisk_reserve = 16M\n{vms}").encode())
    host.run(f"{{ vcpuscope daemon --config {RUN}/conf >{RUN}/log 2>&1 </dev/null & }}")
    host.until("the daemon answers", lambda: not host.machine.run_bytes(
        f"vcpuscope ctl status --control {RUN}/control")[0])


def heard(vms, names):
    return all(vms[name]["channel"] == "ok" and vms[name]["link"]["frames"] > FRAMES_MIN for name in names)


def play(machine, say):
    host = Host(machine)
    guests = {name: Guest(host, name) for name in CIDS}
    for guest in guests.values():
        guest.boot()
    host.until("all guests are up", lambda: all(guest.pid() for guest in guests.values()), 240)
    say("three guests are up")
    daemon_start(host, guests.values())
    host.until("the VMs run", lambda: all(vm["state"] == "running" for vm in host.vms().values()))
    boots = {}
    for guest in guests.values():
        boots[guest.name] = guest.run("cat /proc/sys/kernel/random/boot_id").strip()
        guest.run("{ vcpuscope-agent --connect vsock:2:7431 >/root/log 2>&1 </dev/null & }")
    host.until("the first two are heard", lambda: heard(host.vms(), [name for name in CIDS if name != LATE]))
    # A guest of which nobody knows.
    host.until("the third is refused", lambda: f"CID {CIDS[LATE]}" in host.run(f"cat {RUN}/log"))
    host.ctl(f"attach {LATE} " + " ".join(f"{key}={value}" for key, value in keys(guests[LATE]).items()))
    host.until("all are heard", lambda: heard(host.vms(), CIDS))
    say("all are heard")
    time.sleep(2)
    for name, vm in host.vms().items():
        if vm["carrier"] != "vsock":
            raise SceneError(f"{name} is heard over {vm['carrier']}")
        host.ctl(f"record {name} stop")
        held = json.loads(host.run(f"batch-ranges {vm['file']}"))
        events = sum(events for _, _, _, events in held["cpus"])
        say(f"{name}: {events} events of boot {held['boot']}")
        if held["boot"] != boots[name] or held["before"] or events < EVENTS_MIN:
            raise SceneError(f"{name}: recorded {held}, its guest booted as {boots[name]}")
    if len(set(boots.values())) != len(CIDS):
        raise SceneError(f"guests of one boot id: {boots}")
    host.ctl("stop")


def main():
    begin = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - begin:6.1f} s: {text}", flush=True)

    def round_of_it():
        builder = bed.Builder(say=say)
        files = [(f"{builder.build}/tests/e2e/daemon/batch-ranges", "/usr/bin/batch-ranges")]
        with bed.boot_b(builder, files=files) as machine:
            say("the host is up")
            play(machine, say)

    try:
        bed.machine.retry_emulator(round_of_it)
    except (*bed.BedError, SceneError) as error:
        print(f"failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
