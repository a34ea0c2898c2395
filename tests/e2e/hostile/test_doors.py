#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests what other users can do to the collector through the sockets on which it listens and to which it
connects. A thousand connections that send nothing do not keep an agent out. A path that is not a socket is
not removed. A monitor that lies or does not answer leads to no other process and delays nothing.
"""
import contextlib
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
from daemon_rig import BUILD, Daemon, FakeVm, PROGRAM, skip_unless_possible, until  # noqa: E402

AGENT = BUILD / "guest-agent/vcpuscope-agent"
SILENT = 1000
HEARD_MAX_S = 2  # beside them, from the agent's start
AGENT_START_S = 3  # until it dials: it loads its programs first
RECORD_END_MAX_S = 15


class Strangers(threading.Thread):
    """Keeps `n` connections to an address open, and replaces each that is closed. `first` is all that
    each of them says."""

    def __init__(self, family, address, n, first=b""):
        super().__init__(daemon=True)
        self.family, self.address, self.n, self.first = family, address, n, first
        self.over, self.dialled = False, 0
        self.all = {}
        self.poll = select.poll()
        self.start()

    def dial(self):
        s = socket.socket(self.family)
        s.setblocking(False)
        try:
            s.connect(self.address)
        except BlockingIOError:
            pass
        except OSError:
            s.close()
            return False
        self.all[s.fileno()] = s
        self.poll.register(s, select.POLLIN | select.POLLOUT if self.first else select.POLLIN)
        self.dialled += 1
        return True

    def run(self):
        while not self.over:
            while len(self.all) < self.n and self.dial():
                pass
            for fd, events in self.poll.poll(10):
                if events & select.POLLOUT:
                    self.poll.modify(fd, select.POLLIN)
                    with contextlib.suppress(OSError):
                        self.all[fd].send(self.first)
                if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    try:
                        gone = not self.all[fd].recv(4096)
                    except OSError:
                        gone = True
                    if gone:
                        self.poll.unregister(fd)
                        self.all.pop(fd).close()

    def end(self):
        self.over = True
        self.join()
        for s in self.all.values():
            s.close()


class Monitor(threading.Thread):
    """What serves a QMP socket, and tells of threads that are not its own. `how`: "lies", "silent" (not
    even a greeting), "deaf" (a greeting, no answer), "endless" (a greeting without an end)."""

    def __init__(self, path, how, tid):
        super().__init__(daemon=True)
        self.how, self.tid, self.over, self.clients = how, tid, False, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.clients.append(client)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError):
            if self.how == "silent":
                return
            if self.how == "endless":
                while not self.over:
                    client.sendall(b'{"QMP": "' + b"x" * 65536)
            client.sendall(b'{"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": []}}\r\n')
            for line in client.makefile():
                if self.how == "lies":
                    client.sendall((json.dumps({"return": self.answer(json.loads(line))}) + "\r\n").encode())

    def answer(self, request):
        if request["execute"] == "query-cpus-fast":
            return [{"cpu-index": 0, "thread-id": self.tid, "target": "x86_64", "qom-path": "/machine/cpu"}]
        return {"name": "somebody-else"} if request["execute"] == "query-name" else {}

    def end(self):
        self.over = True
        self.listener.close()
        for client in self.clients:
            client.close()


class Doors(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-doors-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.vm = FakeVm("victim")
        self.addCleanup(self.vm.end)

    def start(self, *words, **more):
        process = subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, **more)

        def reap():
            process.kill()
            process.wait()
        self.addCleanup(reap)
        return process

    def record(self, *words):
        """A recorder, and what reads its messages."""
        log = self.folder / "record.log"
        with open(log, "wb") as out:
            process = self.start(PROGRAM, "record", "-o", self.folder / "run.vcs", *words, stdout=out, stderr=out)
        return process, lambda: log.read_text(errors="replace")

    def agent_beside(self, family, address, first, channel, connect, *psk):
        """How long an agent needs to be heard beside strangers."""
        process, said = self.record("--pid", self.vm.pid, "--channel", channel, *psk)
        until("it listens", lambda: self.listens(family, address))
        strangers = Strangers(family, address, SILENT, first)
        self.addCleanup(strangers.end)
        until("they have dialled", lambda: strangers.dialled >= min(SILENT, 100))
        begin = time.monotonic()
        agent = self.start(AGENT, "--connect", connect, "--no-realtime", *psk, stderr=subprocess.DEVNULL)
        until("the agent is heard", lambda: "on guest kernel" in said(), 30)
        took = time.monotonic() - begin
        agent.terminate()
        agent.wait()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(RECORD_END_MAX_S), 0, said())
        print(f"{channel.split(':')[1]}, first {first[:1]!r}: heard after {took:.1f} s, "
              f"{strangers.dialled} connections by strangers, {len(said().splitlines())} lines", flush=True)
        self.assertLess(took, HEARD_MAX_S + AGENT_START_S)
        self.assertLess(len(said().splitlines()), 60, said())

    @staticmethod
    def listens(family, address):
        if family == socket.AF_UNIX:
            return os.path.exists(address)
        rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        return any(row.split()[1].endswith(f":{address[1]:04X}") and row.split()[3] == "0A" for row in rows)

    @staticmethod
    def free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def test_silent_strangers_do_not_keep_an_agent_with_a_key_out(self):
        psk = self.folder / "psk"
        psk.write_text(f"victim:{'5a' * 32}\n")
        psk.chmod(0o600)
        for first in (b"", b"\x16", b"GET / HTTP/1.0\r\n\r\n"):
            with self.subTest(first):
                port = self.free_port()
                self.agent_beside(socket.AF_INET, ("127.0.0.1", port), first, f"listen:tls:127.0.0.1:{port}",
                                  f"tls:127.0.0.1:{port}", "--psk", psk)

    def test_nor_from_a_plain_port(self):
        port, path = self.free_port(), str(self.folder / "door")
        with self.subTest("tcp"):
            self.agent_beside(socket.AF_INET, ("127.0.0.1", port), b"", f"listen:tcp:127.0.0.1:{port}",
                              f"tcp:127.0.0.1:{port}")
        with self.subTest("unix"):
            self.agent_beside(socket.AF_UNIX, path, b"", f"listen:unix:{path}", f"unix:{path}")

    def wrong_paths(self):
        """[(a path that is no dead socket, whether it is still what it was)]"""
        text = self.folder / "text"
        text.write_text("precious\n")
        link = self.folder / "link"
        link.symlink_to(text)
        fifo, inner = self.folder / "fifo", self.folder / "inner"
        os.mkfifo(fifo)
        inner.mkdir()
        live = socket.socket(socket.AF_UNIX)
        self.addCleanup(live.close)
        live.bind(str(self.folder / "live"))
        live.listen()
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(self.folder / "dead"))
        dead.close()
        to_dead = self.folder / "to-dead"
        to_dead.symlink_to(self.folder / "dead")
        return [(text, lambda: text.read_text() == "precious\n"),
                (link, lambda: link.is_symlink() and text.read_text() == "precious\n"),
                (fifo, fifo.is_fifo), (inner, inner.is_dir),
                (self.folder / "live", lambda: (self.folder / "live").is_socket()),
                (to_dead, to_dead.is_symlink)]

    def test_what_is_no_dead_socket_is_not_removed(self):
        for path, is_there in self.wrong_paths():
            with self.subTest(path.name, by="record"):
                process, said = self.record("--pid", self.vm.pid, "--channel", f"listen:unix:{path}")
                time.sleep(1.5)
                process.send_signal(signal.SIGINT)
                process.wait(RECORD_END_MAX_S)
                self.assertTrue(is_there(), said())
                self.assertIn(path.name, said())
            with self.subTest(path.name, by="daemon"):
                d = Daemon(f"[vm victim]\npid = {self.vm.pid}\n", settings=f"agents = {path}")
                self.addCleanup(d.clean)
                with contextlib.suppress(AssertionError):
                    d.start()
                d.stop()
                self.assertTrue(is_there(), d.log.read_text())
        dead = self.folder / "dead"
        self.assertTrue(dead.is_socket())
        process, said = self.record("--pid", self.vm.pid, "--channel", f"listen:unix:{dead}")
        until("a dead socket is replaced", lambda: self.connects(dead))

    @staticmethod
    def connects(path):
        with socket.socket(socket.AF_UNIX) as s:
            return not s.connect_ex(str(path))

    def test_a_monitor_leads_to_no_other_process(self):
        other = FakeVm("other")
        self.addCleanup(other.end)
        tids = {"a vCPU of another VM": other.pid + 1, "nobody": 0x7ffffff0}
        for name, tid in tids.items():
            for words in ((), ("--pid", self.vm.pid)):
                with self.subTest(name, pid=bool(words)):
                    path = self.folder / "qmp"
                    monitor = Monitor(path, "lies", tid)
                    process, said = self.record("--qmp", path, "--no-guest", "--for", "3s", *words)
                    process.wait(RECORD_END_MAX_S)
                    monitor.end()
                    path.unlink()
                    # Not even beside --pid: a monitor that lies is no witness.
                    self.assertNotEqual(process.returncode, 0, said())
                    self.assertIn(str(path), said())
                    self.assertNotIn("somebody-else", said())

    def test_a_monitor_that_stands_still_holds_nothing_up(self):
        for how in ("silent", "deaf", "endless"):
            with self.subTest(how):
                path = self.folder / "qmp"
                monitor = Monitor(path, how, 1)
                begin = time.monotonic()
                process, said = self.record("--pid", self.vm.pid, "--qmp", path, "--no-guest", "--for", "1s")
                process.wait(30)
                took = time.monotonic() - begin
                used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
                monitor.end()
                path.unlink()
                print(f"monitor {how}: {took:.1f} s, {used} MiB, exit {process.returncode}: {said()[-200:]}",
                      flush=True)
                self.assertLess(took, RECORD_END_MAX_S)
                self.assertLess(used, 512)


if __name__ == "__main__":
    skip_unless_possible()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    unittest.main()
