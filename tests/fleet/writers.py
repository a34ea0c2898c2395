# SPDX-License-Identifier: GPL-2.0-only
"""What fills the outbox in test_carriers.py, and knows what it has written: outbox-writer, or a daemon whose fake
VMs are stopped all the time. Each has start(), killed(), fill(), write_few(), complete(), said(), and knows its lines."""
import json
import os
import pathlib
import pwd
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e/daemon"))
import daemon_rig

USER = "nobody"  # of the shipper, if this runs as root
LONG_LINE = 1000


class Numbers:
    """outbox-writer: each line has a number, which it prints after the line is written."""
    START_S = 0

    def __init__(self, build):
        self.build, self.outbox, self.count, self.next = build, None, 0, 0

    def settings(self, folder):
        self.outbox = folder / "outbox"
        return ""

    def prepare(self, folder, config):
        pass

    def start(self, count=0, line_bytes=100):
        group = [str(pwd.getpwnam(USER).pw_gid)] if not os.geteuid() else []
        words = [self.outbox, str(self.next), str(count), str(line_bytes), *group]
        return subprocess.Popen([self.build / "tests/fleet/outbox-writer", *words], stdout=subprocess.PIPE)

    def take(self, printed):
        numbers = [int(n) for n in printed.split(b"\n")[:-1] if n]
        self.count += len(numbers)
        if numbers:
            self.next = max(self.next, numbers[-1] + 1)

    def killed(self, process):
        self.take(process.communicate()[0])
        self.next += 1  # that line may be in a file, although nobody said so

    def write(self, count, line_bytes):
        done = self.start(count, line_bytes)
        printed, _ = done.communicate(timeout=120)
        assert done.returncode == 0, done.returncode
        self.take(printed)

    def fill(self, least_bytes):
        self.write(least_bytes // LONG_LINE, LONG_LINE)

    def write_few(self):
        self.write(50, 100)

    def complete(self):
        """Losses are reported, segments complete."""
        self.write(1, 10)

    def said(self):
        return self.count

    def key(self, line):
        return line["n"]

    def loss(self, line):
        return (line["loss"], line["lines"]) if "loss" in line else None

    def close(self):
        pass


class Daemon:
    """The daemon. write-log.so in it keeps each line that it has written or failed to write to a segment."""
    START_S = 2  # until it writes
    VMS, VCPUS, STOP_S, RUN_S = 2, 8, 0.04, 0.06

    def __init__(self, build):
        self.build, self.vms, self.ending = build, [], threading.Event()
        self.stopping = threading.Event()
        self.config = self.log = self.messages = None
        daemon_rig.FAKE_VMM = build / "tests/e2e/daemon/fake-vmm"
        self.vms = [daemon_rig.FakeVm(f"vm{i}", self.VCPUS) for i in range(self.VMS)]
        self.stopping.set()
        self.stopper = threading.Thread(target=self.stop_vms, daemon=True)
        self.stopper.start()

    def stop_vms(self):
        while not self.ending.is_set():
            if not self.stopping.wait(0.1):
                continue
            for which, seconds in ((signal.SIGSTOP, self.STOP_S), (signal.SIGCONT, self.RUN_S)):
                for vm in self.vms:
                    os.kill(vm.pid, which)
                time.sleep(seconds)

    def settings(self, folder):
        self.log, self.messages = folder / "written", folder / "messages"
        text = f"control = {folder}/control\nfigures_every = no\noutbox_rate = 1000000\n"
        return text + "".join(f"[vm vm{i}]\npid = {vm.pid}\nstall = 20ms\nflight_time = 1s\n"
                              for i, vm in enumerate(self.vms))

    def prepare(self, folder, config):
        self.config = config

    def start(self):
        with open(self.messages, "ab") as messages:
            return subprocess.Popen(
                [self.build / "host-collector/vcpuscope", "daemon", "--config", self.config], stderr=messages,
                env={**os.environ, "LD_PRELOAD": str(self.build / "tests/fleet/libwrite-log.so"),
                     "WRITE_LOG": str(self.log)})

    def killed(self, process):
        process.wait()

    def lines(self):
        """(whether it was written, the line), of both kinds of lines."""
        if not self.log.exists():
            return []
        return [said for line in self.log.read_text().splitlines() for said in self.parsed(line)]

    @staticmethod
    def parsed(line):
        """A line of the log. The last one of a process that was killed may be cut, and the next process appends
        its first one to that."""
        begin = max(line.rfind('+{"schema"'), line.rfind('-{"schema"'))
        if begin >= 0 and line.endswith("}"):
            yield line[begin] == "+", json.loads(line[begin + 1:])

    def until(self, what, condition):
        process = self.start()
        try:
            daemon_rig.until(what, lambda: process.poll() is not None or condition(), 120)
            assert process.poll() is None, self.messages.read_text()[-2000:]
        finally:
            process.terminate()
            process.wait(60)

    def fill(self, _least_bytes):
        before = sum(not ok for ok, _ in self.lines())
        self.until("the disk is full", lambda: sum(not ok for ok, _ in self.lines()) > before + 50)

    def write_few(self):
        before = len(self.lines())
        self.until("lines are written", lambda: len(self.lines()) > before + 50)

    def complete(self):
        """Losses are reported, segments complete; nothing new happens."""
        self.stopping.clear()
        time.sleep(2 * (self.STOP_S + self.RUN_S))
        process = self.start()
        time.sleep(self.START_S + 3)
        process.terminate()
        assert process.wait(60) == 0, self.messages.read_text()[-2000:]
        self.stopping.set()

    def said(self):
        return len({self.key(line) for _, line in self.lines() if not self.loss(line)})

    def key(self, line):
        return line["incident_id"], line["seq"]

    def loss(self, line):
        if line["record"] != "loss":
            return None
        return line["incident_id"], sum(line[f"lost_{kind}"] for kind in ("incidents", "figures", "evidence"))

    def close(self):
        self.ending.set()
        self.stopper.join()
        for vm in self.vms:
            os.kill(vm.pid, signal.SIGCONT)
            vm.end()
