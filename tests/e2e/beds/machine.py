# SPDX-License-Identifier: GPL-2.0-only
"""One emulated machine: a QEMU process, its sockets, and commands that run inside it.

A Machine is a context manager. QEMU ends when the context ends, at an exception, at SIGTERM, and even at
SIGKILL of this process (parent death signal). Its run folder is removed then; after a SIGKILL, the next start
removes it.
"""
import collections
import ctypes
import json
import math
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

RUN_PREFIX = "vcpuscope-bed."
QEMU = os.environ.get("VCPUSCOPE_BED_QEMU", "qemu-system-x86_64")
PR_SET_PDEATHSIG = 1
QMP_MAX_S = 30
LOOK_S = 5  # so often, while no answer comes, at what the machine's kernel says
STUCK_S = 40
SILENT_S = 20  # without a word, before it is asked where its CPUs are
STUCK_PLACES = 3
TRAP_SAMPLES = 100  # of the CPUs' registers, at each look
TRAP_VECTOR = 3  # int3
ANSWER_MAX_S = 20  # after a command's time limit, its end must have been told
# A kernel that dies, or that reboots because it was asked to, says so first.
LAST_WORDS = re.compile(r"Kernel panic|reboot: |sysrq: ")
TIMED_OUT = (124, 143)  # exit statuses of timeout(1), GNU's and busybox's
AGENT_PORT = "org.vcpuscope.agent.0"
CONTROL_PORT = "org.vcpuscope.control.0"


class MachineError(Exception):
    pass


class EmulatorFault(MachineError):
    """The emulator broke the machine, which says nothing about what ran inside. QEMU 7.2's TCG with
    several vCPU threads rarely runs a stale translation of code that the kernel inside has just
    patched (a tracepoint switched on or off): that kernel then meets a breakpoint that is not there
    any more and dies, or meets it again and again (exc_int3) while the CPU that patched waits for it,
    and the whole machine stands still, so that not even the end of a time limit is told. With
    thread=single it does not happen, but then the CPUs do not run at the same time."""


def retry_emulator(attempt, say=print, tries=3):
    """attempt()'s result; tried again when the emulator broke the machine under it."""
    for left in reversed(range(tries)):
        try:
            return attempt()
        except EmulatorFault as fault:
            if not left:
                raise
            say(f"{fault}; trying again")


class _Result(unittest.TextTestResult):
    """Ends a run of tests when the emulator broke the machine that they share."""
    fault = None

    def addError(self, test, err):
        super().addError(test, err)
        self._look(err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self._look(err)

    def _look(self, err):
        if err and isinstance(err[1], EmulatorFault):
            self.fault = err[1]
            self.stop()


def unittest_main(of):
    """unittest.main() for the test case class `of`, whose tests share a machine. If the emulator broke it, and no
    test had failed before, all are played again. Arguments name tests of the class."""
    def attempt():
        loader = unittest.defaultTestLoader
        tests = loader.loadTestsFromNames(sys.argv[1:], of) if sys.argv[1:] else loader.loadTestsFromTestCase(of)
        result = unittest.TextTestRunner(resultclass=_Result, verbosity=2).run(tests)
        if result.fault and not result.failures and len(result.errors) == 1:
            raise result.fault
        return result.wasSuccessful()

    sys.exit(not retry_emulator(attempt))


def _before_qemu():
    """In QEMU's process before it is QEMU."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()  # a Ctrl-C at the terminal is ours to handle
    if os.geteuid() == 0:  # ahead of what else runs here: what a bed measures is time
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        try:
            with open("/proc/self/autogroup", "w") as f:
                f.write("-20")
        except OSError:
            pass  # a kernel without autogroups goes by the nice value alone


def remove_stale_runs():
    """Removes the run folders of processes that were killed."""
    for name in os.listdir(tempfile.gettempdir()):
        owner = re.match(re.escape(RUN_PREFIX) + r"(\d+)\.", name)
        if owner and not os.path.exists(f"/proc/{owner[1]}"):
            shutil.rmtree(f"{tempfile.gettempdir()}/{name}", ignore_errors=True)


class Machine:
    """Boots `kernel` with `initramfs`; ready for run() when the constructor returns."""

    def __init__(self, vmlinuz, initramfs, *, name="bed", cpus=1, memory_mib=512, cpu="max",
                 accelerator="tcg,thread=multi", cmdline="", qemu_args=(), boot_timeout_s=120):
        self._process = None
        self._control = None
        self._qmp = None
        self._qmp_lock = threading.Lock()
        self._silent_since = None
        self.guest_console = None  # a file inside: the console of the guest of this machine
        self._places = {}  # addresses in the machine's kernel at which its CPUs were seen: how often
        self._request = 0
        self._received = bytearray()
        remove_stale_runs()
        self.folder = tempfile.mkdtemp(prefix=f"{RUN_PREFIX}{os.getpid()}.")
        self.agent_socket = f"{self.folder}/agent"
        self.qmp_socket = f"{self.folder}/qmp"
        self.recorder_qmp_socket = f"{self.folder}/qmp-recorder"
        self.serial_path = f"{self.folder}/serial"
        try:
            started = time.monotonic()
            self._start(vmlinuz, initramfs, name, cpus, memory_mib, cpu, accelerator, cmdline, qemu_args)
            self._connect(started + boot_timeout_s)
            self.boot_s = time.monotonic() - started
        except BaseException:
            self.close()
            raise

    def _start(self, vmlinuz, initramfs, name, cpus, memory_mib, cpu, accelerator, cmdline,
               qemu_args):
        def port(chardev, port_name):
            return ["-chardev", f"socket,id={chardev},path={self.folder}/{chardev},server=on,wait=off",
                    "-device", f"virtserialport,chardev={chardev},name={port_name}"]

        self._errors = open(f"{self.folder}/qemu.log", "w+b")
        self._process = subprocess.Popen(
            [QEMU, "-name", f"{name},debug-threads=on", "-nodefaults",
             "-no-user-config", "-machine", "pc", "-accel", accelerator, "-cpu", cpu,
             "-smp", str(cpus), "-m", str(memory_mib), "-display", "none", "-no-reboot",
             "-d", "cpu_reset", "-D", f"{self.folder}/resets",
             "-serial", f"file:{self.serial_path}",
             "-chardev", f"socket,id=qmp,path={self.qmp_socket},server=on,wait=off",
             "-chardev", f"socket,id=qmp-caller,path={self.folder}/qmp-bed,server=on,wait=off",
             "-mon", "chardev=qmp,mode=control", "-mon", "chardev=qmp-caller,mode=control",
             "-qmp", f"unix:{self.recorder_qmp_socket},server=on,wait=off",
             "-kernel", vmlinuz, "-initrd", initramfs,
             "-append", f"console=ttyS0 quiet panic=-1 {cmdline}", "-device", "virtio-serial",
             *port("agent", AGENT_PORT), *port("control", CONTROL_PORT), *qemu_args],
            stdin=subprocess.DEVNULL, stdout=self._errors, stderr=subprocess.STDOUT,
            preexec_fn=_before_qemu)
        self.pid = self._process.pid

    def _connect(self, deadline):
        self._control = self._connect_socket(f"{self.folder}/control", deadline)
        with self._connect_socket(f"{self.folder}/qmp-bed", deadline) as qmp:
            qmp.settimeout(QMP_MAX_S)
            self._qmp = qmp.makefile("rw")  # keeps the connection until it is closed itself
        self._qmp.readline()
        self.qmp("qmp_capabilities")
        try:
            self.run("true", timeout_s=deadline - time.monotonic())
        except MachineError as error:
            raise type(error)(f"the machine did not boot: {error}") from None

    def _connect_socket(self, path, deadline):
        while True:
            if self._process.poll() is not None:
                self._errors.seek(0)
                raise MachineError(f"QEMU ended with {self._process.returncode}: "
                                   f"{self._errors.read().decode(errors='replace').strip()}")
            try:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(path)
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
                if time.monotonic() > deadline:
                    raise MachineError(f"QEMU did not open {path}") from None
                time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """Ends the machine at once and removes its folder. Harmless when repeated."""
        for handle in (self._control, self._qmp):
            if handle:
                handle.close()
        if self._process:
            self._process.kill()
            self._process.wait()
            self._errors.close()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def resets(self):
        """What QEMU wrote of resets of the machine's CPUs, and of triple faults."""
        with open(f"{self.folder}/resets", errors="replace") as f:
            return f.read()

    def _failure(self, text):
        if "int3: 0000" in self.serial():
            return EmulatorFault("the emulator ran a stale translation of code that the machine's "
                                 "kernel had just patched, and that kernel died")
        if "Triple fault" in self.resets() and not LAST_WORDS.search(self.serial()):
            return EmulatorFault("a CPU of the machine met a triple fault, says QEMU, and its kernel had "
                                 "neither died nor been asked to reboot")
        return MachineError(text)

    def guest_failure(self, text):
        """The error to raise where a command failed, perhaps because the guest of this machine had died."""
        _, said = self.run_bytes(f"tail -c 6000 '{self.guest_console}'")
        said = said.decode(errors="replace").strip()
        if "int3: 0000" in said:
            return EmulatorFault("the emulator ran a stale translation of code that the nested guest's "
                                 "kernel had just patched, and that kernel died")
        ended, _ = self.run_bytes(f"test -S '{os.path.dirname(self.guest_console)}/control'")
        if ended and not LAST_WORDS.search(said):
            # It runs with -no-reboot, and nothing here ends it: a triple fault.
            return EmulatorFault("the nested guest was reset, and its kernel had neither died nor been asked to reboot")
        return MachineError(f"{text}; the console of its guest ends: {said[-3000:]}")

    def _gone(self):
        """The machine's end of the control port is closed: it powered off, or its QEMU died."""
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return self._failure(f"the machine closed its control port; its console ends: {self.serial()[-3000:]}")
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-1000:]
        if status in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
            return EmulatorFault(f"the emulator died of {signal.Signals(-status).name}: {said}")
        return self._failure(f"the machine is gone: QEMU ended with {status}: {said}; its console ends: "
                             f"{self.serial()[-3000:]}")

    def _still_check(self):
        """A machine whose CPUs all run, and are found at the same few addresses of their kernel whenever one
        looks: not even its watchdog speaks, because both CPUs meet the same breakpoint for ever."""
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since, self._places = now, {}
        if now - self._silent_since < SILENT_S:
            return
        self._trap_check()
        found = self._registers()
        for address, halted in found:
            if halted == "1" or not address.startswith("ffffffff"):
                self._silent_since = None
                return
            self._places[address] = self._places.get(address, 0) + 1
        if found and len(self._places) <= STUCK_PLACES and now - self._silent_since > SILENT_S + STUCK_S:
            raise EmulatorFault(f"for {STUCK_S} s the CPUs of the machine have been at {len(self._places)} addresses "
                                "only: the emulator ran a stale translation of code that was just patched")

    def _trap_check(self):
        """A CPU that takes breakpoint exceptions all the time, with its interrupts off, at an address that has no
        breakpoint in memory: the proof of a stale translation."""
        samples = [self._flags() for _ in range(TRAP_SAMPLES)]
        for cpu in zip(*samples):
            if any(int(flags, 16) & 0x200 or halted == "1" for _, flags, halted, _ in cpu):
                continue
            places = collections.Counter(address for address, *_ in cpu)
            trap = self._gate(cpu[0][3], TRAP_VECTOR)
            for address, n in places.most_common(3):
                if (places[trap] * 20 >= TRAP_SAMPLES and n * 10 >= TRAP_SAMPLES and address != trap
                        and address.startswith("ffffffff") and self._memory(address, "1xb") != ["0xcc"]):
                    raise EmulatorFault(
                        f"a CPU of the machine meets a breakpoint at {address} again and again ({n} of {TRAP_SAMPLES} "
                        "samples), where its memory has none: the emulator runs a stale translation of code that was "
                        "just patched")

    def _monitor(self, line):
        return self.qmp("human-monitor-command", **{"command-line": line})

    def _flags(self):
        """[(address, flags, "1" if halted, address of the IDT)] of each vCPU."""
        return re.findall(r"RIP=(\w+) RFL=(\w+) .*HLT=(\d)(?:.|\n)*?IDT= +(\w+)", self._monitor("info registers -a"))

    def _memory(self, address, what):
        return re.findall(r"0x\w+", self._monitor(f"x /{what} 0x{address}").partition(":")[2])

    def _gate(self, idt, vector):
        """The handler of an interrupt vector, as in the Intel SDM, volume 3, 6.14.1."""
        words = [int(w, 16) for w in self._memory(f"{int(idt, 16) + 16 * vector:016x}", "2xg")]
        if len(words) != 2:
            return ""
        return f"{words[1] << 32 & (1 << 64) - 1 | words[0] >> 32 & 0xffff0000 | words[0] & 0xffff:016x}"

    def _stuck_check(self):
        """The emulator loses an interrupt now and then; then one of the machine's CPUs waits for another
        for ever, as its own watchdog says. What the tests provoke takes half as long."""
        for seconds in re.findall(r"soft lockup - CPU#\d+ stuck for (\d+)s", self.serial()):
            if int(seconds) >= STUCK_S:
                raise EmulatorFault(f"a CPU of the machine has stood still for {seconds} s, as its kernel "
                                    "says: the emulator lost an interrupt")
        stall = re.search(r"rcu: INFO: rcu_\w+ (?:self-)?detected stalls? on .*(?:\n.*){0,60}", self.serial())
        if stall:
            # Where the CPU stood tells a lost interrupt from a fault of the program under test.
            raise EmulatorFault("a CPU of the machine has stood still for 21 s, as its kernel says: the emulator "
                                f"lost an interrupt. The kernel's words: {stall[0]}")

    def _where(self):
        """Where the vCPUs are, for the report of a machine that does not answer."""
        try:
            found = self._registers()
        except (OSError, ValueError, MachineError) as error:
            return f"QEMU does not answer either: {error}"
        return "its vCPUs are at " + ", ".join(f"{rip} {'halted' if halted == '1' else 'running'}"
                                               for rip, halted in found)

    def _registers(self):
        """[(address, "1" if halted)] of each vCPU."""
        return re.findall(r"RIP=(\w+) .*HLT=(\d)", self._monitor("info registers -a"))

    def _unfinished(self, command, how, output, kind):
        said = b"".join(output).decode(errors="replace")[-3000:]
        return kind(f"'{command}' {how}; {self._where()}; it had said: {said}; "
                    f"the console ends: {self.serial()[-3000:]}")

    def _receive(self, deadline, n=None):
        """A line, or n bytes, from the control port. What a timeout interrupts stays buffered."""
        def complete():
            return b"\n" in self._received if n is None else len(self._received) >= n

        while not complete():
            left_s = max(deadline - time.monotonic(), 0.001)
            self._control.settimeout(min(left_s, LOOK_S))
            try:
                more = self._control.recv(65536)
            except ConnectionError:
                more = b""
            except TimeoutError:
                self._stuck_check()
                self._still_check()
                if left_s <= LOOK_S:
                    raise
                continue
            self._silent_since = None
            if not more:
                raise self._gone()
            self._received += more
        data = bytes(self._received[:self._received.index(b"\n") + 1 if n is None else n])
        del self._received[:len(data)]
        return data

    def run_bytes(self, command, *, stdin=b"", timeout_s=60, live=None):
        """Runs `command` with sh: (exit status, output). `live(bytes)` gets output as it comes
        instead. The limit is kept inside: the machine itself tells that it is over. The protocol is
        described in bed-control.c."""
        limit_s = max(1, math.ceil(timeout_s))
        begin = time.monotonic()
        self._request += 1
        text = f"timeout {limit_s} sh -c {shlex.quote(command)}".encode()
        self._control.settimeout(timeout_s)
        try:
            self._control.sendall(b"run %d %d %d\n" % (self._request, len(text), len(stdin)) + text + stdin)
        except ConnectionError:
            raise self._gone() from None
        output = []
        try:
            status = self._reply(begin + limit_s + ANSWER_MAX_S, live or output.append)
        except TimeoutError:
            raise self._unfinished(command, "has no answer: the machine stands still", output,
                                   EmulatorFault) from None
        if status in TIMED_OUT and time.monotonic() - begin >= limit_s:
            raise self._unfinished(command, f"did not end in {limit_s} s", output, MachineError)
        return status, b"".join(output)

    def _reply(self, deadline, take):
        """The exit status of the last request; `take(bytes)` gets its output."""
        while True:
            word, request, number = self._receive(deadline).split()
            mine = int(request) == self._request
            if word != b"exit":
                chunk = self._receive(deadline, int(number))
                if mine:
                    take(chunk)
            elif mine:
                return int(number)

    def run(self, command, *, timeout_s=60, check=True):
        """The output of `command` as text; MachineError if it fails."""
        status, output = self.run_bytes(command, timeout_s=timeout_s)
        text = output.decode(errors="replace")
        if check and status:
            self._stuck_check()
            text = f"'{command}' ended with {status}: {text.strip()[-3000:]}"
            raise self.guest_failure(text) if self.guest_console else MachineError(text)
        return text

    def put(self, path, content, mode=0o644):
        """Writes a file inside."""
        status, output = self.run_bytes(f"cat >'{path}' && chmod {mode:o} '{path}'", stdin=content)
        if status:
            raise MachineError(f"cannot write {path}: {output.decode(errors='replace').strip()}")

    def get(self, path):
        """The content of a file inside."""
        status, output = self.run_bytes(f"cat '{path}'", timeout_s=300)
        if status:
            raise MachineError(f"cannot read {path}: {output.decode(errors='replace').strip()}")
        return output

    def get_folder(self, path, target):
        """Copies a folder's content out."""
        os.makedirs(target, exist_ok=True)
        status, archive = self.run_bytes(f"tar -C '{path}' -cf - .", timeout_s=300)
        if status:
            raise MachineError(f"cannot read folder {path}")
        subprocess.run(["tar", "-C", target, "--no-same-owner", "-xf", "-"], input=archive, check=True)

    def qmp(self, command, **arguments):
        request = {"execute": command, "arguments": arguments} if arguments else {"execute": command}
        with self._qmp_lock:
            self._qmp.write(json.dumps(request) + "\n")
            self._qmp.flush()
            while True:
                reply = json.loads(self._qmp.readline() or '{"error": "QEMU closed the socket"}')
                if "return" in reply:
                    return reply["return"]
                if "error" in reply:
                    raise MachineError(f"QMP {command}: {reply['error']}")

    def vcpu_threads(self):
        """{vCPU index: thread id on this machine}"""
        return {c["cpu-index"]: c["thread-id"] for c in self.qmp("query-cpus-fast")}

    def serial(self):
        try:
            with open(self.serial_path, errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""
