# SPDX-License-Identifier: GPL-2.0-only
"""The test beds. All boot Debian's cloud kernel with an initramfs of files of this machine.

  Bed A: an emulated guest on this machine. The collector runs here, on this kernel.
  Bed D: bed A with QEMU's -icount, so that the guest's TSC runs at about 1 GHz, and not steadily.
  Bed B: an emulated "host" (L1) with AMD SVM, which runs real KVM. Inside it run QEMU, the
         collector, and a KVM guest (L2) with the agent. It needs only QEMU on this machine.

VCPUSCOPE_BED_QEMU names another QEMU for these machines. QEMU 7.2 of Debian 12 breaks off one in four rounds
of bed B (machine.EmulatorFault).
"""
import os

import image
import kernel
import machine

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.normpath(f"{HERE}/../../..")

GUEST_MODULES = ("virtio_pci", "virtio_console", "vmw_vsock_virtio_transport", "pvpanic_pci")
HOST_MODULES = ("virtio_pci", "virtio_console", "kvm_amd", "vhost_vsock", "brd", "dm_delay")
FIRMWARE = ("seabios/bios-256k.bin", "qemu/kvmvapic.bin", "qemu/linuxboot_dma.bin")

BedError = (image.ImageError, kernel.KernelError, machine.MachineError)


class Builder:
    """Makes kernels, the test module and images under one build tree. `guest_series`: the kernel of
    bed B's guest, if not its host's. `collector`, `agent`: the builds of these, if not this one."""

    def __init__(self, build=None, series="6.1", say=lambda text: None, guest_series=None, collector=None, agent=None):
        self.build = os.path.abspath(build or os.environ.get("VCPUSCOPE_BUILD", f"{REPOSITORY}/build"))
        self.collector_build, self.agent_build = collector or self.build, agent or self.build
        self.work = f"{self.build}/beds"
        self._say = say
        say(f"kernel {series} from Debian")
        self.kernel = kernel.kernel_get(f"{self.work}/cache", series)
        self.guest_kernel = self.kernel
        if guest_series and guest_series != series:
            say(f"kernel {guest_series} for the guest")
            self.guest_kernel = kernel.kernel_get(f"{self.work}/cache", guest_series)

    def helper(self, name):
        return f"{self.build}/tests/e2e/beds/{name}"

    def _base(self, of, modules):
        made = image.Image()
        made.add_file("/usr/bin/busybox")
        made.add_file(f"{HERE}/init", "/init")
        for name in ("bed-control", "provoke", "gap-meter"):
            made.add_file(self.helper(name), f"/usr/bin/{name}")
        made.add_modules(of.modules(modules))
        return made

    def guest(self, files=(), programs=(), modules=()):
        """Image of a guest: the base, the test module, the agent if built, `files` [(from, to)],
        `programs` [(from, to)] with their libraries, more `modules`."""
        self._say("guest image")
        made = self._base(self.guest_kernel, (*GUEST_MODULES, *modules))
        made.add_file(self.guest_kernel.build_module(f"{HERE}/stall", self.work), "/root/stall.ko")
        agent = f"{self.agent_build}/guest-agent/vcpuscope-agent"
        if os.path.exists(agent):
            made.add_program(agent, "/usr/bin/vcpuscope-agent")
        for source, target in files:
            made.add_file(source, target)
        for source, target in programs:
            made.add_program(source, target)
        return made.write(f"{self.work}/cache")

    def host(self, files=(), guest=None, programs=()):
        """Image of bed B's L1: QEMU with firmware, a guest (an image, else guest()'s) in /guest, the
        collector if built, `programs` [(from, to)] with their libraries."""
        guest = guest or self.guest()
        self._say("host image")
        made = self._base(self.kernel, HOST_MODULES)
        for program in ("/usr/bin/qemu-system-x86_64", "/usr/sbin/dmsetup"):
            made.add_program(program)
        for source, target in programs:
            made.add_program(source, target)
        for name in FIRMWARE:
            made.add_file(f"/usr/share/{name}", f"/usr/share/seabios/{os.path.basename(name)}"
                          if name.startswith("seabios") else None)
        made.add_file(self.guest_kernel.vmlinuz, "/guest/vmlinuz")
        made.add_file(guest, "/guest/initramfs")
        made.add_file(f"{HERE}/guest-start", "/usr/bin/guest-start")
        collector = f"{self.collector_build}/host-collector/vcpuscope"
        if os.path.exists(collector):
            made.add_program(collector, "/usr/bin/vcpuscope")
        for source, target in files:
            made.add_file(source, target)
        return made.write(f"{self.work}/cache")


def boot_a(builder, *, cpus=1, accelerator="tcg,thread=multi", files=(), qemu_args=(), cmdline="",
           boot_timeout_s=120, modules=()):
    """A guest on this machine: a Machine whose agent_socket is the collector's channel."""
    guest = builder.guest(files, modules=modules)
    emulated = accelerator.startswith("tcg")
    return machine.Machine(builder.kernel.vmlinuz, guest, name="bed-a", cpus=cpus,
                           accelerator=accelerator,
                           cpu="max,vendor=GenuineIntel" if emulated else "host", cmdline=cmdline,
                           qemu_args=qemu_args, boot_timeout_s=boot_timeout_s)


def boot_d(builder, *, files=(), boot_timeout_s=240):
    """A guest on this machine whose clock counts its own instructions, held near real time."""
    return machine.Machine(builder.kernel.vmlinuz, builder.guest(files), name="bed-d",
                           accelerator="tcg,thread=single", cpu="max,vendor=GenuineIntel",
                           qemu_args=("-icount", "shift=auto"), boot_timeout_s=boot_timeout_s)


def boot_b(builder, *, cpus=2, files=(), programs=(), guest_files=(), guest_programs=(), guest_modules=(),
           qemu_args=(), cmdline=""):
    """A host with KVM on this machine. `guest-start` inside boots its guest."""
    host = builder.host(files, builder.guest(guest_files, guest_programs, guest_modules), programs)
    return machine.Machine(builder.kernel.vmlinuz, host, name="bed-b", cpus=cpus, memory_mib=2048,
                           cmdline=f"tsc=reliable {cmdline}", qemu_args=qemu_args)


GUEST_START_MAX_S = 90  # 5 to 10 s as a rule; one that takes longer stands still


def guest_start(host, say, command="guest-start"):
    """Boots the guest inside bed B's `host` and returns its QEMU's pid there."""
    *trouble, pid = host.run(command, timeout_s=GUEST_START_MAX_S).splitlines()
    for line in trouble:
        say(line)
    host.guest_console = "/run/guest/serial"
    return int(pid)
