#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A user without rights on the host wakes threads of a VM, so that his stacks are captured. He then attacks
the daemon with the files in which the addresses of these stacks lie. He shortens them while they are read,
replaces them by a FIFO or by a link to another user's file, and claims 3 GiB of symbols. A file system of his
own never answers a read. The daemon must answer at once all the time, open none of the files to which he
points, stay small, and still name the stacks of others. The same holds for the agent, in whose guest he makes
the same attacks.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
from daemon_rig import BUILD, Daemon, FakeVm, PROGRAM, skip_unless_possible, until  # noqa: E402
from test_hostile import Control  # noqa: E402

HERE = BUILD / "tests/e2e/hostile"
AGENT = BUILD / "guest-agent/vcpuscope-agent"
NOBODY = 65534
ANSWER_MAX_S = 2
MEMORY_MAX = 400 << 20  # daemon and its helpers; the sparse file claims 3 GiB
IN_OPEN = 0x20


class OpenWatch:
    """Was a file opened? By inotify."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN) > 0

    def opened(self):
        try:
            return bool(os.read(self.fd, 4096))
        except BlockingIOError:
            return False


def is_attacker(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "knock"
    except FileNotFoundError:
        return False


class StuckFiles:
    """A FUSE file system over `folder` that holds copies of `paths`. The user's own program runs from
    there; of everybody else requests of the kind `stuck` are never answered."""
    INIT, LOOKUP, GETATTR, OPEN, READ, FLUSH, RELEASE = 26, 1, 3, 14, 15, 25, 18

    def __init__(self, folder, paths, stuck):
        self.folder, self.files = str(folder), {p.name: p.read_bytes() for p in paths}
        self.names, self.kind, self.waiting = list(self.files), stuck, 0

    def __enter__(self):
        self.fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fuse},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"knock", self.folder.encode(), b"fuse", 6, options.encode()):
            raise OSError(ctypes.get_errno(), "mount of a FUSE file system")
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *unused):
        ctypes.CDLL(None).umount2(self.folder.encode(), 2)
        os.close(self.fuse)
        assert self.waiting, "nobody but the attacker looked at his file"

    def attr(self, node):
        size = len(self.files[self.names[node - 2]]) if node > 1 else 0
        mode = 0o100755 if node > 1 else 0o40755
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1,
                           NOBODY, NOBODY, 0, 4096, 0)

    def answer(self, opcode, node, body):
        """The reply's bytes, or a negative errno."""
        if opcode == self.INIT:
            return struct.pack("<IIIIHHIIHHIIII", 7, 31, 0, 0, 0, 0, 1 << 17, 0, 0, 0, 0, 0, 0, 0)[:64].ljust(64, b"\0")
        if opcode == self.LOOKUP:
            name = body.rstrip(b"\0").decode()
            if name not in self.files:
                return -2
            node = self.names.index(name) + 2
            return struct.pack("<QQQQII", node, 0, 1, 1, 0, 0) + self.attr(node)
        if opcode == self.GETATTR:
            return struct.pack("<QII", 1, 0, 0) + self.attr(node)
        if opcode == self.OPEN:
            return struct.pack("<QII", node, 1, 0)  # direct I/O: each read comes here
        if opcode == self.READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.files[self.names[node - 2]][offset:offset + size]
        return b"" if opcode in (self.FLUSH, self.RELEASE) else -38

    def serve(self):
        while True:
            try:
                request = os.read(self.fuse, 1 << 18)
            except OSError:
                return
            if len(request) < 40:
                return
            _, opcode, unique, node, _, _, pid, _ = struct.unpack_from("<IIQQIIII", request)
            if opcode == self.kind and not is_attacker(pid):
                self.waiting += 1
                continue
            reply = self.answer(opcode, node, request[40:])
            error, data = (reply, b"") if isinstance(reply, int) else (0, reply)
            try:
                os.write(self.fuse, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
            except OSError:
                pass  # who asked is gone


class Asker(threading.Thread):
    """Asks the daemon all the time; remembers what took longest."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.over, self.slowest, self.failed = path, False, 0, None
        self.start()

    def run(self):
        try:
            control = Control(self.path)
            while not self.over:
                control.ask(command="status")
                self.slowest = max(self.slowest, control.slowest)
                time.sleep(0.05)
            control.close()
        except Exception as error:  # the daemon is gone
            self.failed = error

    def finish(self):
        self.over = True
        self.join(60)
        assert not self.is_alive(), "the daemon does not answer"
        if self.failed:
            raise self.failed
        return self.slowest


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


def symbols_claim(path, size):
    """Makes the file sparse and `size` long, and .symtab all of what was added."""
    data = bytearray(path.read_bytes())
    offset = (len(data) + 4095) & ~4095
    headers, = struct.unpack_from("<Q", data, 40)
    entry, n = struct.unpack_from("<HH", data, 58)
    for at in range(headers, headers + entry * n, entry):
        if struct.unpack_from("<I", data, at + 4)[0] == 2:  # SHT_SYMTAB
            struct.pack_into("<QQ", data, at + 24, offset, (size - offset) // 24 * 24)
    path.write_bytes(data)
    os.truncate(path, size)


def libraries(folder, owner):
    folder.mkdir()
    paths = [folder / name for name in ("first.so", "second.so")]
    for path in paths:
        shutil.copy(HERE / "libknock-library.so", path)
        os.chown(path, owner, owner)
    os.chown(folder, owner, owner)
    return paths


def knock(mode, vm, paths, owner, *more):
    who = {"user": owner, "group": owner, "extra_groups": []} if owner else {}
    subprocess.run([HERE / "knock", mode, str(vm.port), *paths, *more], check=True, timeout=120, **who)


def wakers(recording):
    """The functions on the stacks of who woke the VM, by the recording's flame graph."""
    done = subprocess.run([PROGRAM, "flame", recording, "--kind", "offwake", "--of", "vcpus"],
                          capture_output=True, text=True)
    return {frame for line in done.stdout.splitlines() for frame in line.rsplit(" ", 1)[0].split(";")}


def memory(pid):
    """The largest that the process and its descendants have been."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    own = next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("VmHWM"))
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    total = own
    for child in children:
        try:
            total += memory(int(child))
        except (FileNotFoundError, StopIteration):
            pass
    return total


def agent_attack():
    """The same for the agent, which names the stacks of its guest's tasks: this machine is the guest."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-stacks-", dir="/tmp"))
    folder.chmod(0o755)
    his = folder / "his"
    first = libraries(his, NOBODY)[0]
    copies = [his / f"copy-{i}.so" for i in range(40)]  # more than the agent remembers
    for path in copies:
        shutil.copy(first, path)
        os.chown(path, NOBODY, NOBODY)
    vm = FakeVm("guest")
    port = free_port()
    record = subprocess.Popen([PROGRAM, "record", "--pid", str(vm.pid), "--channel", f"listen:tcp:127.0.0.1:{port}",
                               "-o", folder / "run.vcs"], stderr=subprocess.PIPE, text=True)
    until("the recorder listens", lambda: listens(port))
    agent = subprocess.Popen([AGENT, "--connect", f"tcp:127.0.0.1:{port}", "--no-realtime", "--sample-hz", "99"],
                             stderr=subprocess.PIPE, text=True)
    try:
        said_by_recorder = []
        while "on guest kernel" not in (said_by_recorder or [""])[-1]:  # it hears the agent
            said_by_recorder.append(record.stderr.readline())
            assert said_by_recorder[-1], f"the recorder ended: {said_by_recorder}"
        subprocess.run([HERE / "knock", "sleep", "6", *copies], check=True, timeout=60, user=NOBODY,
                       group=NOBODY, extra_groups=[])
        assert agent.poll() is None, f"the agent ended with {agent.returncode}: {agent.stderr.read()}"
        agent.terminate()
        said = agent.communicate(timeout=20)[1]
        assert not agent.returncode, said
        record.send_signal(signal.SIGINT)
        print(said.strip(), record.communicate(timeout=20)[1].strip(), sep="\n")
        done = subprocess.run([PROGRAM, "flame", folder / "run.vcs", "--kind", "offcpu", "--of", "tasks"],
                              capture_output=True, text=True)
        assert "sleep_down_here" in done.stdout, f"{done.stderr}: {done.stdout[:2000]}"
    finally:
        for process in (agent, record):
            process.kill()
            process.wait()
        vm.end()
        shutil.rmtree(folder, ignore_errors=True)


def attack(d, vm, name, secret):
    folder = d.folder / name
    paths = libraries(folder, NOBODY)
    watch = OpenWatch(secret)
    asker = Asker(d.control)
    more = []
    if name.startswith("sparse"):
        symbols_claim(paths[0], 3 << 30 if name == "sparse" else 900 << 20)
    elif name == "link":
        more = [secret]
    if name.startswith("stuck"):
        kind = StuckFiles.OPEN if name == "stuck-open" else StuckFiles.READ
        with StuckFiles(folder, paths, kind):
            knock("plain", vm, paths, NOBODY)
    else:
        knock("plain" if name.startswith("sparse") else name, vm, paths, NOBODY, *more)
    slowest = asker.finish()
    used = memory(d.process.pid)
    print(f"{name}: slowest answer {slowest * 1000:.0f} ms, {used >> 20} MiB at most", flush=True)
    assert slowest < ANSWER_MAX_S, f"{name}: an answer took {slowest:.1f} s"
    assert not watch.opened(), f"{name}: a file that the attacker chose was opened"
    assert used < MEMORY_MAX, f"{name}: {used >> 20} MiB"


def stuck_attacks(vm, secret):
    """Each at a daemon that does not know the user yet: it gives up on whose files did harm before."""
    for name in ("stuck-open", "stuck-read"):
        d = Daemon(f"[vm vm]\npid = {vm.pid}\nrecord = yes\nflight_size = 4M\n")
        d.folder.chmod(0o755)
        try:
            d.start()
            until("it records", lambda: d.vm("vm").get("file_bytes", 0) > 1000)
            attack(d, vm, name, secret)
            honest = libraries(d.folder / "honest", 0)
            recording = d.vm("vm")["file"]
            until("honest stacks are named again",
                  lambda: knock("plain", vm, honest, 0) or "knock_from_here_[w]" in wakers(recording))
            assert d.process.poll() is None
        finally:
            d.stop()
            print(d.log.read_text())
            d.clean()


def main():
    skip_unless_possible()
    vm = FakeVm("vm", port=True)
    d = Daemon(f"[vm vm]\npid = {vm.pid}\nrecord = yes\nflight_size = 4M\n")
    d.folder.chmod(0o755)
    secret = d.folder / "secret"
    secret.write_text("root's own\n")
    secret.chmod(0o600)
    try:
        d.start()
        until("it records", lambda: d.vm("vm").get("file_bytes", 0) > 1000)
        pid = d.process.pid
        for name in ("plain", "fifo", "link", "deleted", "sparse", "sparse-small", "truncate"):
            attack(d, vm, name, secret)
        recording = d.vm("vm")["file"]
        named = wakers(recording)
        assert "knock_from_here_[w]" in named, f"a harmless stack has no names: {sorted(named)[:40]}"
        # Others are named after all that as before.
        d.ctl("detach", "vm")
        honest = libraries(d.folder / "honest", 0)
        d.configure(f"[vm vm2]\npid = {vm.pid}\nrecord = yes\nflight_size = 4M\n")
        assert not d.ctl("reload").returncode
        until("it records anew", lambda: (d.vm("vm2") or {}).get("file_bytes", 0) > 1000)
        knock("plain", vm, honest, 0)
        recording = d.vm("vm2")["file"]
        until("honest stacks are named", lambda: "knock_from_here_[w]" in wakers(recording), 10)
        assert d.process.poll() is None and d.process.pid == pid
        stuck_attacks(vm, secret)
    finally:
        d.stop()
        log = d.log.read_text()
        print(log)
        d.clean()
        vm.end()
    agent_attack()
    return 0


if __name__ == "__main__":
    sys.exit(main())
