# SPDX-License-Identifier: GPL-2.0-only
"""Runs a daemon in a temporary folder, and processes that look like VMs to it."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import state_times

BUILD = pathlib.Path(os.environ.get("VCPUSCOPE_BUILD", "build"))
# Benchmarks measure the programs as they are shipped, which another build has.
PROGRAM = pathlib.Path(os.environ.get("VCPUSCOPE_PROGRAMS") or BUILD) / "host-collector/vcpuscope"
FAKE_VMM = BUILD / "tests/e2e/daemon/fake-vmm"


def skip_unless_possible():
    if os.geteuid():
        print("skipped: the daemon captures the host's events, which needs root")
        sys.exit(77)


def until(what, condition, seconds=30):
    """Waits for condition() to be true, and returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s still not: {what}")
        time.sleep(0.05)


class FakeVm:
    """sleep_us: its vCPUs sleep so long at a time. port: they sleep until a byte comes to the UDP port
    self.port. vsock: the path of its vsock device, which it carries as Firecracker does; its guest connects
    to vsock + ".guest". guest_port: at which that guest listens; 0: it connects to the host's."""

    def __init__(self, name, vcpus=1, port=False, vsock=None, guest_port=0, sleep_us=0):
        more = [str(sleep_us)] * (sleep_us != 0)
        more += ["port"] * (port or vsock is not None) + [str(vsock)] * (vsock is not None)
        more += [str(guest_port)] * (guest_port != 0)
        self.process = subprocess.Popen([FAKE_VMM, name, str(vcpus), *more],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().split()[1])
        self.pid = self.process.pid

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Daemon:
    """config: the text of [vm ..] sections; settings: lines of [daemon]."""

    def __init__(self, config="", settings="", environment=None, program=PROGRAM):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-daemon-", dir="/tmp"))
        self.control = self.folder / "control"
        self.recordings = self.folder / "recordings"
        self.log = self.folder / "log"
        self.settings = settings
        self.environment = environment
        self.program = program
        self.process = None
        self.configure(config)

    def configure(self, config):
        (self.folder / "conf").write_text(
            f"[daemon]\ncontrol = {self.control}\ndirectory = {self.recordings}\n"
            f"{self.settings}\n{config}\n")

    def start(self, preexec_fn=None):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "daemon", "--config", self.folder / "conf"], stderr=log,
                env={**os.environ, **(self.environment or {})}, preexec_fn=preexec_fn)
        until("the daemon answers", lambda: self.process.poll() is not None or self.answers())
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended: {self.log.read_text()}")
        return self

    def answers(self):
        return not subprocess.run([PROGRAM, "ctl", "status", "--control", self.control],
                                  capture_output=True).returncode

    def ctl(self, *words):
        return subprocess.run([PROGRAM, "ctl", *map(str, words), "--control", self.control],
                              capture_output=True, text=True)

    def ask(self, *words):
        done = self.ctl(*words, "--format", "json")
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    def vm(self, name):
        for vm in self.ask("list")["vms"]:
            if vm["vm"] == name:
                return vm
        return None

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
        if self.process:
            self.process.wait()
        self.process = None

    def clean(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def report_json(path):
    done = subprocess.run([PROGRAM, "report", path, "--format", "json"], capture_output=True,
                          text=True)
    assert done.returncode in state_times.REPORTED, done.stderr
    return state_times.check(json.loads(done.stdout))
