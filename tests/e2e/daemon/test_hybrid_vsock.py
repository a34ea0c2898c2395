#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests VMs whose VMMs connect vsock to Unix sockets, as Firecracker and Cloud Hypervisor do, at one daemon.
The guests of three VMs connect to the host; the daemon connects to two others. Each VM is recorded with its
own guest, completely. Another process that connects to the socket for the VMM is refused. A VMM that ends and
a daemon that is started again leave nothing behind.
"""
import json
import socket
import subprocess

from daemon_rig import BUILD, Daemon, FakeVm, skip_unless_possible, until
from file_account import BATCH_RANGES

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"
RATES = {"web1": 1000, "web2": 2000, "web3": 500, "web4": 1500, "web5": 700}
GUEST_PORTS = {"web4": 52, "web5": 1024}  # of guests that listen


class Vm:
    def __init__(self, daemon, name, rate):
        self.name, self.rate = name, rate
        self.device = daemon.folder / f"{name}.vsock"
        self.guest_port = GUEST_PORTS.get(name, 0)
        self.vmm = FakeVm(name, vsock=self.device, guest_port=self.guest_port)
        self.agent = None

    def section(self):
        channel = (f"hybrid-connect:{self.device}:{self.guest_port}" if self.guest_port
                   else f"hybrid:{self.device}")
        return f"[vm {self.name}]\npid = {self.vmm.pid}\nchannel = {channel}\nrecord = yes\n"

    def start(self):
        self.agent = subprocess.Popen([SIM_AGENT, f"{self.device}.guest", str(self.rate)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def truth(self):
        out, _ = self.agent.communicate()
        return json.loads(out)

    def end(self):
        if self.agent and self.agent.poll() is None:
            self.agent.kill()
            self.agent.wait()
        if self.vmm.process.poll() is None:
            self.vmm.end()


def stranger_is_refused(daemon, vm):
    """It speaks first, and is closed."""
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(10)
        stranger.connect(f"{vm.device}_7431")
        try:
            stranger.sendall(b"I am the guest")
            assert stranger.recv(100) == b""
        except (BrokenPipeError, ConnectionResetError):
            pass
    until("the stranger is reported",
          lambda: "refused a process that is not the VMM" in daemon.log.read_text())


def guest_events(path):
    held = json.loads(subprocess.run([BATCH_RANGES, path], check=True, stdout=subprocess.PIPE).stdout)
    return held["boot"], sum(events for _, _, _, events in held["cpus"])


def run(daemon, vms):
    daemon.configure("\n".join(vm.section() for vm in vms))
    daemon.start()
    until("all run", lambda: all(vm["state"] == "running" for vm in daemon.ask("list")["vms"]))
    until("all listen", lambda: all((vm.device.parent / f"{vm.name}.vsock_7431").is_socket()
                                   for vm in vms if not vm.guest_port))
    stranger_is_refused(daemon, vms[0])
    for vm in vms:
        vm.start()
    until("all talk", lambda: all(vm["channel"] == "ok" for vm in daemon.ask("list")["vms"]))
    listed = {vm["vm"]: vm for vm in daemon.ask("list")["vms"]}
    assert {vm["carrier"] for vm in listed.values()} == {"hybrid vsock"}, listed
    until("events come", lambda: all(guest_events(vm["file"])[1] > 500 for vm in listed.values()), 60)
    pids = {vm.name: str(vm.agent.pid) for vm in vms}
    truths = {vm.name: vm.truth() for vm in vms}
    until("all has arrived", lambda: all(not vm["link"]["decoder_pid"] for vm in daemon.ask("list")["vms"]))
    for vm in vms:
        daemon.ask("record", vm.name, "stop")
        boot, events = guest_events(listed[vm.name]["file"])
        # The simulated guest's boot id is its agent's process.
        assert boot == pids[vm.name], (vm.name, boot, pids)
        assert events == truths[vm.name]["emitted"] - truths[vm.name]["dropped"], (vm.name, events, truths)
        print(f"{vm.name}: {events} events of its own guest")


def main():
    skip_unless_possible()
    daemon = Daemon()
    vms = [Vm(daemon, name, rate) for name, rate in RATES.items()]
    try:
        run(daemon, vms)
        # A VMM that ends: its socket is no longer served, and a daemon that begins replaces the others.
        daemon.process.kill()
        daemon.process.wait()
        assert (daemon.folder / "web1.vsock_7431").is_socket()
        run(daemon, vms)
        daemon.stop()
        left = list(daemon.folder.glob("*_7431"))
        assert not left, left
    finally:
        for vm in vms:
            vm.end()
        daemon.clean()


if __name__ == "__main__":
    main()
