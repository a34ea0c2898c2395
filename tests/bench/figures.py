# SPDX-License-Identifier: GPL-2.0-only
"""Figures of the benchmarks: printing them, reading them, and processes that leave nothing behind.

A bench prints each of its figures as one line of fields that tabs separate:

    figure NAME VALUE UNIT LOW HIGH GOAL PEER

VALUE is the median of the rounds, LOW and HIGH are their quartiles, GOAL is "<= N", ">= N" or "-". PEER says
what was measured beside it in the same run, or "-". figure.h prints the same from C."""
import ctypes
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
import typing

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)


def program(build, name):
    """The path of a program. VCPUSCOPE_PROGRAMS names a build that has the programs only, as they are shipped: then it is
    that one's, and only the tools are of `build`."""
    return pathlib.Path(os.environ.get("VCPUSCOPE_PROGRAMS") or build) / name


class Figure(typing.NamedTuple):
    name: str
    value: float
    unit: str
    low: float
    high: float
    goal: str = "-"
    peer: str = "-"

    def met(self):
        """None without a goal."""
        if self.goal == "-":
            return None
        sign, limit = self.goal.split()
        return self.value <= float(limit) if sign == "<=" else self.value >= float(limit)

    def line(self):
        numbers = [f"{n:.6g}" for n in (self.value, self.low, self.high)]
        return "\t".join(("figure", self.name, numbers[0], self.unit, *numbers[1:], self.goal, self.peer))


def of_rounds(name, values, unit, goal="-", peer="-"):
    """The figure of these rounds, or of one value."""
    rounds = sorted(values) if isinstance(values, (list, tuple)) else [values]
    n = len(rounds)
    return Figure(name, rounds[n // 2], unit, rounds[n // 4], rounds[n - 1 - n // 4], goal, peer)


def show(*arguments, **named):
    """Prints of_rounds(...). Returns whether it meets its goal; true without a goal."""
    figure = of_rounds(*arguments, **named)
    print(figure.line(), flush=True)
    return figure.met() is not False


def parse(line):
    """The figure of a line; None if the line is another text. ValueError: it looks like one and is none."""
    words = line.rstrip("\n").split("\t")
    if words[0] != "figure":
        return None
    if len(words) != 8:
        raise ValueError(f"{len(words)} fields instead of 8: {line!r}")
    _, name, value, unit, low, high, goal, peer = words
    figure = Figure(name, float(value), unit, float(low), float(high), goal, peer)
    figure.met()
    return figure


# ---- processes ----


def _ended(number, _):
    raise SystemExit(128 + number)


def end_by_signals():
    """SIGTERM and SIGHUP end this program as an exception does, so that its `finally` clauses run."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)


def adopt_orphans():
    """From now on what a child leaves behind becomes a child of this process; see end_children()."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """The processes that this one is the parent of."""
    return [int(pid) for task in pathlib.Path("/proc/self/task").iterdir()
            for pid in (task / "children").read_text().split()]


def end_children():
    """Kills all that descend from this process, however often they were orphaned. Needs adopt_orphans().
    Returns the names of those that still ran."""
    names = []
    while pids := children():
        for pid in pids:
            try:
                state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                if state not in "ZX":
                    names.append(pathlib.Path(f"/proc/{pid}/comm").read_text().strip())
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has just ended
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass
    return names


def start(command, **options):
    """A process in a session of its own that gets SIGTERM when this one dies."""
    parent = os.getpid()

    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before
            os._exit(1)

    return subprocess.Popen(command, start_new_session=True, preexec_fn=prepare, **options)


def lines_until_end(process):
    """What the process prints on its pipe, line by line, until it ends; not what those that it leaves behind print
    later."""
    pipe, rest = process.stdout.fileno(), b""
    os.set_blocking(pipe, False)
    while True:
        over = process.poll() is not None
        if select.select([pipe], [], [], 0 if over else 0.2)[0]:
            more = os.read(pipe, 1 << 16)
            *lines, rest = (rest + more).split(b"\n")
            yield from (f"{line.decode(errors='replace')}\n" for line in lines)
            over = not more
        if over:
            break
    if rest:
        yield f"{rest.decode(errors='replace')}\n"


def end(process):
    """Ends the session that start() began: SIGTERM, and SIGKILL for what is still there."""
    for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass


def run_child(command, **options):
    """Runs it. Returns its CPU time (user and system) and wall time in seconds and its peak memory in bytes.
    Ends this program if it fails."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    try:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begin, used.ru_maxrss << 10


def skip(why):
    print(f"skipped: {why}", flush=True)
    sys.exit(77)
