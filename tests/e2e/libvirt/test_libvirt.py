#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the daemon with a real libvirtd and its hook. It watches a domain from its start, lists the domain
with its agent's clock soon after the agent connected, and removes it at its end. This is repeated, also with
a restart of the daemon in between. The hook ends in time in every state of the daemon. Channels are added to
a running domain and removed, by hand or by the daemon. libvirt carries those that the daemon cannot reach.
Metadata has the effect of the configuration.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [f"{HERE}/../beds", f"{HERE}/../daemon"]
import bed  # noqa: E402
import libvirt_rig  # noqa: E402
from daemon_rig import BUILD, PROGRAM, Daemon, until  # noqa: E402

FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
CYCLES = 50 if FULL else 3
HOOK_MAX_S = 0.05
HOOKS = 20
DOMAIN = """<domain type='qemu'><name>{name}</name><memory unit='MiB'>256</memory><vcpu>1</vcpu>
<metadata><v:settings xmlns:v='https://vcpuscope.org/domain/1' {settings}/></metadata>
<os><type arch='x86_64' machine='pc'>hvm</type><kernel>{kernel}</kernel><initrd>{initrd}</initrd>
<cmdline>console=ttyS0 quiet panic=-1</cmdline></os>
<features><acpi/></features><cpu mode='maximum'/>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator><controller type='usb' model='none'/>
<memballoon model='none'/><controller type='virtio-serial' index='0'/>{channel}
<channel type='unix'><source mode='bind' path='{folder}/{name}.control'/>
<target type='virtio' name='org.vcpuscope.control.0'/></channel></devices></domain>"""
CHANNEL = """<channel type='unix'><source mode='connect' path='{socket}'>
<reconnect enabled='yes' timeout='1'/></source>
<target type='virtio' name='org.vcpuscope.agent.0'/></channel>"""
# Without a virtio-serial controller, which libvirt cannot plug.
PLAIN = """<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='pc'>hvm</type></os><features><acpi/></features>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator><controller type='usb' model='none'/>
<memballoon model='none'/></devices></domain>"""
BOUND = """<channel type='unix'><source mode='bind' path='{folder}/hidden/agent'/>
<target type='virtio' name='org.vcpuscope.agent.0'/></channel>"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class LibvirtTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-libvirt-", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        builder = bed.Builder()
        cls.kernel, cls.initrd = builder.kernel.vmlinuz, builder.guest()
        hook = cls.folder / "hook"
        text = pathlib.Path(f"{HERE}/../../../deploy/libvirt/qemu").read_text()
        cls.daemon = Daemon()  # libvirt = auto
        cls.addClassCleanup(cls.daemon.clean)
        cls.real_hook = cls.folder / "real-hook"
        cls.real_hook.write_text(text.replace(
            "\nvcpuscope-hook", f"\n{PROGRAM.resolve()}-hook --control {cls.daemon.control}"))
        if cls.real_hook.read_text() == text:
            raise AssertionError("the hook does not call vcpuscope-hook")
        cls.real_hook.chmod(0o755)
        cls.hook_log = cls.folder / "hook-us"
        hook.write_text(f'#!/bin/bash\nbegin=$EPOCHREALTIME\n{cls.real_hook} "$@"\nend=$EPOCHREALTIME\n'
                        f'echo "$2 $(( ${{end/.}} - ${{begin/.}} ))" >>{cls.hook_log}\n')
        cls.libvirt = libvirt_rig.Libvirt(cls.folder, hook)
        cls.addClassCleanup(cls.libvirt.stop)
        cls.daemon.start()  # libvirt may come later
        cls.libvirt.start()

    def define(self, name, channel=CHANNEL, settings="record='no'", domain=DOMAIN):
        path = self.folder / f"{name}.xml"
        path.write_text(domain.format(
            name=name, kernel=self.kernel, initrd=self.initrd, folder=self.folder, settings=settings,
            channel=channel.format(socket=self.daemon.folder / "agents.sock", folder=self.folder)))
        self.libvirt.virsh("define", path)
        self.addCleanup(self.libvirt.virsh, "undefine", name)

    def guest(self, name, command, seconds=240):
        """Runs it in the guest, once that is up."""
        control = self.folder / f"{name}.control"
        until(f"{name} has its control port", control.exists)
        done = subprocess.run([f"{BUILD}/tests/e2e/beds/bed-control", "call", control, command],
                              capture_output=True, text=True, errors="replace", timeout=seconds)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start(self, name):
        self.libvirt.virsh("start", name)
        self.guest(name, "vcpuscope-agent >/dev/null 2>&1 </dev/null &")
        return time.monotonic()

    def listed(self, name):
        vm = self.daemon.vm(name)
        return vm if vm and vm["channel"] == "ok" and vm.get("clock", "none") != "none" else None

    def gone(self, name):
        self.libvirt.virsh("destroy", name)
        until(f"{name} is forgotten", lambda: not self.daemon.vm(name))

    def test_domains_are_watched_by_themselves(self):
        self.define("web1")
        descriptors = None
        for cycle in range(CYCLES):
            begin = self.start("web1")
            vm = until("web1 is listed with its clock", lambda: self.listed("web1"))
            print(f"  cycle {cycle}: listed {time.monotonic() - begin:.1f} s after its agent's start: "
                  f"{vm['carrier']}, {vm['clock']} +-{vm['clock_error_ns'] / 1e3:.0f} us", flush=True)
            self.assertLess(time.monotonic() - begin, 15)
            self.assertEqual((vm["carrier"], vm["vcpus"]), ("virtio-serial", 1))
            self.assertIn("web1", subprocess.run([PROGRAM, "list", "--control", self.daemon.control],
                                                 capture_output=True, text=True, check=True).stdout)
            if cycle == CYCLES // 2:
                self.daemon.stop()
                self.daemon.start()
                until("it is listed again", lambda: self.listed("web1"))
                descriptors = None
            self.gone("web1")
            time.sleep(0.5)
            descriptors = descriptors or self.daemon.ask("status")["descriptors"]
            # For a second or two, the daemon may hold a process whose stacks it names.
            until("the daemon has no more descriptors than after the first cycle",
                  lambda: self.daemon.ask("status")["descriptors"] <= descriptors)
            until("no process is left behind", lambda: self.children() == ["vcpuscope-libvi"])
        times = sorted(int(line.split()[1]) / 1e3 for line in self.hook_log.read_text().splitlines())
        self.assertGreaterEqual(len(times), 4 * CYCLES)  # prepare, start, started, stopped, release
        memory = self.daemon.ask("status")["rss_bytes"]
        print(f"  {CYCLES} cycles: {len(times)} hooks by libvirt, median {times[len(times) // 2]:.1f} ms, "
              f"worst {times[-1]:.1f} ms; {descriptors} descriptors, {memory >> 20} MiB at the end", flush=True)
        self.assertLess(times[len(times) // 2], 4 * HOOK_MAX_S * 1e3)

    def children(self):
        """The names of the daemon's."""
        done = subprocess.run(["ps", "-o", "comm=", "--ppid", str(self.daemon.process.pid)],
                              capture_output=True, text=True)
        return done.stdout.split()

    def test_metadata_sets_what_the_configuration_would(self):
        self.define("web2", settings="level='summary' stall='50ms' channel='/etc/passwd'")
        self.start("web2")
        vm = until("web2 is listed", lambda: self.listed("web2"))
        self.assertEqual(vm["level"], "summary")
        self.assertIn("channel is no setting", self.daemon.log.read_text())
        self.gone("web2")
        self.define("web3", settings="watch='no'")
        self.libvirt.virsh("start", "web3")
        time.sleep(2)
        self.assertIsNone(self.daemon.vm("web3"))
        self.libvirt.virsh("destroy", "web3")

    def test_a_channel_is_plugged_into_a_running_domain(self):
        self.define("web4", channel="")
        self.start("web4")
        until("web4 is watched", lambda: self.daemon.vm("web4"))
        self.assertEqual(self.daemon.vm("web4")["channel"], "none")
        socket = self.daemon.folder / "agents.sock"
        for expect in (0, 1):  # the second time it is there already
            done = subprocess.run([PROGRAM, "attach", "web4", "--socket", socket], capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, expect, done.stderr)
        self.guest("web4", "pkill vcpuscope-agent; vcpuscope-agent >/dev/null 2>&1 </dev/null &")
        until("its agent is heard", lambda: self.listed("web4"))
        self.assertIn("org.vcpuscope.agent.0", self.libvirt.virsh("dumpxml", "--inactive", "web4"))
        done = subprocess.run([PROGRAM, "detach", "web4"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        until("it is gone from the definition",
              lambda: "org.vcpuscope.agent.0" not in self.libvirt.virsh("dumpxml", "--inactive", "web4"))
        self.gone("web4")
        done = subprocess.run([PROGRAM, "attach", "nosuch"], capture_output=True, text=True)
        self.assertEqual((done.returncode, "no such domain" in done.stderr), (1, True), done.stderr)
        done = subprocess.run([PROGRAM, "attach", "web4", "--connect",
                               f"qemu+unix:///system?socket={self.daemon.folder}/nobody"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, "does libvirtd run?" in done.stderr), (1, True), done.stderr)

    def has_channel(self, name, *inactive):
        return "org.vcpuscope.agent.0" in self.libvirt.virsh("dumpxml", *inactive, name)

    def test_the_daemon_adds_the_channel(self):
        self.daemon.stop()
        other = Daemon(settings="libvirt_attach = labelled")
        try:
            other.start()
            self.define("web6", channel="", settings="attach='yes'")
            self.define("web7", channel="")
            self.define("web8", channel="", settings="attach='no'")
            self.define("web9", domain=PLAIN)
            for name in ("web7", "web8", "web9"):
                self.libvirt.virsh("start", name)
            self.start("web6")
            vm = until("web6 is heard", lambda: (lambda v: v if v and v.get("clock", "none") != "none"
                                                 else None)(other.vm("web6")))
            self.assertEqual((vm["channel"], vm["carrier"]), ("ok", "virtio-serial"))
            # The running machine's alone; that of others not at all.
            self.assertTrue(self.has_channel("web6"))
            self.assertFalse(self.has_channel("web6", "--inactive"))
            self.assertFalse(self.has_channel("web7"))
            # Who removes it wants that.
            done = subprocess.run([PROGRAM, "detach", "web6"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            until("web6 is watched without", lambda: other.vm("web6")["channel"] == "none")
            time.sleep(3)
            self.assertFalse(self.has_channel("web6"))
            # All: those that run when the daemon starts, too, but not who does not want it.
            other.stop()
            other.settings = "libvirt_attach = all"
            other.configure("")
            other.start()
            until("web7 has it", lambda: self.has_channel("web7"))
            log = until("web9 cannot have it", lambda: (lambda text: text if "no virtio-serial" in text
                                                        else None)(other.log.read_text()))
            self.assertRegex(log, r"libvirt_attach: web9: .*; `vcpuscope attach` adds one to the definition")
            self.assertFalse(self.has_channel("web8"))
            done = subprocess.run([PROGRAM, "attach", "web9", "--socket", other.folder / "agents.sock"],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, "start it again" in done.stderr), (1, True), done.stderr)
            self.assertTrue(self.has_channel("web9", "--inactive"))
            self.libvirt.virsh("destroy", "web9")
            self.libvirt.virsh("start", "web9")
            until("web9 is watched with it", lambda: (other.vm("web9") or {}).get("channel", "none") != "none")
            log = other.log.read_text()
            self.assertEqual(log.count("libvirt_attach"), 1, log)
        finally:
            other.clean()
            for name in ("web6", "web7", "web8", "web9"):
                subprocess.run(["virsh", "-c", "qemu:///system", "destroy", name], capture_output=True)
            self.daemon.start()

    def test_libvirt_carries_a_channel_that_is_out_of_reach(self):
        hidden = self.folder / "hidden"
        hidden.mkdir()
        program = self.folder / "vcpuscope-without-it"
        program.write_text(f"#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs none {hidden} && "
                           f"exec \"$0\" \"$@\"' {PROGRAM.resolve()} \"$@\"\n")
        program.chmod(0o755)
        self.define("web5", channel=BOUND)
        self.daemon.stop()  # it would take the channel
        other = Daemon(settings="libvirt = qemu:///system", program=program)
        try:
            other.start()
            self.start("web5")
            vm = until("web5 is heard", lambda: (lambda v: v if v and v.get("clock", "none") != "none"
                                                 else None)(other.vm("web5")))
            self.assertEqual((vm["channel"], vm["carrier"]), ("ok", "virtio-serial"))
            self.assertIn("through libvirt", other.log.read_text())
            self.libvirt.virsh("destroy", "web5")
            until("web5 is forgotten", lambda: not other.vm("web5"))
        finally:
            other.clean()
            self.daemon.start()

    def hook_times(self):
        times = []
        for _ in range(HOOKS):
            begin = time.monotonic()
            done = subprocess.run([self.real_hook, "web1", "started", "begin", "-"],
                                  input=b"<domain/>" * 10000)
            times.append(time.monotonic() - begin)
            self.assertEqual(done.returncode, 0)
        return sorted(times)

    def test_the_hook_is_over_in_time(self):
        def check(what):
            times = self.hook_times()
            print(f"  hook, {what}: median {times[HOOKS // 2] * 1e3:.1f} ms, worst "
                  f"{times[-1] * 1e3:.1f} ms", flush=True)
            # The machine may be busy; the promise is about waiting for the daemon.
            self.assertLess(times[HOOKS // 2], 4 * HOOK_MAX_S)

        check("daemon well")
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        try:
            for _ in range(5):  # the socket's backlog fills up
                check("daemon stopped")
        finally:
            os.kill(self.daemon.process.pid, signal.SIGCONT)
        self.daemon.stop()
        check("no daemon")
        self.daemon.start()


if __name__ == "__main__":
    if os.geteuid():
        skip("a libvirtd of our own needs root")
    for program in ("virsh", libvirt_rig.LIBVIRTD and "libvirtd", "qemu-system-x86_64"):
        if not program or not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin"):
            skip("no libvirtd and virsh here: apt-get install libvirt-daemon libvirt-daemon-driver-qemu "
                 "libvirt-clients")
    unittest.main(verbosity=2)
