#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the beds: commands and bytes pass unchanged, and no process is left running."""
import os
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/beds")
import bed  # noqa: E402


def qemu_children(pid):
    """Process ids of the QEMUs that process `pid` started."""
    done = subprocess.run(["pgrep", "-P", str(pid), "qemu-system"], capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, timeout_s):
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guest = bed.boot_a(bed.Builder(), cpus=2)

    @classmethod
    def tearDownClass(cls):
        cls.guest.close()

    def test_exit_status_and_output(self):
        self.assertEqual(self.guest.run_bytes("echo out; echo err >&2; exit 7"), (7, b"out\nerr\n"))
        self.assertEqual(self.guest.run_bytes("kill -9 $$"), (137, b""))
        with self.assertRaisesRegex(bed.machine.MachineError, "ended with 3: why"):
            self.guest.run("echo why; exit 3")

    def test_bytes_pass_unchanged(self):
        content = os.urandom(3 << 20)
        self.guest.put("/tmp/content", content)
        self.assertEqual(self.guest.get("/tmp/content"), content)

    def test_a_background_program_does_not_hold_the_reply(self):
        started = time.monotonic()
        self.guest.run("sleep 30 &")
        self.assertLess(time.monotonic() - started, 10)

    def test_late_output_of_a_command_that_timed_out_is_skipped(self):
        with self.assertRaisesRegex(bed.machine.MachineError, "did not end in 1 s.*said: early"):
            self.guest.run("echo early; (sleep 3; echo late) & sleep 30", timeout_s=1)
        self.assertEqual(self.guest.run("echo mine"), "mine\n")

    def test_machine_as_asked(self):
        self.assertEqual(self.guest.run("nproc"), "2\n")
        self.assertEqual(sorted(self.guest.vcpu_threads()), [0, 1])
        self.assertIn(bed.machine.AGENT_PORT, self.guest.run("ls /dev/virtio-ports"))

    def test_stall_module_measures_itself(self):
        self.guest.run("insmod /root/stall.ko")
        for mode in ("preempt", "irqsoff", "softirq", "hardirq"):
            with self.subTest(mode):
                self.guest.run(f"provoke stall {mode} 30")
                said, begin, end, *_ = self.guest.run("cat /proc/stall").split()
                self.assertEqual(said, mode)
                self.assertGreaterEqual(int(end) - int(begin), 30_000_000)


class StandsStill(unittest.TestCase):
    def test_only_what_nobody_provokes_is_the_emulators(self):
        class Talking(bed.machine.Machine):
            def __init__(self, said):
                self.said = said

            def serial(self):
                return f"[  1.0] watchdog: BUG: soft lockup - CPU#0 stuck for {self.said}s! [provoke:1]\n"

        Talking(22)._stuck_check()
        with self.assertRaisesRegex(bed.machine.EmulatorFault, "stood still for 48 s"):
            Talking(48)._stuck_check()


class Trap(unittest.TestCase):
    TRAP, PLACE, CODE = "ffffffff81e00ba0", "ffffffff81c10cac", "ffffffff81c04ffe"

    class Stuck(bed.machine.Machine):
        def __init__(self, byte, flags="00000082"):
            self.byte, self.flags, self.places = byte, flags, [Trap.TRAP, Trap.PLACE, Trap.PLACE, Trap.CODE]

        def _monitor(self, line):
            if line.startswith("x /2xg"):
                return "fffffe0000000030: 0x81e08e0000100ba0 0x00000000ffffffff"
            if line.startswith("x /1xb"):
                return f"{line.split('0x')[1]}: {self.byte}"
            self.places.append(self.places.pop(0))
            return (f"CPU#0\nRIP={self.places[0]} RFL={self.flags} [--S----] CPL=0 II=0 A20=1 SMM=0 HLT=0\n"
                    "IDT=     fffffe0000000000 00000fff\n")

    def test_a_breakpoint_that_memory_has_not(self):
        with self.assertRaisesRegex(bed.machine.EmulatorFault, f"breakpoint at {self.PLACE} again"):
            self.Stuck("0x0f")._trap_check()

    def test_other_loops_are_not_the_emulators(self):
        self.Stuck("0xcc")._trap_check()  # a breakpoint that is there
        self.Stuck("0x0f", "00000202")._trap_check()  # interrupts on
        with bed.boot_a(bed.Builder()) as guest:
            guest.run("insmod /root/stall.ko; { sleep 0.3; provoke stall irqsoff 4000; } >/dev/null 2>&1 &")
            for _ in range(5):
                guest._trap_check()
                time.sleep(0.2)
            idt = guest._flags()[0][3]
            kernel = guest.run("grep ' asm_exc_int3$' /proc/kallsyms").split()[0]
            self.assertEqual(guest._gate(idt, 3), kernel)


class TripleFault(unittest.TestCase):
    def test_only_one_without_a_word_is_the_emulators(self):
        with bed.boot_a(bed.Builder(), cmdline="reboot=triple") as guest:
            with self.assertRaises(bed.machine.MachineError) as caught:
                guest.run("echo b >/proc/sysrq-trigger; sleep 30")
            self.assertIn("Triple fault", guest.resets())
            self.assertNotIsInstance(caught.exception, bed.machine.EmulatorFault)
            self.assertIn("sysrq: Resetting", str(caught.exception))
            guest.serial = lambda: "[    4.0] kvm: a line of a kernel that lived\n"
            self.assertIsInstance(guest._gone(), bed.machine.EmulatorFault)


class Leftovers(unittest.TestCase):
    def start(self):
        """(process of `bed`, its QEMU, its run folder), with a guest that runs a command."""
        process = subprocess.Popen([f"{HERE}/beds/bed", "a", "--run", "echo up; sleep 300"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"up\n")
        qemu, = qemu_children(process.pid)
        with open(f"/proc/{qemu}/cmdline") as f:
            folder = f.read().split("file:")[1].split("/serial")[0]
        self.assertTrue(os.path.isdir(folder))
        return process, qemu, folder

    def test_interrupted_it_ends_qemu_and_removes_its_folder(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                process, qemu, folder = self.start()
                process.send_signal(number)
                self.assertEqual(process.wait(10), 128 + number)
                self.assertFalse(alive(qemu))
                self.assertFalse(os.path.exists(folder))

    def test_killed_it_takes_qemu_along(self):
        process, qemu, folder = self.start()
        process.kill()
        process.wait(10)
        self.assertTrue(wait_until(lambda: not alive(qemu), 5))
        bed.machine.remove_stale_runs()
        self.assertFalse(os.path.exists(folder))


if __name__ == "__main__":
    unittest.main()
