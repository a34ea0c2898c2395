#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""`record` ends within 5 s of Ctrl-C and leaves a readable file, under all these conditions: a peer is
silent, a decoder or a VM is stopped, the disk is full, tasks use all CPUs, or switches flood the capture.
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from daemon_rig import PROGRAM, FakeVm, skip_unless_possible, until

WITHIN_S = 5
FLOOD = """
import os
a, b = os.pipe()
c, d = os.pipe()
if os.fork():
    while os.write(b, b"x"): os.read(c, 1)
else:
    while os.read(a, 1): os.write(d, b"x")
"""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(x) for x in f.read().split()]


class Recording:
    def __init__(self, case, channel=None, limit_bytes=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-end-", dir="/tmp"))
        case.addCleanup(shutil.rmtree, self.folder, True)
        self.vm = FakeVm("web1")
        case.addCleanup(self.vm.end)
        self.path = self.folder / "run.vcs"
        self.log = self.folder / "log"
        limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))) \
            if limit_bytes else None
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "record", "--pid", str(self.vm.pid), "-o", self.path,
                 *(["--channel", channel] if channel else ["--no-guest"])],
                stderr=log, preexec_fn=limit)
        case.addCleanup(self.process.wait)
        case.addCleanup(self.process.kill)

    def ready(self):
        """A file that is too large ends it by itself."""
        until("it records", lambda: self.path.exists() and self.path.stat().st_size > 8000 or
              self.process.poll() is not None)

    def interrupt(self):
        self.began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def check(self, case, name, status=0):
        code = self.process.wait(60)
        took = time.monotonic() - self.began
        print(f"{name}: ended {took:.2f} s after Ctrl-C")
        case.assertLess(took, WITHIN_S, name)
        case.assertEqual(code, status, self.log.read_text())
        done = subprocess.run([PROGRAM, "report", self.path, "--format", "json"], capture_output=True,
                              text=True)
        case.assertIn(done.returncode, (0, 5), done.stderr)  # 5: too little was seen to tell
        report = json.loads(done.stdout)
        case.assertTrue(report["complete"] or status, name)
        case.assertGreater(report["loss"]["host"]["delivered"], 0)


class EndTest(unittest.TestCase):
    def test_whatever_hangs(self):
        peers = []
        for _ in range(2):
            peer = socket.socket(socket.AF_UNIX)
            self.addCleanup(peer.close)
            folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-end-", dir="/tmp"))
            self.addCleanup(shutil.rmtree, folder, True)
            peer.bind(str(folder / "peer"))
            peer.listen()
            peers.append(f"unix:{folder}/peer")
        silent, decoder = (Recording(self, channel=peer) for peer in peers)
        stopped, full = Recording(self), Recording(self, limit_bytes=12000)
        for recording in (silent, decoder, stopped, full):
            recording.ready()
        for child in until("its decoder runs", lambda: children(decoder.process.pid)):
            os.kill(child, signal.SIGSTOP)
        os.kill(stopped.vm.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, stopped.vm.pid, signal.SIGCONT)
        until("the file is full", lambda: full.process.poll() is not None or "too large" in full.log.read_text())
        for recording in (silent, decoder, stopped, full):
            recording.interrupt()
        silent.check(self, "a silent peer")
        decoder.check(self, "a stopped decoder")
        stopped.check(self, "a stopped VM")
        full.check(self, "a full disk", status=1)

    def test_no_cpu_is_left(self):
        recording = Recording(self)
        recording.ready()
        load = []
        for cpu in sorted(os.sched_getaffinity(0)):
            load.append(subprocess.Popen(["chrt", "-f", "10", "taskset", "-c", str(cpu), "sh", "-c",
                                          "while :; do :; done"]))
        load.append(subprocess.Popen(["python3", "-c", FLOOD]))
        try:
            time.sleep(0.5)
            recording.interrupt()
            recording.check(self, "busy CPUs")
        finally:
            for process in load:
                for pid in [*children(process.pid), process.pid]:
                    os.kill(pid, signal.SIGKILL)
                process.wait()
        # What still detached probes then does not stay.
        until("the last process ends", lambda: not subprocess.run(["pgrep", "-x", "vcpuscope-end"],
                                                                  capture_output=True).stdout, 60)


if __name__ == "__main__":
    skip_unless_possible()
    unittest.main()
