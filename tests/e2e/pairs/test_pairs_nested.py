#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests pairs of events that the user chose, on bed B: tracepoints of both sides, of the guest alone (by
number and by pointer), functions of the host's kernel and of QEMU, and probes of a program. One recording has
all of them.

trace-cmd measures the same events at the same time, on the host and in the guest, with the TSC as its clock.
The TSC offset in KVM's debugfs converts the guest's TSC. The program measures with its own clock how long it
slept. Nearly every pair of trace-cmd's must be in the report. Both tracers run at each event, one after the
other, and each reads its own stamp. The emulator makes them 10 to 50 times slower than on a real machine: a
tracepoint takes some us, a breakpoint of a kprobe or uprobe some 10 us. So the durations differ by more than
the stated error. The test prints the difference, and allows most pairs the time that the tracers take.

Exit status: 0 pass, 1 fail, 77 cannot run here.
"""
import base64
import bisect
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/..", f"{HERE}/../beds"]
import bed  # noqa: E402
import run_scene  # noqa: E402
import scene  # noqa: E402

TRACE_CMD, QEMU, SLEEPER = "/usr/bin/trace-cmd", "/usr/bin/qemu-system-x86_64", "/usr/bin/usdt-sleeper"
DISK = ("-drive if=none,id=disk,file=/dev/ram0,format=raw,cache=none "
        "-device virtio-blk-pci,drive=disk")
FUNCTION, QEMU_FUNCTION = "kvm_vcpu_halt", "aio_bh_poll"
SLEEPS, HOGS, HOG_MS, READS = 20, 3, 30, 40
PAIRS_LEAST, FOUND_SHARE, NEAR_SHARE = 15, 0.97, 0.8
TRACEPOINTS_NS, BREAKPOINTS_NS = 50_000, 150_000  # what the tracers' own work may add
SAME_NS = 500_000  # ends that are so near are of the same pair

# first, second: (side, name) of trace-cmd's events; key: their field, None if all have the same.
Pair = collections.namedtuple("Pair", "title arguments first second key slack_ns")


PAIRS = (
    Pair("an MSI to the guest's handler",
         "-e host:kvm:kvm_msi_set_irq -e guest:irq:irq_handler_entry --key vcpu --than 1ms "
         "--detail=samevcpu,-1ms,+1ms",
         ("host", "kvm_msi_set_irq"), ("guest", "irq_handler_entry"), None, TRACEPOINTS_NS),
    Pair("a block request of the guest, by sector",
         "-e guest:block:block_rq_issue -e guest:block:block_rq_complete,host:block:block_bio_queue//untraced/ "
         "--key sector --detail=hide<1us",
         ("guest", "block_rq_issue"), ("guest", "block_rq_complete"), "sector", TRACEPOINTS_NS),
    Pair("a function of the host's kernel",
         f"-e kprobe:{FUNCTION} -e kretprobe:{FUNCTION} --key tid",
         ("host", "halt"), ("host", "halted"), "tid", BREAKPOINTS_NS),
    Pair("a timer of the guest, by pointer",
         "-e guest:timer:hrtimer_start -e guest:timer:hrtimer_expire_entry --key hrtimer",
         ("guest", "hrtimer_start"), ("guest", "hrtimer_expire_entry"), "hrtimer", TRACEPOINTS_NS),
    Pair("a function of QEMU, from one call to the next",
         f"-e uprobe:{QEMU_FUNCTION}@{QEMU} --cycle --key tid",
         ("host", "bh"), ("host", "bh"), "tid", BREAKPOINTS_NS),
)
PROBES = Pair("probes of a program",
              f"-e usdt:sleeper:begin@{SLEEPER} -e usdt:sleeper:end@{SLEEPER} --key arg1", None, None, None,
              BREAKPOINTS_NS)
CHOSEN = ("guest:block:block_rq_issue", "guest:block:block_rq_complete", "guest:timer:hrtimer_start",
          "guest:timer:hrtimer_expire_entry", "host:block:block_bio_queue//untraced/", f"kprobe:{FUNCTION}",
          f"kretprobe:{FUNCTION}", f"uprobe:{QEMU_FUNCTION}@{QEMU}",
          f'usdt:sleeper:begin@"{SLEEPER}"//untraced/', f'usdt:sleeper:end@"{SLEEPER}"//untraced/')
TRACED = {"host": "-e kvm:kvm_msi_set_irq -e block:block_bio_queue -e pairs",
          "guest": "-e irq:irq_handler_entry -e block:block_rq_issue -e block:block_rq_complete "
                   "-e timer:hrtimer_start -e timer:hrtimer_expire_entry"}


def file_offset(program, function):
    """Where a function begins in its file, for the kernel's uprobe_events."""
    symbols = subprocess.run(["nm", "-D", program], capture_output=True, text=True, check=True).stdout
    address = int(re.search(rf"^(\w+) T {function}$", symbols, re.M)[1], 16)
    headers = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    for offset, begin, size in re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers):
        if int(begin, 16) <= address < int(begin, 16) + int(size, 16):
            return address - int(begin, 16) + int(offset, 16)
    raise scene.SceneError(f"{program}: {function} is in no segment")


def trace_start(place, events):
    """Its own words come late, because they go into a file: the last event that it enables shows that it traces."""
    last = events.split()[-1].replace(":", "/")
    place.run(f"cd /root && {{ trace-cmd record -C x86-tsc -b 8192 -o trace.dat {events} >trace.log 2>&1 </dev/null & "
              f"echo $! >trace.pid; }}; i=0; while [ $i -lt 300 ] && "
              f"[ $(cat /sys/kernel/tracing/events/{last}/enable) != 1 ]; do sleep 0.1; i=$((i + 1)); done; sleep 0.5; "
              "[ -e /proc/$(cat trace.pid) ] || { cat trace.log; exit 1; }", timeout_s=60)


def trace_stop(place):
    place.run("cd /root && kill -INT $(cat trace.pid); while [ -e /proc/$(cat trace.pid) ]; do sleep 0.1; done; "
              "ls trace.dat", timeout_s=60)


def play(played, say):
    """Records and traces a guest that reads its disk while a hog takes its pCPU now and then."""
    host, guest = played.host, played.guest
    host.run(f"echo 'p:pairs/halt {FUNCTION}' >/sys/kernel/tracing/kprobe_events; "
             f"echo 'r64:pairs/halted {FUNCTION}' >>/sys/kernel/tracing/kprobe_events; "
             f"echo 'p:pairs/bh {QEMU}:{file_offset(QEMU, QEMU_FUNCTION):#x}' >/sys/kernel/tracing/uprobe_events")
    played.record_arguments = " ".join(f"-e '{e}'" for e in CHOSEN)
    played.record_start()
    for place, side in ((host, "host"), (guest, "guest")):
        trace_start(place, TRACED[side])
    say(f"the guest reads its disk {READS} times; its pCPU is taken {HOGS} times for {HOG_MS} ms")
    guest.run(f"(i=0; while [ $i -lt {READS} ]; do echo 3 >/proc/sys/vm/drop_caches; dd if=/dev/vda of=/dev/null bs=4k "
              "count=1 skip=$i 2>/dev/null; i=$((i + 1)); done; touch /run/read) >/dev/null 2>&1 </dev/null &")
    for _ in range(HOGS):
        host.run(f"provoke hog {scene.VCPU_CPU} {HOG_MS}; sleep 0.2")
    slept = host.run(f"usdt-sleeper {SLEEPS}")
    guest.run("while [ ! -e /run/read ]; do sleep 0.1; done")
    for place in (guest, host):
        trace_stop(place)
    played.record_stop()
    return [int(line) for line in slept.split()]


class Trace:
    """What trace-cmd recorded: times on the host's TSC."""

    LINE = re.compile(r"^.*-(\d+)\s+\[\d+\].*?(\d+): (\w+): +(.*)$")

    def __init__(self, path, side, offset):
        text = subprocess.run([TRACE_CMD, "report", "--raw-ts", "-R", "-i", path], capture_output=True, text=True,
                              check=True).stdout
        self.events = []
        for line in text.splitlines():
            if m := self.LINE.match(line):
                fields = dict(word.split("=", 1) for word in m[4].split() if "=" in word)
                self.events.append((int(m[2]) - offset, side, m[3], {**fields, "tid": m[1]}))
        if not self.events:
            raise scene.SceneError(f"trace-cmd recorded nothing: {text[-1000:]}")


def pairs_of(events, pair):
    """[(end, ticks)] of the pairs, as docs/pairs.md defines them."""
    waiting, found = {}, []
    for tsc, side, name, fields in events:
        key = fields.get(pair.key) if pair.key else None
        if (side, name) == pair.second and key in waiting:
            found.append((tsc, tsc - waiting.pop(key)))
        if (side, name) == pair.first:
            waiting[key] = tsc
    return found


def reported(program, recording, arguments, *more):
    done = subprocess.run([program, "report", recording, "pairs", *arguments.split(), *more], capture_output=True,
                          text=True)
    if done.returncode:
        raise scene.SceneError(f"report pairs {arguments}: {done.stderr}")
    return done.stdout


def ours_of(program, recording, pair):
    """All pairs of the report, by their end."""
    arguments = re.sub(r" --(than|detail=)\S*( \d\S+)?", "", pair.arguments)
    lines = reported(program, recording, arguments, "--format", "jsonl").splitlines()
    return sorted(map(json.loads, lines), key=lambda o: o["to"]["t_ns"])


def apart_of(ours, theirs):
    """What the times of trace-cmd and of the report are apart: the difference that occurs most often, to 100 us."""
    apart = sorted(o["to"]["t_ns"] - end_ns for o in ours for end_ns, _ in theirs)
    return max(apart, key=lambda a: bisect.bisect(apart, a + 100_000) - bisect.bisect(apart, a - 100_000))


def compare(ours, theirs, apart_ns):
    """By how much each duration differs from that of the report's pair with the same end."""
    ends = [o["to"]["t_ns"] for o in ours]
    found = []
    for end_ns, duration_ns in theirs:
        at = bisect.bisect(ends, end_ns + apart_ns)
        near = min((i for i in (at - 1, at) if 0 <= i < len(ends)), key=lambda i: abs(ends[i] - end_ns - apart_ns))
        if abs(ends[near] - end_ns - apart_ns) <= SAME_NS:
            found.append(max(0, abs(ours[near]["duration_ns"] - duration_ns) - ours[near]["error_ns"]))
    return sorted(found)


def judge(pair, ours, theirs, differences, say):
    """What is wrong: a list of lines."""
    if len(theirs) < PAIRS_LEAST or not ours or not differences:
        return [f"{pair.title}: {len(ours)} pairs, {len(theirs)} by the other measurement"]
    near = bisect.bisect(differences, pair.slack_ns)
    say(f"{pair.title}: {len(ours)} pairs; of {len(theirs)} by the other measurement {len(differences)} are found; "
        f"beyond the stated error they differ by {differences[len(differences) // 2] / 1e3:.1f} us (median), "
        f"{differences[len(differences) * 9 // 10] / 1e3:.1f} us (90 %)")
    wrong = []
    if len(differences) < len(theirs) * FOUND_SHARE:
        wrong.append(f"{pair.title}: {len(theirs) - len(differences)} of {len(theirs)} pairs are not in the report")
    if near < len(differences) * NEAR_SHARE:
        wrong.append(f"{pair.title}: only {near} of {len(differences)} durations agree within {pair.slack_ns} ns")
    return wrong


def guest_file(host):
    """The guest's trace.dat. Its channel is for text."""
    encoded = host.run("bed-control call /run/guest/control 'gzip -c /root/trace.dat | base64'", timeout_s=120)
    return gzip.decompress(base64.b64decode(encoded))


def once(builder, folder, args, say):
    for tool in (TRACE_CMD, QEMU):
        if not os.path.exists(tool):
            raise run_scene.Skip(f"{tool} is missing")
    program = f"{builder.build}/host-collector/vcpuscope"
    sleeper = f"{builder.build}/tests/e2e/pairs/usdt-sleeper"
    wrong = []
    with bed.boot_b(builder, programs=((TRACE_CMD, TRACE_CMD), (sleeper, SLEEPER)),
                    guest_programs=((TRACE_CMD, TRACE_CMD),), guest_modules=("virtio_blk",)) as host:
        pid = bed.guest_start(host, say, f"guest-start 1 {DISK}")
        played = scene.Scene(host, scene.NestedGuest(host), pid, "/run/guest/agent", "/root/out", say, emulated=True)
        played.place_threads()
        played.agent_start("--max-cpu 100%")  # emulated, the agent may use more than its budget
        slept = play(played, say)
        offset = int(host.run("cat /sys/kernel/debug/kvm/*/vcpu0/tsc-offset"))
        hz = 1e6 * float(re.search(r"tsc: (?:Refined TSC clocksource calibration|Detected).*?([\d.]+) MHz",
                                   host.run("dmesg | grep -E 'tsc: (Refined|Detected)' | tail -n 1"))[1])
        os.makedirs(args.out, exist_ok=True)
        shutil.rmtree(f"{args.out}/traces", ignore_errors=True)
        os.makedirs(f"{args.out}/traces")
        run_scene.recording_save(played, args.out)
        for place, side in ((host, "host"), (played.guest, "guest")):
            with open(f"{args.out}/traces/{side}.dat", "wb") as f:
                f.write(host.get("/root/trace.dat") if side == "host" else guest_file(host))
    events = sorted(Trace(f"{args.out}/traces/host.dat", "host", 0).events +
                    Trace(f"{args.out}/traces/guest.dat", "guest", offset).events, key=lambda e: e[0])
    recording = f"{args.out}/run.vcs"
    timed = {pair: [(tsc * 1e9 / hz, ticks * 1e9 / hz) for tsc, ticks in pairs_of(events, pair)] for pair in PAIRS}
    apart_ns = apart_of(ours_of(program, recording, PAIRS[0]), timed[PAIRS[0]])
    for pair in (*PAIRS, PROBES):
        print(reported(program, recording, pair.arguments, "--top", "1"), flush=True)
        ours = ours_of(program, recording, pair)
        if pair is PROBES:
            differences = sorted(max(0, abs(o["duration_ns"] - ns) - o["error_ns"]) for o, ns in zip(ours, slept))
            wrong += judge(pair, ours, slept, differences, say)
        else:
            wrong += judge(pair, ours, timed[pair], compare(ours, timed[pair], apart_ns), say)
    return wrong


if __name__ == "__main__":
    sys.exit(run_scene.test_main(__doc__, once, ("6.1", "6.12")))
