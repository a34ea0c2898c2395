#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares KVM's entries and exits in a recording with ftrace's recording of the same run (bed B).

The comparison covers the time between two marks that both tracers record: signals that continue the VM. The
VM was stopped just before each, so none of its events is close to a mark. Within this time every vCPU thread
must have the same entries and exits in the same order, and each exit the same reason. Times may differ by the
stated error and by the time that one tracer takes before the other one runs. Reasons are compared by the
kernel's names.
"""
import collections
import os
import re
import statistics
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../beds")
import bed  # noqa: E402

SIGNAL, ENTRY, EXIT, USERSPACE_EXIT = 14, 32, 33, 34  # enum vs_event_type
NAMES = {"kvm_entry": ENTRY, "kvm_exit": EXIT, "kvm_userspace_exit": USERSPACE_EXIT}
MARK = 18  # SIGCONT
SERIES = ("6.1", "6.12") if os.environ.get("VCPUSCOPE_TEST_FULL") == "1" else ("6.1",)
TRACE = "/sys/kernel/tracing/instances/truth"
# Between the two tracers' turns at one hit. Both are programs of an emulated machine, which this
# one may stop at any time: most turns are bounded tightly, all of them loosely.
TURN_US, TURN_MOST, STOP_US = 250, 0.9, 200000
LINE = re.compile(r"-(\d+)\s+\[(\d+)\]\s\S+\s+(\d+): (\w+): (.*)")

RUN = """
mkdir {trace} && cd {trace} && echo x86-tsc >trace_clock && echo 16000 >buffer_size_kb || exit 1
for e in kvm/kvm_entry kvm/kvm_exit kvm/kvm_userspace_exit signal/signal_generate; do
	echo 1 >events/$e/enable || exit 1
done
vcpuscope record --pid {pid} --no-guest -o /root/run.vcs --for 60s >/root/record.log 2>&1 </dev/null &
recorder=$!
i=0
while [ ! -s /root/run.vcs ] && [ $i -lt 100 ]; do usleep 100000; i=$((i + 1)); done
sleep 2
kill -STOP {pid}
usleep 100000
kill -CONT {pid}
bed-control call /run/guest/control 'provoke compute 300; echo end >/dev/ttyS0; ls -lR /sys/devices/system'
kill -STOP {pid}
usleep 100000
kill -CONT {pid}
usleep 200000
kill -INT $recorder
wait $recorder || {{ cat /root/record.log; exit 1; }}
echo 0 >tracing_on
cat trace >/root/trace.txt
cat per_cpu/cpu*/stats >/root/trace.stats
"""


def reasons(format_text):
    """{exit reason: the kernel's name of it} for SVM, from the tracepoint's print format."""
    svm = format_text.split(": __print_symbolic(", 1)[1]
    pairs = re.findall(r'\{\s*(-?\w+)(?: \+ (\d+))?, "(\w[\w-]*(?: excp)?)" \}', svm)
    return {int(base, 0) + int(more or 0): name for base, more, name in pairs}


def between_marks(events, pid):
    """[event] between the first and the last mark; an event is (time, tid, type, what, error)."""
    marks = [i for i, e in enumerate(events) if e[2] == SIGNAL and e[3] == (MARK, pid)]
    if len(marks) < 2:
        raise AssertionError(f"{len(marks)} marks among {len(events)} events")
    return [e for e in events[marks[0] + 1:marks[-1]] if e[2] != SIGNAL]


def of_ftrace(text):
    events = []
    for tid, _, time, name, rest in LINE.findall(text):
        if name in NAMES:
            what = re.search(r"reason (.+?) (?:rip|\()", rest)
            if name != "kvm_userspace_exit":
                what = what and what.group(1)
            else:
                what = int(re.search(r"\((\d+)\)$", rest).group(1))
            events.append((int(time), int(tid), NAMES[name], what, 0))
        elif name == "signal_generate":
            sig, pid = re.search(r"sig=(\d+) .*? pid=(\d+)", rest).groups()
            events.append((int(time), int(tid), SIGNAL, (int(sig), int(pid)), 0))
    return sorted(events, key=lambda e: e[0])


def of_recording(lines, names):
    events = []
    for line in lines:
        time, error, kind, _, tid, _, arg0, arg1 = map(int, line.split())
        what = None
        if kind == SIGNAL:
            what = (arg0, tid)
        elif kind == EXIT:
            what = names[arg0 & 0xFFFFFFFF]
        elif kind == USERSPACE_EXIT:
            # The tracepoint shows an error instead of the reason if there is one.
            what = -(arg1 - (1 << 64)) if arg1 >> 63 else arg0
        elif kind != ENTRY:
            continue
        events.append((time, tid, kind, what, error))
    return sorted(events, key=lambda e: e[0])


def handling(events):
    """{exit reason: ticks from exits for it to the next entry}, of one thread's events."""
    total, left = collections.Counter(), None
    for time, _, kind, what, _ in events:
        if kind == EXIT:
            left = time, what
        elif kind == ENTRY and left:
            total[left[1]] += time - left[0]
            left = None
    return total


class Ftrace(unittest.TestCase):
    def play(self, series):
        builder = bed.Builder(series=series)
        with bed.boot_b(builder) as host:
            pid = bed.guest_start(host, print)
            host.run(RUN.format(trace=TRACE, pid=pid), timeout_s=120)
            truth = host.get("/root/trace.txt").decode()
            stats = host.get("/root/trace.stats").decode()
            names = reasons(host.run("cat /sys/kernel/tracing/events/kvm/kvm_exit/format"))
            recording = f"{host.folder}/run.vcs"
            with open(recording, "wb") as f:
                f.write(host.get("/root/run.vcs"))
            listed = subprocess.run([f"{builder.build}/tests/e2e/capture/vcs-events", recording],
                                    capture_output=True, text=True, check=True).stdout
        for lost in re.findall(r"(?:overrun|dropped events): (\d+)", stats):
            self.assertEqual(int(lost), 0, "ftrace lost events")
        hz, *lines = listed.splitlines()
        return (between_marks(of_ftrace(truth), pid),
                between_marks(of_recording(lines, names), pid), int(hz))

    def compare(self, series):
        theirs, ours, hz = self.play(series)
        threads = {e[1] for e in theirs}
        self.assertEqual({e[1] for e in ours}, threads)
        gaps = []
        for tid in threads:
            a = [e for e in theirs if e[1] == tid]
            b = [e for e in ours if e[1] == tid]
            count = [collections.Counter(e[2:4] for e in side) for side in (a, b)]
            print(f"{series}: thread {tid}: ftrace {len(a)}, recording {len(b)}: "
                  + ", ".join(f"{kind} {what}: {n}" for (kind, what), n in count[0].most_common()))
            self.assertEqual(*count)
            self.assertGreater(count[0][ENTRY, None], 100)
            self.assertGreater(len({what for kind, what in count[0] if kind == EXIT}), 3)
            self.assertGreater(sum(n for (kind, _), n in count[0].items() if kind == USERSPACE_EXIT), 0)
            self.assertEqual([e[2:4] for e in a], [e[2:4] for e in b], "not in the same order")
            here = [max(0, abs(x[0] - y[0]) - y[4]) * 1e6 / hz for x, y in zip(a, b)]
            gaps += here
            spent = [handling(side) for side in (a, b)]
            for reason, ticks in spent[0].items():
                n = count[0][EXIT, reason]
                # Each exit and entry is off by its own turn, a few by a stop of the machine.
                allowed = sum(sorted(here)[-2 * n:]) + 2 * n * max(e[4] for e in b) * 1e6 / hz
                off = abs(ticks - spent[1][reason]) * 1e6 / hz
                self.assertLessEqual(off, allowed, reason)
        tight = sum(gap <= TURN_US for gap in gaps) / len(gaps)
        print(f"{series}: {len(gaps)} events; beyond the stated error: median "
              f"{statistics.median(gaps):.1f} us, {tight:.2%} within {TURN_US} us, all within "
              f"{max(gaps):.0f} us; stated error at most {max(e[4] for e in ours) * 1e6 / hz:.1f} us")
        self.assertGreaterEqual(tight, TURN_MOST)
        self.assertLessEqual(max(gaps), STOP_US)

    def test_entries_and_exits(self):
        for series in SERIES:
            with self.subTest(series):
                bed.machine.retry_emulator(lambda: self.compare(series))


if __name__ == "__main__":
    unittest.main()
