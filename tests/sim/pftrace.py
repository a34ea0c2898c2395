# SPDX-License-Identifier: GPL-2.0-only
"""Reads a Perfetto trace: its own reader of protobuf's wire format, for a test of the writer must not
share code with it. Only what `vcpuscope export` writes is understood; anything else is an error."""
import bisect
import collections
import struct

Slice = collections.namedtuple("Slice", "begin end name depth flows")


UNKNOWN = ("Not captured/", "Lost events/host")


class BadTrace(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadTrace("a varint without an end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields (number, value): an int, or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            if len(value) != length:
                raise BadTrace("a field that ends behind its message")
        else:
            raise BadTrace(f"wire type {kind}")
        yield tag >> 3, value


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def first(data, number, default=None):
    return next((v for n, v in fields(data) if n == number), default)


def text(data):
    return data.decode("utf-8")  # strictly: readers refuse what is no UTF-8


class Trace:
    def __init__(self, path):
        self.clock = None
        self.clocks = {}  # number of a clock -> its time at the begin
        self.releases = {}  # machine -> kernel release
        self.names = {}  # (machine, tid) -> name
        self.processes = set()  # (machine, pid)
        self.tracks = {}  # uuid -> (name, parent, tid)
        self.switches = collections.defaultdict(list)  # (machine, cpu) -> (t, next, prev state)
        self.wakings = collections.defaultdict(list)  # (machine, cpu) -> (t, pid)
        self.losses = 0
        self.interned = {}
        self.counters = collections.defaultdict(list)  # track -> (t, value)
        self.arguments = {}  # (track, t of the begin) -> {key: value}, of slices that have some
        self.events = collections.defaultdict(list)  # track -> (t, order, type, name, flows, ends)
        with open(path, "rb") as f:
            data = f.read()
        for order, (number, packet) in enumerate(fields(data)):
            if number != 1:
                raise BadTrace(f"field {number} instead of a packet")
            self._packet(order, packet)

    def _packet(self, order, packet):
        known = {1, 2, 6, 8, 10, 11, 12, 13, 45, 60, 87, 98}
        parts = collections.defaultdict(list)
        for number, value in fields(packet):
            if number not in known:
                raise BadTrace(f"packet with field {number}")
            parts[number].append(value)
        machine = parts[98][0] if parts[98] else 0
        if order == 0 and not parts[6]:
            raise BadTrace("does not begin with its clocks")
        for snapshot in parts[6]:
            self.clock = first(snapshot, 2)
            for number, clock in fields(snapshot):
                if number == 1:
                    self.clocks.setdefault(first(clock, 1), first(clock, 2))
        for info in parts[45]:
            self.releases[machine] = text(first(first(info, 1), 3))
        for tree in parts[2]:
            self._tree(machine, tree)
        for bundle in parts[1]:
            self._bundle(machine, bundle)
        for data in parts[12]:
            for number, entry in fields(data):
                self.interned[first(entry, 1)] = text(first(entry, 2))
        for descriptor in parts[60]:
            thread = first(descriptor, 4)
            self.tracks[first(descriptor, 1)] = (
                text(first(descriptor, 2, b"")), first(descriptor, 5),
                first(thread, 2) if thread else None)
        for event in parts[11]:
            if machine:
                raise BadTrace("an event of another machine: arrows would be lost")
            self._event(parts[8][0], order, event)

    def _tree(self, machine, tree):
        for number, entry in fields(tree):
            if number == 1:
                self.processes.add((machine, first(entry, 1)))
            else:
                self.names[machine, first(entry, 1)] = text(first(entry, 2))
                if (machine, first(entry, 3)) not in self.processes:
                    raise BadTrace(f"thread {first(entry, 1)} of a process that is not announced")

    def _bundle(self, machine, bundle):
        if machine not in self.releases:
            raise BadTrace(f"machine {machine} is not described before its schedule")
        cpu = first(bundle, 1, 0)
        self.losses += bool(first(bundle, 3))
        columns = {n: packed(v) for n, v in fields(first(bundle, 4, b"")) if n != 5}
        names = [text(v) for n, v in fields(first(bundle, 4, b"")) if n == 5]
        t = 0
        if len({len(columns.get(n, [])) for n in (1, 2, 3, 4, 6)}) != 1:
            raise BadTrace("columns of different lengths")
        for i, delta in enumerate(columns.get(1, [])):
            t += delta
            pid = columns[3][i]
            assert names[columns[6][i]] is not None
            if pid and (machine, pid) not in self.names:
                raise BadTrace(f"thread {pid} of machine {machine} is not announced")
            self.switches[machine, cpu].append((t, pid, columns[2][i]))
        t = 0
        for i, delta in enumerate(columns.get(7, [])):
            t += delta
            self.wakings[machine, cpu].append((t, columns[8][i]))
        for number, event in fields(bundle):
            if number == 2:
                self.wakings[machine, cpu].append((first(event, 1), first(first(event, 20), 2)))

    def _event(self, t, order, event):
        parts = collections.defaultdict(list)
        for number, value in fields(event):
            parts[number].append(value)
        track = parts[11][0]
        if track not in self.tracks:
            raise BadTrace(f"track {track} is used before it is described")
        if parts[9][0] == 4:
            self.counters[track].append((t, parts[30][0]))
            return
        name = self.interned[parts[10][0]] if parts[10] else None
        if parts[4]:
            self.arguments[track, t] = self._arguments(parts[4])
        self.events[track].append((t, order, parts[9][0], name, parts[47], parts[48]))

    @staticmethod
    def _arguments(annotations):
        """{key: value}; of several with one key the first. A group is "KEY.KEY_IN_THE_GROUP"."""
        found = {}
        for data in annotations:
            parts = collections.defaultdict(list)
            for number, value in fields(data):
                parts[number].append(value)
            key = text(parts[10][0])
            if parts[11]:
                for inner, value in Trace._arguments(parts[11]).items():
                    found.setdefault(f"{key}.{inner}", value)
            else:
                found.setdefault(key, text(parts[6][0]) if parts[6] else parts[4][0])
        return found

    def path(self, track):
        """Its name, below those of its parents: "VM guest: stalls/guest CPU 0"."""
        name, parent, _ = self.tracks[track]
        return f"{self.path(parent)}/{name}" if parent in self.tracks else name

    def runs(self):
        """(machine, tid) -> [(begin, end)], as readers make them of the switches: the first of each
        CPU is dropped, the last has no end."""
        found = collections.defaultdict(list)
        for (machine, _), switches in self.switches.items():
            switches = sorted(switches, key=lambda s: s[0])[1:]
            for (t, pid, _), after in zip(switches, switches[1:] + [(2**63, 0, 0)]):
                found[machine, pid].append((t, after[0]))
        return {key: sorted(runs) for key, runs in found.items()}

    def slices(self, track):
        """The slices of a track, and its instants as slices without length. Raises BadTrace where they
        do not nest."""
        found, open_ones = [], []
        for t, _, kind, name, flows, ends in sorted(self.events[track], key=lambda e: e[:2]):
            if kind == 2:
                if not open_ones:
                    raise BadTrace(f"track {track}: an end without a begin at {t}")
                found.append(open_ones.pop()._replace(end=t))
            else:
                s = Slice(t, t, name, len(open_ones), (flows, ends))
                found.append(s) if kind == 3 else open_ones.append(s)
        if open_ones:
            raise BadTrace(f"track {track}: {open_ones[-1].name} at {open_ones[-1].begin} has no end")
        return sorted(found)

    def flows(self):
        """flow -> [(t, track, name, ends)] in order of time."""
        found = collections.defaultdict(list)
        for track in self.events:
            for s in self.slices(track):
                for flow in s.flows[0]:
                    found[flow].append((s.begin, track, s.name, False))
                for flow in s.flows[1]:
                    found[flow].append((s.begin, track, s.name, True))
        return {flow: sorted(steps, key=lambda s: (s[0], s[3])) for flow, steps in found.items()}

    def thread_track(self, tid):
        return next((uuid for uuid, t in self.tracks.items() if t[2] == tid), None)


def within(intervals, t):
    """intervals: ascending, not overlapping but perhaps touching."""
    at = bisect.bisect_right(intervals, (t, 2**63))
    return any(begin <= t <= end for begin, end in intervals[max(at - 2, 0):at])


def overlaps(intervals, begin, end):
    """intervals: as of within()."""
    at = bisect.bisect_right(intervals, (end, 2**63))
    return at > 0 and intervals[at - 1][1] >= begin


def unknown_times(trace, tid, slack_ns):
    """The times, slack_ns wider, in which a CPU of the host shows nothing because nothing was captured, or the
    thread's own state is unknown; merged."""
    thread = trace.thread_track(tid)
    found = []
    for begin, end in sorted((s.begin - slack_ns, s.end + slack_ns)
                             for track in trace.events for s in trace.slices(track)
                             if trace.path(track).startswith(UNKNOWN)
                             or track == thread and s.name == "unknown"):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def vcpu_problems(trace, machine, cpu, tid, slack_ns):
    """What is wrong with the guest CPU's schedule against that of the host's thread which runs it. Guest times
    have an error of up to slack_ns."""
    times = [t for t, _, _ in trace.switches[machine, cpu]] + [t for t, _ in trace.wakings[machine, cpu]]
    unknown = unknown_times(trace, tid, slack_ns)
    times = [t for t in times if not within(unknown, t)]
    runs = trace.runs().get((0, tid), [])
    track = trace.thread_track(tid)
    exits = [(s.begin + slack_ns, s.end - slack_ns) for s in trace.slices(track)
             if s.depth == 0 and s.name.startswith("exit")] if track else []
    bad = [f"machine {machine} CPU {cpu}: an event at {t} while thread {tid} did not run"
           for t in times if not overlaps(runs, t - slack_ns, t + slack_ns)]
    bad += [f"machine {machine} CPU {cpu}: an event at {t} inside an exit of thread {tid}"
            for t in times if within(exits, t)]
    if not times or not runs:
        bad.append(f"machine {machine} CPU {cpu}: nothing to compare: {len(times)} events, "
                   f"{len(runs)} runs of thread {tid}")
    return bad


def problems(trace):
    """What is wrong with the trace by itself."""
    bad = []
    if trace.clock != 6:
        bad.append(f"its clock is {trace.clock}, not BOOTTIME")
    for track in trace.events:
        try:
            trace.slices(track)
        except BadTrace as e:
            bad.append(str(e))
    for flow, steps in trace.flows().items():
        if len(steps) < 2 or not steps[-1][3] or any(s[3] for s in steps[:-1]):
            bad.append(f"flow {flow} is no arrow: {steps}")
    return bad
