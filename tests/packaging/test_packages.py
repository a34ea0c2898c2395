#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The packages on a clean Debian: installed, purged without a trace; and in a booted guest the agent
is started by udev and systemd when its port is there, works in its sandbox, and goes when it is purged;
the daemon runs in its own.

Needs root (debootstrap, chroot) and Debian's archive; the clean tree is kept in the beds' cache.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../e2e/beds")
import bed  # noqa: E402
import image  # noqa: E402
import kernel  # noqa: E402
import machine  # noqa: E402
from debian_tree import chroot, command, tree_tar  # noqa: E402

BUILD = os.path.abspath(os.environ.get("VCPUSCOPE_BUILD", f"{HERE}/../../build"))
CACHE = f"{BUILD}/beds/cache"
SUITE = "bookworm"
DISK_MIB = 1024
GUEST_PACKAGES = ("systemd", "systemd-sysv", "udev", "init-system-helpers")
# Serves the bed's commands in the guest.
BED_UNIT = """[Unit]
Wants=systemd-udev-settle.service
After=systemd-udev-settle.service
[Service]
ExecStart=/usr/local/bin/bed-control serve /dev/virtio-ports/org.vcpuscope.control.0
[Install]
WantedBy=multi-user.target
"""


def skip_reason():
    if os.geteuid():
        return "debootstrap and chroot need root"
    for program in ("debootstrap", "mke2fs", "cpack", "dpkg-shlibdeps"):
        if not shutil.which(program):
            return f"{program} is missing: run deploy/install-deps"
    return None


def build_packages(folder):
    """{name: path of its .deb}"""
    command("cpack", "-B", folder, cwd=BUILD)
    found = {}
    for name in os.listdir(folder):
        if name.endswith(".deb"):
            found[name.split("_")[0]] = os.path.join(folder, name)
    return found


def field(deb, name):
    return command("dpkg-deb", "-f", deb, name).strip()


def listing(tree):
    """Everything in a tree but what dpkg and ldconfig keep for themselves."""
    found = set()
    for folder, folders, files in os.walk(tree):
        inside = os.path.relpath(folder, tree)
        if inside.startswith(("var/lib/dpkg", "var/cache", "var/log", "dev", "proc", "sys", "run")):
            continue
        found |= {os.path.join(inside, name) for name in folders + files}
    return found - {"etc/ld.so.cache"}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="vcpuscope-packages.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.debs = build_packages(f"{cls.folder}/debs")
        needs = {name for deb in cls.debs.values()
                 for name in re.findall(r"(?:^|, )([a-z0-9.+-]+)", field(deb, "Depends"))}
        cls.tar = tree_tar(CACHE, SUITE, sorted({*GUEST_PACKAGES, *needs} - {"libc6", *cls.debs}))

    def tree(self, name, *debs):
        tree = f"{self.folder}/{name}"
        os.mkdir(tree)
        command("tar", "-C", tree, "-xf", self.tar)
        for deb in debs:
            shutil.copy(self.debs[deb], f"{tree}/tmp")
        return tree

    def test_1_the_agent_depends_on_nothing(self):
        self.assertEqual(field(self.debs["vcpuscope-agent"], "Depends"), "")

    def test_2_installed_and_purged_without_a_trace(self):
        tree = self.tree("clean")
        before = listing(tree)
        for deb in self.debs.values():
            shutil.copy(deb, f"{tree}/tmp")
        chroot(tree, "sh", "-c", "dpkg -i /tmp/*.deb && rm /tmp/*.deb")
        for program in ("vcpuscope", "vcpuscope-agent"):
            self.assertRegex(chroot(tree, program, "--version"), rf"^{program} \d")
        added = listing(tree) - before
        for path in ("usr/bin/vcpuscope", "usr/sbin/vcpuscope-agent",
                     "usr/share/man/man8/vcpuscope-agent.8.gz",
                     "usr/share/bash-completion/completions/vcpuscope",
                     "usr/lib/systemd/system/vcpuscope-agent.service"):
            self.assertIn(path, added)
        for unit in sorted(p for p in added if re.match(r"usr/lib/systemd/.*\.service$", p)):
            said = chroot(tree, "systemd-analyze", "verify", "--man=no", f"/{unit}")
            self.assertNotIn("vcpuscope", said, "systemd understands the unit")
        self.assertIn("/etc/vcpuscope/vcpuscope.conf", chroot(tree, "vcpuscope", "config", "check"))
        # The same again is an upgrade.
        for deb in self.debs.values():
            shutil.copy(deb, f"{tree}/tmp")
        chroot(tree, "sh", "-c", "dpkg -i /tmp/*.deb && rm /tmp/*.deb")
        chroot(tree, "dpkg", "-P", *self.debs)
        self.assertEqual(listing(tree) - before, set())
        shutil.rmtree(tree)

    def disk(self):
        """A disk that boots by itself, with the packages installed on it."""
        tree = self.tree("guest", *self.debs)
        chroot(tree, "sh", "-c", "dpkg -i /tmp/*.deb && rm /tmp/*.deb")
        shutil.copy(self.debs["vcpuscope-agent"], f"{tree}/root/agent.deb")
        shutil.copy(f"{BUILD}/tests/e2e/beds/bed-control", f"{tree}/usr/local/bin")
        with open(f"{tree}/etc/systemd/system/bed.service", "w", encoding="utf-8") as f:
            f.write(BED_UNIT)
        chroot(tree, "systemctl", "enable", "bed.service")
        disk = f"{self.folder}/disk"
        command("mke2fs", "-F", "-q", "-t", "ext4", "-O", "^has_journal", "-d", tree, disk, f"{DISK_MIB}M")
        shutil.rmtree(tree)
        return disk

    def boot(self, disk):
        of = kernel.kernel_get(CACHE, "6.1")
        initramfs = image.Image()
        initramfs.add_file("/usr/bin/busybox")
        initramfs.add_file(f"{HERE}/root-init", "/init")
        initramfs.add_modules(of.modules(("virtio_pci", "virtio_blk", "virtio_console")))
        return machine.Machine(of.vmlinuz, initramfs.write(CACHE), name="packages", cpus=2,
                               memory_mib=768, cpu="max,vendor=GenuineIntel", boot_timeout_s=300,
                               qemu_args=("-drive", f"file={disk},format=raw,if=virtio"))

    def hear(self, guest, seconds=4):
        done = subprocess.run([f"{BUILD}/tests/e2e/agent/agent_probe", guest.agent_socket,
                               str(seconds)], capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: int(value) for name, value in map(str.split, done.stdout.splitlines())}

    def wait_active(self, guest):
        end = time.monotonic() + 60
        while guest.run("systemctl is-active vcpuscope-agent || true").strip() != "active":
            self.assertLess(time.monotonic(), end, guest.run(
                "systemctl status --no-pager vcpuscope-agent; journalctl -b --no-pager | tail -40; "
                "true"))
            time.sleep(0.5)

    def test_3_udev_starts_the_agent_in_a_booted_guest(self):
        machine.retry_emulator(self.play)

    def play(self):
        with self.boot(self.disk()) as guest:
            print(f"a guest with systemd answered after {guest.boot_s:.0f} s")
            self.wait_active(guest)
            self.assertEqual(guest.run("systemctl is-enabled vcpuscope-agent || true").strip(),
                             "disabled", "it is the port that started it")
            seen = self.hear(guest)
            print("agent in its sandbox:", seen)
            self.assertGreater(seen["received"], 100)
            self.assertEqual(seen["balanced"], 1)
            self.assertEqual(seen["dmesg_known"], 1)
            log = guest.run("journalctl -b -u vcpuscope-agent --no-pager")
            self.assertNotRegex(log, "lacks|normal priority|cannot|denied|not permitted|will not",
                                "the sandbox takes nothing from it")
            self.assertNotIn("type=1326", guest.run("dmesg"), "no system call was refused")
            self.assertEqual(guest.run("systemctl is-active vcpuscope || true").strip(), "active",
                             guest.run("journalctl -b -u vcpuscope --no-pager; true"))
            guest.run("vcpuscope ctl list && vcpuscope ctl status")
            guest.run(f"dpkg -P {' '.join(self.debs)}", timeout_s=120)
            self.assertEqual(guest.run("pidof vcpuscope vcpuscope-agent; find / -xdev -name '*vcpuscope*' "
                                       "-not -path '/var/lib/dpkg/*' -not -path '/var/log/*' "
                                       "-not -path '/tmp/*'; true").strip(), "")
            # The port has been there all the time.
            guest.run("dpkg -i /root/agent.deb", timeout_s=120)
            self.wait_active(guest)


if __name__ == "__main__":
    reason = skip_reason()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
