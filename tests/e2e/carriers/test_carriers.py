#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Virtio-serial, vsock and TCP with TLS between a real KVM guest and its host (bed B).

One file of frames, sent over each of them by the agent's own session, queue and channel, is
recorded as one and the same sequence: that of the file. Then, while events come without a pause,
the host's end goes away again and again, decoder or whole daemon killed with bytes in flight, and
comes back: no event is recorded twice, and what is missing is what the agent and the reports say is
missing, to the event.

A few by default, of decoders; 50 on each carrier with VCPUSCOPE_TEST_FULL=1 or --reconnects."""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.dirname(HERE)
sys.path[:0] = [f"{E2E}/beds", f"{E2E}/daemon", E2E]
import bed  # noqa: E402
import file_account  # noqa: E402
import scene  # noqa: E402

FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
ATTEMPTS = 3
SCENE = ("decoy.server", "--seed", "5", "--for", "10s")
DAEMON_KILLS = 5  # in a full run each fifth; that also forgets how often decoders died
RUN = "/run/carry"
RECORDINGS = f"{RUN}/recordings/guest"
KEY = f"carry:{'5a' * 32}\n"
GUEST_START = ("guest-start 1 -device vhost-vsock-pci,guest-cid=3 -netdev user,id=net "
               "-device virtio-net-pci,netdev=net,romfile=")
# (name, the agent's address, the collector's, events per second, reconnects by default). A handshake of
# TLS takes an emulated guest's emulated CPU seconds, more if it has other work.
CARRIERS = (("virtio-serial", "port:org.vcpuscope.agent.0", "/run/guest/agent", 10000, 2),
            ("vsock", "vsock:2:7431", "vsock:3:7431", 10000, 1),
            ("tls", "tls:10.0.2.2:7432", "listen:tls:127.0.0.1:7432", 1000, 0))


class Host:
    """Bed B's host with the daemon on it."""

    def __init__(self, machine, qemu_pid):
        self.machine, self._qemu_pid = machine, qemu_pid
        self.guest = scene.NestedGuest(machine)

    def run(self, command, timeout_s=60):
        return self.machine.run(command, timeout_s=timeout_s)

    def keep_programs(self):
        """The kernel patches its code when a tracepoint gets its first and its second user, and QEMU
        may run a stale translation of it for ever. With two that stay, daemons come and go without."""
        self.run(f"for i in 1 2; do vcpuscope record --pid {self._qemu_pid} --no-guest -o /run/stay.$i.vcs "
                 ">/run/stay.$i.log 2>&1 </dev/null & done; i=0; "
                 "until [ -s /run/stay.1.vcs ] && [ -s /run/stay.2.vcs ]; do "
                 "[ $i -lt 150 ] || { cat /run/stay.*.log; exit 1; }; sleep 0.2; i=$((i + 1)); done")

    def daemon_configure(self, channel):
        psk = f"psk = {RUN}/psk\n" if "tls" in channel else ""
        self.machine.put(f"{RUN}/conf", (
            f"[daemon]\ncontrol = {RUN}/control\nagents = {RUN}/agents\nlibvirt = no\n"
            f"directory = {RUN}/recordings\ndisk_reserve = 16M\n"
            f"[vm guest]\npid = {self._qemu_pid}\nchannel = {channel}\n{psk}record = yes\n"
            "flight = no\n").encode())

    def daemon_start(self):
        self.run(f"cd {RUN} && {{ vcpuscope daemon --config conf >>log 2>&1 </dev/null & echo $! >pid; }}; i=0; "
                 f"until vcpuscope ctl list --control {RUN}/control >/dev/null 2>&1; do "
                 "[ $i -lt 150 ] && kill -0 $(cat pid) || { cat log; exit 1; }; sleep 0.2; i=$((i + 1)); "
                 "done")

    def daemon_end(self, signal):
        self.run(f"cd {RUN} && kill -{signal} $(cat pid) && while kill -0 $(cat pid) 2>/dev/null; do "
                 "usleep 20000; done")

    def vm(self):
        return json.loads(self.run(f"vcpuscope ctl list --format json --control {RUN}/control"))["vms"][0]

    def arrived(self, counts, wanted, seconds=60):
        """Waits until `counts` prints what is wanted; what is missing then is not on its way."""
        end = time.monotonic() + seconds
        while int(self.run(counts)) < wanted and time.monotonic() < end:
            time.sleep(0.5)

    def recordings(self):
        return set(self.run(f"ls {RECORDINGS}").split())

    def ctl(self, words):
        self.run(f"vcpuscope ctl {words} --control {RUN}/control")

    def until(self, what, condition, seconds=120):
        """condition(vm) to be true: returns it."""
        end = time.monotonic() + seconds
        while not (got := condition(vm := self.vm())):
            if vm["state"] == "gone":
                raise bed.machine.MachineError("the guest is gone: " + self.run(
                    "tail -n 20 /run/guest/qemu.log /run/guest/serial"))
            if time.monotonic() > end:
                raise scene.SceneError(f"after {seconds} s still not: {what}; {vm}; the daemon said: "
                                       + self.run(f"tail -n 20 {RUN}/log"))
            time.sleep(0.1)
        return got


class Sender:
    """carry-agent in the guest."""

    def __init__(self, host, address, what):
        key = "/root/psk" if address.startswith("tls:") else ""
        self._host = host
        host.guest.run(f"rm -f /root/said; {{ carry-agent {address} {what} {key} >/root/said 2>/root/log & }}; "
                       "echo $! >/run/sender.pid")

    def told(self):
        """What it did; waits until it has sent everything."""
        said = json.loads(self._host.guest.run(
            "i=0; until [ -s /root/said ]; do [ $i -lt 450 ] || { cat /root/log; exit 1; }; usleep 200000; "
            "i=$((i + 1)); done; cat /root/said", timeout_s=150))
        if said["left"]:
            raise scene.SceneError(f"not everything was sent: {said}")
        return said

    def signal(self):
        self._host.guest.run("kill -TERM $(cat /run/sender.pid)")


def replay(host, address, lines):
    """The file over this carrier: the recording's name."""
    sender = Sender(host, address, "replay /root/source.vcs")
    said = sender.told()
    if said["sessions"] != 1:
        raise scene.SceneError(f"the file was not sent as a whole: {said}")
    path = host.vm()["file"]
    host.arrived(f"guest-stream {path} | wc -l", lines)
    sender.signal()
    host.ctl("record guest stop")
    return os.path.basename(path)


def reconnect(host, kills_daemon):
    """The host's end goes away, and the guest's events come again: seconds."""
    begin = time.monotonic()
    if kills_daemon:
        host.daemon_end("KILL")
        host.daemon_start()
        frames, deaths = 0, 0
    else:
        link = host.vm()["link"]
        frames, deaths = link["frames"], link["decoder_deaths"] + 1
        host.run(f"kill -KILL {link['decoder_pid']}")
    host.until("the guest's frames come again", lambda vm: vm["channel"] == "ok"
               and vm["link"]["decoder_deaths"] >= deaths and vm["link"]["frames"] > frames + 10)
    return time.monotonic() - begin


def load(host, address, rate, reconnects, kills):
    """(what the sender did, seconds of each reconnect, the recordings' names)"""
    before = host.recordings()
    host.ctl("record guest start")
    sender = Sender(host, address, f"load {rate}")
    host.until("the guest's frames come", lambda vm: vm["channel"] == "ok" and vm["link"]["frames"] > 20)
    took = [reconnect(host, kills and n % DAEMON_KILLS == DAEMON_KILLS - 1)
            for n in range(reconnects)]
    sender.signal()
    said = sender.told()
    host.arrived(f"batch-ranges {host.vm()['file']} | sed 's/\"boot.*//' | tr -d '[]' | "
                 "awk '{ for (i = 3; i <= NF; i += 3) n += $i } END { print n + 0 }'", said["emitted"])
    sender.signal()
    host.ctl("record guest stop")
    return said, took, sorted(host.recordings() - before)


def stream(builder, path):
    """A recording's guest, decoded: lines."""
    return subprocess.run([f"{builder.build}/tests/e2e/carriers/guest-stream", path], check=True,
                          capture_output=True, text=True).stdout.splitlines()


def differs(wanted, got):
    """None, or where."""
    for i, (a, b) in enumerate(zip(wanted, got)):
        if a != b:
            return f"line {i + 1} is '{b[:100]}', not '{a[:100]}'"
    return None if len(wanted) == len(got) else f"{len(got)} lines, not {len(wanted)}"


def account(builder, paths, truth):
    """What the recordings of one load hold: (figures, problems). Counted twice: by the reports, and
    by the numbers of the events themselves."""
    problems, last, held, missing, ends = [], {}, 0, 0, {}
    sums = dict.fromkeys(("delivered", "dropped_user", "dropped_kernel", "lost_channel"), 0)
    between = 0
    for path in paths:
        name = os.path.basename(path)
        wrong, said, boots = file_account.file_account(name, path)
        problems += wrong
        if not said:
            continue  # the host went away before the guest had been heard
        for part in sums:
            sums[part] += said[part]
        if len(boots) > 1:
            problems.append(f"{name}: its guest booted: {boots}")
        for cpu, (first, end, _) in enumerate(boots[-1][1]):
            between += first - ends.get(cpu, 0)
            if first < ends.get(cpu, 0):
                problems.append(f"{name}: CPU {cpu} begins at {first}, but {ends[cpu]} are recorded")
            ends[cpu] = end
        for line in stream(builder, path):
            if line[0] not in "bm":
                _, seq, cpu, _ = line.split(" ", 3)
                step = int(seq) - last.get(cpu, -1)
                if step < 1:
                    problems.append(f"{name}: CPU {cpu}: event {seq} comes behind {last[cpu]}")
                missing += step - 1
                last[cpu] = int(seq)
                held += 1
    if held != sums["delivered"]:
        problems.append(f"{held} events are recorded, the reports say {sums['delivered']}")
    if held + missing != truth["emitted"]:
        problems.append(f"{held} recorded and {missing} missing are not the {truth['emitted']} emitted")
    if sum(sums.values()) + between != truth["emitted"]:
        problems.append(f"{sums} and {between} between recordings are not the {truth['emitted']} emitted")
    if missing < truth["dropped"]:
        problems.append(f"the sender dropped {truth['dropped']}, only {missing} are missing")
    if truth["left"]:
        problems.append("the sender could not deliver everything")
    return {**truth, **sums, "between_recordings": between, "recordings": len(paths),
            "lost_on_the_way": missing - truth["dropped"]}, problems


def play(builder, source, folder, lines, carriers, reconnects, say):
    """{carrier: (the file's recording, what load() says)}"""
    programs = [(f"{builder.build}/guest-agent/vcpuscope-agent-tls", "/usr/bin/vcpuscope-agent-tls"),
                (f"{builder.build}/tests/e2e/carriers/carry-agent", "/usr/bin/carry-agent")]
    key = f"{folder}/psk"
    with open(key, "w") as f:
        f.write(KEY)
    kills, played = reconnects is not None, {}
    tools = [(f"{builder.build}/tests/e2e/{path}", f"/usr/bin/{os.path.basename(path)}")
             for path in ("carriers/guest-stream", "daemon/batch-ranges")]
    with bed.boot_b(builder, files=tools, guest_files=[(source, "/root/source.vcs"), (key, "/root/psk")],
                    guest_programs=programs, guest_modules=("virtio_net",)) as machine:
        host = Host(machine, bed.guest_start(machine, say, GUEST_START))
        host.guest.run("chmod 600 /root/psk; ip addr add 10.0.2.15/24 dev eth0 && ip link set eth0 up")
        host.run(f"mkdir -p {RUN}; echo {shlex.quote(KEY.strip())} >{RUN}/psk; chmod 600 {RUN}/psk")
        if kills:
            host.keep_programs()
        for name, agent, collector, rate, few in carriers:
            n = few if reconnects is None else reconnects
            say(f"{name}: the file, then {n} reconnects under load")
            host.daemon_configure(collector)
            if played:
                host.ctl("reload")
            else:
                host.daemon_start()
            first = replay(host, agent, lines)
            played[name] = first, load(host, agent, rate, n, kills) if n else None
        host.daemon_end("TERM")
        machine.get_folder(RECORDINGS, folder)
    return played


def attempt(builder, source, carriers, reconnects, say):
    """A machine that stands still says nothing about carriers: again, aloud."""
    for left in reversed(range(ATTEMPTS)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                wanted = stream(builder, source)
                played = play(builder, source, folder, len(wanted), carriers, reconnects, say)
                return check(builder, wanted, folder, played)
            except bed.machine.MachineError as error:
                if not left:
                    raise
                say(f"{error}; trying again")
    return None


def check(builder, wanted, folder, played):
    problems = []
    for name, (first, loaded) in played.items():
        where = differs(wanted, stream(builder, f"{folder}/{first}"))
        print(f"{name}: {len(wanted)} lines of the file {'DIFFER' if where else 'are identical'}")
        if where:
            problems.append(f"{name}: the file's recording differs from the file: {where}")
        if not loaded:
            continue
        truth, took, files = loaded
        figures, wrong = account(builder, [f"{folder}/{file}" for file in files], truth)
        problems += [f"{name}: {text}" for text in wrong]
        print(f"{name}: {len(took)} reconnects, back after {sorted(took)[len(took) // 2]:.1f} s (median) to "
              f"{max(took):.1f} s: {json.dumps(figures)}")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reconnects", type=int, default=50 if FULL else None)
    parser.add_argument("--carrier", choices=[c[0] for c in CARRIERS], help="only this one")
    o = parser.parse_args()

    begin = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - begin:6.1f} s: {text}", flush=True)

    try:
        builder = bed.Builder(say=say)
        with tempfile.TemporaryDirectory() as folder:
            source = f"{folder}/source.vcs"
            subprocess.run([f"{builder.build}/host-collector/vcpuscope", "simulate", *SCENE, "-o",
                            source], check=True, stdout=subprocess.DEVNULL)
            carriers = [c for c in CARRIERS if o.carrier in (None, c[0])]
            problems = attempt(builder, source, carriers, o.reconnects, say)
    except (*bed.BedError, scene.SceneError) as error:
        problems = [str(error)]
    for problem in problems:
        print(f"wrong: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
