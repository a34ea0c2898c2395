# SPDX-License-Identifier: GPL-2.0-only
"""Runs a separate libvirtd in a separate mount namespace: it sees no domains of this machine, and no other
process sees its domains. The namespace and everything in it end with the process that entered it.
"""
import ctypes
import os
import pathlib
import shutil
import subprocess
import time

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
LIBVIRTD = shutil.which("libvirtd", path=f"{os.environ['PATH']}:/usr/sbin")
FOLDERS = {"/etc/libvirt": "etc", "/run/libvirt": "run", "/var/lib/libvirt": "lib",
           "/var/cache/libvirt": "cache", "/var/log/libvirt": "log"}
QEMU_CONF = """user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
security_driver = "none"
namespaces = []
stdio_handler = "file"
clear_emulator_capabilities = 0
"""
LIBVIRTD_CONF = """listen_tls = 0
listen_tcp = 0
auth_unix_rw = "none"
auth_unix_ro = "none"
unix_sock_group = "root"
unix_sock_rw_perms = "0700"
log_outputs = "2:file:/var/log/libvirt/libvirtd.log"
"""


def mount(source, target, flags):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(str(source).encode(), str(target).encode(), None, flags, None):
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


class Libvirt:
    """hook: a program to run as libvirt's hook for QEMU, or None."""

    def __init__(self, folder, hook):
        self.folder = pathlib.Path(folder)
        self.process = None
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), "unshare")
        mount("none", "/", MS_REC | MS_PRIVATE)
        for target, name in FOLDERS.items():
            (self.folder / name).mkdir()
            os.makedirs(target, exist_ok=True)
            mount(self.folder / name, target, MS_BIND)
        for name, line in (("passwd", "libvirt-qemu:x:64055:64055::/var/lib/libvirt:/bin/false\n"),
                           ("group", "libvirt-qemu:x:64055:\n")):
            text = pathlib.Path(f"/etc/{name}").read_text()
            if "libvirt-qemu:" not in text:
                (self.folder / name).write_text(text + line)
                mount(self.folder / name, f"/etc/{name}", MS_BIND)
        pathlib.Path("/etc/libvirt/qemu.conf").write_text(QEMU_CONF)
        pathlib.Path("/etc/libvirt/libvirtd.conf").write_text(LIBVIRTD_CONF)
        if hook:
            hooks = pathlib.Path("/etc/libvirt/hooks")
            hooks.mkdir()
            shutil.copy(hook, hooks / "qemu")
            (hooks / "qemu").chmod(0o755)

    def start(self):
        self.process = subprocess.Popen([LIBVIRTD, "-f", "/etc/libvirt/libvirtd.conf",
                                         "-p", self.folder / "libvirtd.pid"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while subprocess.run(["virsh", "-c", "qemu:///system", "list"], capture_output=True).returncode:
            if self.process.poll() is not None or time.monotonic() > end:
                raise OSError(f"libvirtd does not serve: {self.log()}")
            time.sleep(0.2)

    @staticmethod
    def log():
        path = pathlib.Path("/var/log/libvirt/libvirtd.log")
        return path.read_text()[-1000:] if path.exists() else "it wrote no log"

    @staticmethod
    def virsh(*words):
        done = subprocess.run(["virsh", "-c", "qemu:///system", *map(str, words)], capture_output=True,
                              text=True, timeout=60)
        if done.returncode:
            raise OSError(f"virsh {words}: {done.stderr.strip()}")
        return done.stdout

    def stop(self):
        """Also ends the domains, which would outlive libvirtd."""
        if self.process:
            for name in self.virsh("list", "--name").split():
                subprocess.run(["virsh", "-c", "qemu:///system", "destroy", name], capture_output=True)
            self.process.terminate()
            self.process.wait()
            self.process = None
