#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the conversion of times by round trips on emulated guests, which have no other method: bed A under
load, with a stop and continue in the middle; and bed D, whose guest TSC runs at another rate, and not
steadily.

The true values come from outside the tested channel: readings of the guest's TSC between two of the host's,
through the bed's control port. A command takes long to get there and back, so these readings find only gross
errors of the clock map. A comparison with the best round trip shows how tight the bound is.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), f"{os.path.dirname(HERE)}/beds"]
import bed  # noqa: E402

SKIP = 77
FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
RUN_S = {"a": 600 if FULL else 30, "d": 60 if FULL else 20}
PAUSE_S = 0.7
STEP_ERROR_S = 0.02  # the rate's error over the way between two epochs
LAG_S = 0.5
RATE_ERROR = 0.01
COVERED_SHARE = 0.7  # of the time between the readings: echo begins and ends when it can
WANDER_PER_S = 0.01e-6  # what echo allows a steady clock's rate to change in a second
KNOT_S = 1
ROUNDING_NS = 10  # of ticks
AGENT = "vcpuscope-agent >/root/agent.log 2>&1 </dev/null &"
INSTANTS = 1000  # at which the bound is asked for


def probe(program):
    """A TSC value of this machine."""
    return int(subprocess.run([program, "1", "0"], capture_output=True, text=True,
                              check=True).stdout.split()[0])


class Run:
    """One recording, with what was done meanwhile."""

    def __init__(self, name, builder, say):
        self.name, self._builder, self._say = name, builder, say
        self._vcpuscope = f"{builder.build}/host-collector/vcpuscope"
        self._probe = f"{builder.build}/tests/e2e/clock/clock-probe"
        self.truth = []  # (host TSC before, guest TSC, host TSC after)
        self.pause = None  # the same clock's (before stop, after cont)

    def _truth_take(self, guest):
        before = probe(self._probe)
        inside = int(guest.run("clock-probe 1 0").split()[0])
        self.truth.append((before, inside, probe(self._probe)))

    def _load(self, guest):
        guest.run("provoke ticker 5000 >/dev/null 2>&1 </dev/null & "
                  "while :; do provoke compute 300; sleep 0.2; done >/dev/null 2>&1 </dev/null &")

    def _meanwhile(self, guest, recorder):
        """Truth every other second; bed A is stopped and continued once, in the middle."""
        end, stop_at = time.monotonic() + RUN_S[self.name], time.monotonic() + RUN_S[self.name] / 2
        while time.monotonic() < end and recorder.poll() is None:
            self._truth_take(guest)
            if self.name == "a" and not self.pause and time.monotonic() > stop_at:
                before = probe(self._probe)
                guest.qmp("stop")
                time.sleep(PAUSE_S)
                guest.qmp("cont")
                self.pause = (before, probe(self._probe))
            time.sleep(2)

    def record(self, path):
        self.truth, self.pause = [], None
        files = [(self._probe, "/usr/bin/clock-probe")]
        with self._boot(files) as guest:
            self._say(f"guest is up after {guest.boot_s:.1f} s, recording {RUN_S[self.name]} s")
            guest.run(AGENT)
            self._load(guest)
            with self._recorder(guest, path) as recorder:
                time.sleep(3)
                self._meanwhile(guest, recorder)

    def _boot(self, files):
        if self.name == "d":
            return bed.boot_d(self._builder, files=files)
        return bed.boot_a(self._builder, files=files)

    @contextlib.contextmanager
    def _recorder(self, guest, path):
        recorder = subprocess.Popen(
            [self._vcpuscope, "record", "--pid", str(guest.pid), "--channel", guest.agent_socket,
             "-o", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        try:
            yield recorder
        finally:
            recorder.send_signal(signal.SIGINT)
            said, _ = recorder.communicate(timeout=60)
        self._say(f"the recorder said:\n{said}")

    def clocks(self, path):
        """The account of the recording's clocks."""
        done = subprocess.run([self._vcpuscope, "clock", path, "--format", "json"],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["vms"][0]

    def convert(self, path, guest_tscs):
        """[(guest TSC, host TSC, bound in ticks, host ns, bound in ns)]"""
        done = subprocess.run([self._vcpuscope, "clock", path, "--convert", "-"], check=True, text=True,
                              input="".join(f"{t}\n" for t in guest_tscs), capture_output=True)
        return [tuple(map(int, line.split()[:5])) for line in done.stdout.splitlines()[1:]]


# The extreme lines are found from outside, by cutting planes that stop early: that only widens.
ALLOWANCE = 1.15


def bound_ns_max(echo, epoch, distance_s):
    """Half of the best round trip and the drift at this distance from it. What is known is kept
    for instants KNOT_S apart, so the best round trip itself counts up to that far away."""
    distance_s += KNOT_S
    slope = (epoch["ratio_max"] - epoch["ratio_min"]) / (epoch["ratio_max"] + epoch["ratio_min"])
    drift = slope * distance_s + WANDER_PER_S * distance_s ** 2 / 2
    return echo["best_round_trip_ns"] / 2 + drift * 1e9 + ROUNDING_NS


def check_truth(run, path, expect):
    outside = [(before, guest, after, host, err)
               for (before, guest, after), (_, host, err, *_) in
               zip(run.truth, run.convert(path, [t[1] for t in run.truth]))
               if host + err < before or host - err > after]
    expect(len(run.truth) >= 5, f"only {len(run.truth)} readings of the truth")
    expect(not outside, f"the map contradicts {len(outside)} of {len(run.truth)} readings through "
           f"the control port: {outside[:3]}")


def check_a(run, path, clocks, expect):
    epochs = clocks["echo"]["epoch_list"]
    expect(clocks["echo"]["epochs"] == 2, f"{clocks['echo']['epochs']} epochs, not 2")
    if len(epochs) != 2:
        return {}
    ratio = (clocks["echo"]["ratio_min"] + clocks["echo"]["ratio_max"]) / 2
    before, after = epochs
    (_, t0, _, n0, _), (_, t1, _, n1, _) = run.convert(path, (before["guest_from"], after["guest_to"]))
    hz = (t1 - t0) / (n1 - n0) * 1e9
    step_s = ((after["host_from"] - before["host_to"])
              - (after["guest_from"] - before["guest_to"]) / ratio) / hz
    expect(before["host_to"] <= run.pause[1] and after["host_from"] >= run.pause[0],
           f"the epochs {epochs} do not meet at the pause {run.pause}")
    paused_s = (run.pause[1] - run.pause[0]) / hz  # and the commands' way there and back
    expect(PAUSE_S - STEP_ERROR_S < step_s < paused_s + STEP_ERROR_S,
           f"the step is {step_s:.3f} s, the pause was {PAUSE_S} to {paused_s:.3f} s")
    best = clocks["echo"]["best_guest_tsc"]
    epoch = next(e for e in epochs if e["guest_from"] <= best <= e["guest_to"])
    span = epoch["guest_to"] - epoch["guest_from"]
    instants = [epoch["guest_from"] + span * i // INSTANTS for i in range(INSTANTS + 1)]
    worst, errors = 0.0, []
    for guest, _, err_ticks, *_ in run.convert(path, instants):
        err_ns = err_ticks / hz * 1e9
        worst = max(worst, err_ns / bound_ns_max(clocks["echo"], epoch, abs(guest - best) / ratio / hz))
        errors.append(err_ns)
    expect(worst <= ALLOWANCE, f"the bound is up to {worst:.2f} times half the best round trip and drift")
    return {"step_s": step_s, "worst_of_allowed": worst,
            "err_ns_median": sorted(errors)[len(errors) // 2], "err_ns_max": max(errors)}


def check_d(run, path, clocks, expect):
    """A clock of instructions keeps its rate only on average: what the map makes of the truth's span is
    within the lead or lag that QEMU lets it have; and the rate found is that of what echo covers."""
    echo = clocks["echo"]
    # The agent takes some seconds to start in so slow a guest; before, no clock was observed.
    observed = [t for t in run.truth if t[1] >= echo["epoch_list"][0]["guest_from"]]
    (h0, g0, h1), (h2, g1, h3) = observed[0], observed[-1]
    measured = (g1 - g0) / ((h2 + h3) / 2 - (h0 + h1) / 2)
    (_, m0, *_), (_, m1, *_) = run.convert(path, (g0, g1))
    mapped = (g1 - g0) / (m1 - m0)
    found = (echo["ratio_min"] + echo["ratio_max"]) / 2
    begin, end = echo["epoch_list"][0], echo["epoch_list"][-1]
    covered = (end["guest_to"] - begin["guest_from"]) / (end["host_to"] - begin["host_from"])
    run_s = RUN_S["d"] * len(observed) / len(run.truth)
    expect(len(observed) > len(run.truth) / 2, f"only {len(observed)} of {len(run.truth)} readings are observed")
    expect(abs(mapped / measured - 1) < LAG_S / run_s,
           f"the map's rate, {mapped:.6f} guest ticks per host tick, is not the measured {measured:.6f}")
    expect(abs(found / covered - 1) < RATE_ERROR,
           f"the rate found, {found:.6f} guest ticks per host tick, is not the map's {covered:.6f}")
    expect(measured < 0.9, f"the guest's clock is not slower than the host's: {measured:.3f}")
    expect(echo["unsteady"], "the clock passes for steady")
    first = max(g0, echo["epoch_list"][0]["guest_from"])
    last = min(g1, echo["epoch_list"][-1]["guest_to"])
    expect(last - first >= COVERED_SHARE * (g1 - g0),
           f"echo covers {first} to {last} of {g0} to {g1} only")
    instants = [first + (last - first) * i // INSTANTS for i in range(INSTANTS + 1)]
    errors = sorted(err_ns for *_, err_ns in run.convert(path, instants))
    expect(errors[-1] < 1e9, f"a bound of {errors[-1] / 1e9:.1f} s between round trips 0.2 s apart")
    return {"ratio_measured": measured, "ratio_mapped": mapped, "err_ns_median": errors[len(errors) // 2],
            "err_ns_max": errors[-1]}


def play(name, series):
    wrong = []

    def say(text):
        print(f"[bed {name}] {text}", flush=True)

    def expect(right, what):
        if not right:
            wrong.append(what)

    with tempfile.TemporaryDirectory() as folder:
        path = os.environ.get("VCPUSCOPE_CLOCK_KEEP", folder) + f"/{name}.vcs"
        run = Run(name, bed.Builder(series=series, say=say), say)
        try:
            bed.machine.retry_emulator(lambda: run.record(path), say)
            clocks = run.clocks(path)
            figures = {k: clocks["echo"][k] for k in ("round_trips", "epochs", "best_round_trip_ns",
                                                      "error_ns", "ratio_min", "ratio_max")}
            say(json.dumps(figures))
            expect(clocks["method"] == "echo", f"the method is {clocks['method']}, not echo")
            expect(clocks["causality_pairs"] >= 100 and not clocks["causality_violations"],
                   f"{clocks['causality_violations']} of {clocks['causality_pairs']} causal pairs "
                   "are violated")
            check_truth(run, path, expect)
            say(json.dumps((check_a if name == "a" else check_d)(run, path, clocks, expect)))
        except bed.BedError as error:
            wrong.append(str(error))
    for line in wrong:
        say(f"wrong: {line}")
    return bool(wrong)


def main():
    if os.geteuid():
        print("BPF on this machine's kernel needs root: run it as root")
        return SKIP
    return any([play(name, "6.1") for name in sys.argv[1:] or ("a", "d")])


if __name__ == "__main__":
    sys.exit(main())
