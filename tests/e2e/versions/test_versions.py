#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Host and agent of different versions: builds an earlier revision from the history, and lets its agent send to this
tree's daemon, and this tree's agent to its daemon, over a Unix socket and over TCP with TLS. The agent captures this
machine's kernel while many short processes run. No event is lost on the way, and the decoder never dies. This tree's
`report` reads the recording of the earlier daemon, and finds what the earlier `report` finds.

--full or VCPUSCOPE_TEST_FULL=1: also with a second revision, and the test of the carriers (virtio-serial, vsock and TLS
between a real KVM guest and its host) with the earlier programs on one side and this tree's on the other.
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "bench"), str(HERE.parent / "daemon")]
import figures  # noqa: E402
from daemon_rig import BUILD, Daemon, FakeVm, skip_unless_possible, until  # noqa: E402
from file_account import file_account  # noqa: E402
from revision import Absent, Revision, Unusable  # noqa: E402

# The last release, and the last revision whose agent does not send a batch in two compressed parts.
REVISIONS = ("8899f640f80a", "f5da1d9bd5b4")
TARGETS = ("vcpuscope", "vcpuscope-agent", "vcpuscope-agent-tls", "carry-agent")
# Nobody measures the earlier programs, so they are built fast.
CONFIGURE = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug")
SECONDS, EVENTS_MIN = 4, 2000
KEY = f"vm0:{'5a' * 32}\n"
LOSSES = ("emitted", "delivered", "dropped_kernel", "dropped_user", "lost_channel")
CALM = "stall = 60s\nblocked = no\nrunnable = no\nsteal = no\n"


class Pair:
    """The daemon of one build and the agent of another, which are connected over `carrier`."""

    def __init__(self, carrier, host, agent):
        self._host, self._agent_program = host / "host-collector/vcpuscope", agent / "guest-agent/vcpuscope-agent"
        self._vm, self._agent = FakeVm("vm0", 1, port=True), None
        self._daemon = Daemon(program=self._host)
        key = self._daemon.folder / "psk"
        key.write_text(KEY)
        key.chmod(0o600)
        address, more = f"unix:{self._daemon.folder}/agent", []
        config = f"channel = listen:{address}\n"
        if carrier == "tls":
            address, more = f"tls:127.0.0.1:{free_port()}", ["--psk", key]
            config = f"channel = listen:{address}\npsk = {key}\n"
        self._connect = ["--connect", address, *more]
        self._daemon.configure(f"[vm vm0]\npid = {self._vm.pid}\n{config}record = yes\nflight = no\n{CALM}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._agent:
            figures.end(self._agent)
        self._vm.end()
        self._daemon.clean()

    def _said(self):
        return (self._daemon.folder / "agent.log").read_text(errors="replace") + self._daemon.log.read_text()

    def record(self):
        """Path of a recording of SECONDS s, which has everything that the agent sent. Raises AssertionError."""
        self._daemon.start()
        with open(self._daemon.folder / "agent.log", "wb") as log:
            self._agent = figures.start([self._agent_program, *self._connect], stderr=log)
        try:
            until("the agent's events come", lambda: self._daemon.vm("vm0").get("guest_emitted", 0))
        except AssertionError as e:
            raise AssertionError(f"{e}: {self._said()}") from None
        load = figures.start(["sh", "-c", "while :; do : | :; done"], stderr=subprocess.DEVNULL)
        time.sleep(SECONDS)
        figures.end(load)
        self._agent.send_signal(signal.SIGTERM)
        self._agent.wait(30)
        vm = until("the agent has gone", lambda: (vm := self._daemon.vm("vm0"))["channel"] != "ok" and vm)
        if vm["link"]["decoder_deaths"]:
            raise AssertionError(f"a decoder died: {self._said()}")
        path = pathlib.Path(vm["file"])
        self._daemon.ctl("record", "vm0", "stop")
        return path

    def report(self, path):
        """The losses of the guest, as the daemon's own `report` finds them."""
        done = subprocess.run([self._host, "report", path, "--format", "json"], capture_output=True, text=True)
        return next((loss for source, loss in json.loads(done.stdout)["loss"].items() if source != "host"), None)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def check(what, carrier, host, agent):
    """Problems of one pair; prints its figures."""
    with Pair(carrier, host, agent) as pair:
        try:
            path = pair.record()
        except AssertionError as e:
            return [f"{what}: {e}"]
        problems, said, _ = file_account("vm0", path)
        if not said:
            return [f"{what}: nothing of the guest is recorded"]
        own = pair.report(path)
        print(f"{what}: " + ", ".join(f"{said[part]} {part}" for part in LOSSES), flush=True)
        if said["delivered"] < EVENTS_MIN:
            problems.append(f"only {said['delivered']} events came")
        if said["lost_channel"]:
            problems.append(f"{said['lost_channel']} events were lost on the way")
        if not own or any(own[part] != said[part] for part in LOSSES):
            problems.append(f"this report finds {said}, the daemon's own {own}")
        return [f"{what}: {problem}" for problem in problems]


def carriers(what, host, agent):
    """The test of the carriers with these builds."""
    done = subprocess.run([sys.executable, HERE.parent / "carriers/test_carriers.py", "--collector", host, "--agent", agent],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "VCPUSCOPE_BUILD": str(BUILD), "VCPUSCOPE_TEST_FULL": "0"})
    print(f"{what}, carriers:\n{done.stdout}", flush=True)
    return [f"{what}: the test of the carriers failed"] if done.returncode else []


def check_revision(rev, full):
    problems = []
    with Revision(rev, TARGETS, CONFIGURE) as earlier:
        for what, host, agent in ((f"agent of {rev}", BUILD.resolve(), earlier.path),
                                  (f"host of {rev}", earlier.path, BUILD.resolve())):
            for carrier in ("unix", "tls"):
                problems += check(f"{what}, {carrier}", carrier, host, agent)
            if full:
                problems += carriers(what, host, agent)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", default=os.environ.get("VCPUSCOPE_TEST_FULL") == "1")
    o = parser.parse_args()
    figures.end_by_signals()
    figures.adopt_orphans()
    skip_unless_possible()
    problems = []
    try:
        for rev in REVISIONS if o.full else REVISIONS[:1]:
            problems += check_revision(rev, o.full)
    except Absent as e:
        print(f"skipped: {e}")
        return 77
    except Unusable as e:
        problems.append(str(e))
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
