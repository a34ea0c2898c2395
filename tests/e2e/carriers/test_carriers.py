#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests virtio-serial, vsock and TCP with TLS between a real KVM guest and its host (bed B).

The agent's own session, queue and channel send one file of frames over each carrier. The recording must have
the sequence of frames of the file. Then, while events are sent without a pause, the host's end of the channel
disappears again and again: its decoder is killed while bytes are in flight, or the VM is detached from the
daemon and attached again. No event is recorded twice. The number of missing events is exactly the number that
the agent and the reports give.

By default there are a few reconnections. With VCPUSCOPE_TEST_FULL=1 or --reconnects there are 50 for each
carrier, on a machine of its own, and then the whole daemon is killed while it records all carriers.
"""
import argparse
import collections
import json
import os
import random
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
# A decoder that dies again within ten seconds is replaced later each time; a VM that was attached anew
# begins without that.
GENTLE = ("decoder killed", "VM detached")
RESTARTS = ("daemon killed",) * 2
STAYING = 2  # more daemons, see Host.keep_programs()
ALONE_MAX_S = 0.5  # for which nobody listens while the VM is detached
RUN = "/run/carry"
RECORDINGS = f"{RUN}/recordings/guest"
KEY = f"carry:{'5a' * 32}\n"
OTHER_GUEST = "vsock:4:7431"  # of a VM that is not there
GUEST_START = ("guest-start 1 -device vhost-vsock-pci,guest-cid=3 -netdev user,id=net "
               "-device virtio-net-pci,netdev=net,romfile=")
# agent, collector: their addresses; few: reconnects by default. A handshake of TLS takes an emulated
# guest's emulated CPU seconds, more if it has other work.
Carrier = collections.namedtuple("Carrier", "name agent collector rate few")
CARRIERS = {c.name: c for c in (
    Carrier("virtio-serial", "port:org.vcpuscope.agent.0", "/run/guest/agent", 10000, 2),
    Carrier("vsock", "vsock:2:7431", "vsock:3:7431", 10000, 1),
    Carrier("tls", "tls:10.0.2.2:7432", "listen:tls:127.0.0.1:7432", 1000, 0))}


class Host:
    """Bed B's host with the daemon on it."""

    def __init__(self, machine, qemu_pid):
        self.machine, self._qemu_pid = machine, qemu_pid
        self.guest = scene.NestedGuest(machine)
        self._attached = False  # by ctl, not by the file

    def run(self, command, timeout_s=60):
        return self.machine.run(command, timeout_s=timeout_s)

    def _conf(self, control, vms):
        return (f"[daemon]\ncontrol = {control}\nagents = {control}.agents\nlibvirt = no\n"
                f"directory = {RUN}/recordings\ndisk_reserve = 16M\n{vms}").encode()

    def keep_programs(self):
        """The kernel patches its code when a tracepoint gets its first and its second user, and QEMU
        may run a stale translation of it for ever. With two daemons that watch the VM and keep nothing,
        the one that is tested attaches and detaches it without."""
        for i in range(STAYING):
            self.machine.put(f"{RUN}/stay.conf", self._conf(f"{RUN}/stay.{i}", (
                f"[vm guest]\npid = {self._qemu_pid}\nlevel = summary\nflight = no\n")))
            self.run(f"cd {RUN} && {{ vcpuscope daemon --config stay.conf >stay.log 2>&1 </dev/null & }}; "
                     "i=0; until vcpuscope ctl list --format json --control "
                     f"{RUN}/stay.{i} 2>/dev/null | grep -q running; do "
                     "[ $i -lt 150 ] || { cat stay.log; exit 1; }; sleep 0.2; i=$((i + 1)); done")

    def _vm_keys(self, carrier):
        keys = {"pid": self._qemu_pid, "channel": carrier.collector, "record": "yes", "flight": "no"}
        return {**keys, "psk": f"{RUN}/psk"} if carrier.name == "tls" else keys

    def daemon_configure(self, carrier):
        """The VM by this carrier, and one that does nothing: while the other is detached, its host
        programs have a user. It waits for another guest on the same vsock port."""
        self._carrier = carrier
        idle = self.run(f"cd {RUN}; [ -s idle.pid ] || {{ {{ sleep 100000 | "
                        "sh -c 'echo $$ >idle.pid; exec fake-vmm idle 1'; } >/dev/null 2>&1 </dev/null & "
                        "sleep 1; }; cat idle.pid").strip()
        keys = "".join(f"{key} = {value}\n" for key, value in self._vm_keys(carrier).items())
        self.machine.put(f"{RUN}/conf", self._conf(f"{RUN}/control", (
            f"[vm idle]\npid = {idle}\nflight = no\nchannel = {OTHER_GUEST}\n[vm guest]\n{keys}")))

    def vm_detach(self):
        self.ctl("detach guest")
        self._attached = False

    def vm_attach(self):
        words = " ".join(f"{key}={value}" for key, value in self._vm_keys(self._carrier).items())
        self.ctl(f"attach guest {words}")
        self._attached = True

    def daemon_reload(self):
        if self._attached:
            self.vm_detach()
        self.ctl("reload")

    def daemon_start(self):
        self.run(f"cd {RUN} && {{ vcpuscope daemon --config conf >>log 2>&1 </dev/null & echo $! >pid; }}; i=0; "
                 f"until vcpuscope ctl list --control {RUN}/control >/dev/null 2>&1; do "
                 "[ $i -lt 150 ] && kill -0 $(cat pid) || { cat log; exit 1; }; sleep 0.2; i=$((i + 1)); "
                 "done")

    def daemon_end(self, signal):
        self.run(f"cd {RUN} && kill -{signal} $(cat pid) && while kill -0 $(cat pid) 2>/dev/null; do "
                 "usleep 20000; done")

    def vm(self, name="guest"):
        vms = json.loads(self.run(f"vcpuscope ctl list --format json --control {RUN}/control"))["vms"]
        return next(vm for vm in vms if vm["vm"] == name)

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
                self.guest.run("true")  # or it is the guest that is dead, which says so itself
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


def reconnect(host, kind, chance):
    """The host's end goes away, and the guest's events come again: seconds."""
    begin = time.monotonic()
    frames = deaths = 0
    if kind == "daemon killed":
        host.daemon_end("KILL")
        host.daemon_start()
    elif kind == "VM detached":
        host.vm_detach()
        time.sleep(chance.uniform(0, ALONE_MAX_S))
        host.vm_attach()
    else:
        link = host.vm()["link"]
        frames, deaths = link["frames"], link["decoder_deaths"] + 1
        host.run(f"kill -KILL {link['decoder_pid']}")
    host.until("the guest's frames come again", lambda vm: vm["channel"] == "ok"
               and vm["link"]["decoder_deaths"] >= deaths and vm["link"]["frames"] > frames + 10)
    return time.monotonic() - begin


def load(host, carrier, kinds):
    """(what the sender did, {kind: seconds of each reconnect}, the recordings' names)"""
    before, chance, took = host.recordings(), random.Random(8), {}
    host.ctl("record guest start")
    sender = Sender(host, carrier.agent, f"load {carrier.rate}")
    host.until("the guest's frames come", lambda vm: vm["channel"] == "ok" and vm["link"]["frames"] > 20)
    for kind in kinds:
        took.setdefault(kind, []).append(reconnect(host, kind, chance))
    sender.signal()
    said = sender.told()
    host.arrived(f"batch-ranges {host.vm()['file']} | sed 's/\"boot.*//' | tr -d '[]' | "
                 "awk '{ for (i = 4; i <= NF; i += 4) n += $i } END { print n + 0 }'", said["emitted"])
    sender.signal()
    host.ctl("record guest stop")
    return said, took, sorted(host.recordings() - before, key=order)


def order(name):
    """Of recordings in time: a second's second file is named behind its first, NAME-TIME[-N].vcs."""
    _, stamp, *more = name[:-len(".vcs")].split("-")
    return stamp, int(more[0]) if more else 0


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
        for cpu, (first, end, _) in (boots[-1][1] if boots else {}).items():
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


def play(builder, source, folder, plan, lines, say):
    """Plays [(carrier, kinds of reconnects)] on one machine, with the file first if it has `lines`:
    {carrier: (the file's recording, what load() says)}, either None if it was not wanted."""
    many = not lines or any(len(kinds) > carrier.few for carrier, kinds in plan)
    programs = [(f"{builder.agent_build}/guest-agent/vcpuscope-agent-tls", "/usr/bin/vcpuscope-agent-tls"),
                (f"{builder.agent_build}/tests/e2e/carriers/carry-agent", "/usr/bin/carry-agent")]
    key = f"{folder}/psk"
    with open(key, "w") as f:
        f.write(KEY)
    tools = [(f"{builder.build}/tests/e2e/{path}", f"/usr/bin/{os.path.basename(path)}")
             for path in ("carriers/guest-stream", "daemon/batch-ranges", "daemon/fake-vmm")]
    played = {}
    with bed.boot_b(builder, files=tools, guest_files=[(source, "/root/source.vcs"), (key, "/root/psk")],
                    guest_programs=programs, guest_modules=("virtio_net",)) as machine:
        host = Host(machine, bed.guest_start(machine, say, GUEST_START))
        host.guest.run("chmod 600 /root/psk; ip addr add 10.0.2.15/24 dev eth0 && ip link set eth0 up")
        host.run(f"mkdir -p {RUN}; echo {shlex.quote(KEY.strip())} >{RUN}/psk; chmod 600 {RUN}/psk")
        if many:
            host.keep_programs()
        for carrier, kinds in plan:
            say(f"{carrier.name}: {'the file, then ' if lines else ''}{len(kinds)} reconnects under load")
            host.daemon_configure(carrier)
            if played:
                host.daemon_reload()
            else:
                host.daemon_start()
            first = None
            if lines:
                first = replay(host, carrier.agent, lines)
            else:
                host.ctl("record guest stop")
            played[carrier.name] = first, load(host, carrier, kinds) if kinds else None
            idle = host.vm("idle")
            if "channel_error" in idle or idle["link"]["connections"]:
                raise scene.SceneError(f"the other VM's vsock channel: {idle}")
        host.daemon_end("TERM")
        machine.get_folder(RECORDINGS, folder)
    return played


def attempt(builder, source, plan, with_file, say):
    """A machine that stands still says nothing about carriers: again, aloud."""
    for left in reversed(range(ATTEMPTS)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                wanted = stream(builder, source) if with_file else []
                return check(builder, wanted, folder,
                             play(builder, source, folder, plan, len(wanted), say))
            except bed.machine.MachineError as error:
                if not left:
                    raise
                say(f"{error}; trying again")
    return None


def figures_of(took):
    return "; ".join(f"{len(s)} times {kind}, back after {sorted(s)[len(s) // 2]:.1f} s (median) to "
                     f"{max(s):.1f} s" for kind, s in took.items())


def check(builder, wanted, folder, played):
    problems = []
    for name, (first, loaded) in played.items():
        if first:
            where = differs(wanted, stream(builder, f"{folder}/{first}"))
            print(f"{name}: {len(wanted)} lines of the file {'DIFFER' if where else 'are identical'}")
            if where:
                problems.append(f"{name}: the file's recording differs from the file: {where}")
        if not loaded:
            continue
        truth, took, files = loaded
        figures, wrong = account(builder, [f"{folder}/{file}" for file in files], truth)
        problems += [f"{name}: {text}" for text in wrong]
        print(f"{name}: {figures_of(took)}: {json.dumps(figures)}", flush=True)
    return problems


def plans(carriers, reconnects):
    """What is played: [([(carrier, kinds)] on one machine, is the file?)]"""
    def kinds(n):
        return [GENTLE[i % len(GENTLE)] for i in range(n)]

    if reconnects is None:
        return [([(c, kinds(c.few)) for c in carriers], True)]
    return [*(([(c, kinds(reconnects))], True) for c in carriers),
            ([(c, RESTARTS) for c in carriers], False)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reconnects", type=int, default=50 if FULL else None)
    parser.add_argument("--carrier", choices=CARRIERS, help="only this one")
    parser.add_argument("--agent", metavar="BUILD", help="the build of the guest's programs, if another")
    parser.add_argument("--collector", metavar="BUILD", help="the build of the host's vcpuscope, if another")
    o = parser.parse_args()

    begin = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - begin:6.1f} s: {text}", flush=True)

    try:
        builder = bed.Builder(say=say, collector=o.collector, agent=o.agent)
        with tempfile.TemporaryDirectory() as folder:
            source = f"{folder}/source.vcs"
            subprocess.run([f"{builder.agent_build}/host-collector/vcpuscope", "simulate", *SCENE, "-o",
                            source], check=True, stdout=subprocess.DEVNULL)
            carriers = [c for name, c in CARRIERS.items() if o.carrier in (None, name)]
            problems = []
            for plan, with_file in plans(carriers, o.reconnects):
                problems += attempt(builder, source, plan, with_file, say)
    except (*bed.BedError, scene.SceneError) as error:
        problems = [str(error)]
    for problem in problems:
        print(f"wrong: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
