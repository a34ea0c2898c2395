#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the clocks of a real KVM guest (bed B) that its VMM stops and continues in the middle.

Every round trip confirms the hypervisor's TSC offset. The kvmclock that is computed from it and from the
vCPU's pvclock parameters differs from the guest's clock by one constant, within the guest's TSC reads around
each of 1,000 samples. The parameters are equal to those of the guest, bit for bit. The interval of the round
trips contains the exact map. No message is received before it was sent. Then, with the clocks of host and
guest slewed in opposite directions, lines of the guest's log are within their predicted intervals, and the
interval of the round trips contains the exact map on new channels. The arithmetic of this test shares no code
with the product.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), f"{os.path.dirname(HERE)}/beds"]
import bed  # noqa: E402
import scene  # noqa: E402

SAMPLES, PERIOD_MS = 1000, 10
PAUSE_S = 0.7
FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
LOG_LINES, LOG_PERIOD_MS = (1000 if FULL else 100), 20
SLEWS_PPM = ((500, -500), (-500, 500))  # host's and guest's CLOCK_MONOTONIC, one after the other
# (how many, how many in one boot, each so long: an agent dials again within 1 s)
FRESH_CHANNELS, FRESH_A_BOOT, FRESH_S = (100 if FULL else 1), 25, 4
ATTEMPTS = 4
SILENT_MAX = 3  # recordings, in one boot, before the agent of a starved machine had dialled
ERROR_MAX_NS = 5_000_000  # of any event but these; the pause is 140 times longer
BESIDE_MAX = 500  # of the drain in which the pause lies, if one of them is too close to it to tell its side
UNSURE_MAX = SAMPLES // 10  # samples while KVM may have been changing its parameters

# Kernels of host/guest.
PAIRS = ("6.12/6.1",) + (("6.1/6.12", "6.1/6.1", "6.12/6.12") if FULL else ())

# A monitor that a shell can write to.
MONITOR = "/run/monitor"
GUEST_START = (f"busybox mkfifo {MONITOR}.in {MONITOR}.out && guest-start 1 "
               f"-chardev pipe,id=monitor,path={MONITOR} -mon chardev=monitor,mode=readline "
               "-device vhost-vsock-pci,guest-cid=3")
# (the agent's address, the collector's)
CHANNELS = {"virtio-serial": ("port:org.vcpuscope.agent.0", "/run/guest/agent"),
            "vsock": ("vsock:2:7431", "vsock:3:7431")}


def kvmclock(line, guest_tsc):
    delta = guest_tsc - line["tsc_timestamp"]
    delta = delta << line["shift"] if line["shift"] >= 0 else delta >> -line["shift"]
    return line["system_time"] + (delta * line["mul"] >> 32)


def line_in_force(lines, begin, end):
    """Of host TSC begin..end; None if it may have changed then."""
    if any(line["from_min"] <= end and begin < line["from_max"] for line in lines
           if line["from_min"]):
        return None
    past = [line for line in lines if line["from_max"] <= begin]
    return max(past, key=lambda line: line["from_max"]) if past else min(
        lines, key=lambda line: line["from_max"])


def slewed_log(played, say):
    """[(TSC before, stamp in us, TSC after)] of log lines while both clocks are slewed."""
    marks = []
    played.guest.run("echo on >/proc/sys/kernel/printk_devkmsg")
    for host_ppm, guest_ppm in SLEWS_PPM:
        say(f"adjtimex: host {host_ppm:+} ppm, guest {guest_ppm:+} ppm; {LOG_LINES // len(SLEWS_PPM)} "
            "lines into the guest's log")
        for place, ppm in ((played.host, host_ppm), (played.guest, guest_ppm)):
            said = place.run(f"busybox adjtimex -f {ppm * 65536} && busybox adjtimex")
            if str(ppm * 65536) not in said:
                raise scene.SceneError(f"adjtimex took no {ppm} ppm: {said}")
        said = played.guest.run(f"kmsg-probe slewed.{host_ppm}. {LOG_LINES // len(SLEWS_PPM)} "
                                f"{LOG_PERIOD_MS}", timeout_s=120)
        marks += [tuple(map(int, line.split())) for line in said.splitlines()]
    for place in (played.host, played.guest):
        place.run("busybox adjtimex -f 0")
    return marks


def fresh_channels(played, name, n, say):
    """Echo's account of so many connections, each a recording of its own."""
    agent, collector = CHANNELS[name]
    say(f"{n} fresh channels on {name}")
    played.guest.run("kill $(cat /run/agent.pid); while kill -0 $(cat /run/agent.pid) 2>/dev/null; do "
                     f"sleep 0.1; done; vcpuscope-agent --connect {agent} >/root/agent.log 2>&1 "
                     "</dev/null & echo $! >/run/agent.pid")
    # The kernel patches its code when a tracepoint gets its first and its second user, and QEMU may run a
    # stale translation of it for ever. With two that stay, the recordings come and go without a patch.
    played.host.run("for i in 1 2; do vcpuscope record --pid {0} --no-guest -o /root/stay.$i.vcs "
                    ">/dev/null 2>&1 </dev/null & echo $! >/run/stay.$i; done; sleep 4"
                    .format(played.qemu_pid), timeout_s=60)
    echoes, silent = [], 0
    while len(echoes) < n:
        played.host.run(f"vcpuscope record --pid {played.qemu_pid} --channel {collector} "
                        f"-o /root/fresh.vcs --for {FRESH_S}s >/root/fresh.log 2>&1 || "
                        "{ cat /root/fresh.log; exit 1; }", timeout_s=90)
        vm = json.loads(played.host.run("vcpuscope clock /root/fresh.vcs --format json"))["vms"][0]
        if vm["echo"]["round_trips"] or silent == SILENT_MAX:
            echoes.append({**vm["echo"], "violations": vm["causality_violations"]})
        else:
            silent += 1
            say(f"the agent did not dial in {FRESH_S} s; again")
    played.host.run("kill -INT $(cat /run/stay.1 /run/stay.2); sleep 2; rm -f /root/stay.*")
    return echoes


@contextlib.contextmanager
def scene_b(pair, say):
    """Bed B with these kernels, its guest up."""
    host_series, guest_series = pair.split("/")
    builder = bed.Builder(series=host_series, guest_series=guest_series, say=say)
    helpers = [(f"{builder.build}/tests/e2e/clock/{name}", f"/usr/bin/{name}")
               for name in ("clock-probe", "kmsg-probe")]
    with bed.boot_b(builder, guest_files=helpers) as host:
        pid = bed.guest_start(host, say, GUEST_START)
        played = scene.Scene(host, scene.NestedGuest(host), pid, "/run/guest/agent", "/root/out",
                             say, emulated=True)
        played.prepare()
        yield builder, played


def more_channels(pair, name, n, say):
    """In a boot of its own."""
    with scene_b(pair, say) as (_, played):
        return fresh_channels(played, name, n, say)


def attempt(say, what, *arguments):
    """A machine that stands still says nothing about clocks: again, aloud."""
    for left in reversed(range(ATTEMPTS)):
        try:
            return what(*arguments, say)
        except bed.machine.MachineError as error:
            if not left:
                raise
            say(f"{error}; trying again")
    return None


def record(pair, say):
    """(the clocks as JSON, the probe's samples, the log's lines with what was predicted of them,
    echo's accounts of fresh channels)."""
    with scene_b(pair, say) as (builder, played):
        host = played.host
        played.record_start()
        say(f"{SAMPLES} samples of the guest's clock, the VM stopped for {PAUSE_S} s meanwhile")
        played.guest.run(f"clock-probe {SAMPLES} {PERIOD_MS} >/root/samples 2>&1 </dev/null & "
                         "echo $! >/run/probe.pid")
        host.run(f"sleep {SAMPLES * PERIOD_MS / 3000:.1f}; echo stop >{MONITOR}.in; sleep {PAUSE_S}; "
                 f"echo cont >{MONITOR}.in", timeout_s=60)
        played.guest.run("while kill -0 $(cat /run/probe.pid) 2>/dev/null; do sleep 0.5; done",
                         timeout_s=120)
        samples = played.guest.get("/root/samples").decode()
        marks = slewed_log(played, say)
        time.sleep(2.5)  # the log's clock is sampled every second
        played.record_stop()
        fresh = {name: fresh_channels(played, name, min(FRESH_CHANNELS, FRESH_A_BOOT), say)
                 for name in CHANNELS}
        recording = host.get("/root/out/run.vcs")
        log = host.get("/root/out/record.log").decode()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/run.vcs"
        with open(path, "wb") as f:
            f.write(recording)
        shown = [subprocess.run([f"{builder.build}/host-collector/vcpuscope", "clock", path, "--format",
                                 form], capture_output=True, text=True, check=True).stdout
                 for form in ("text", "json")]
        predicted = dict(
            (int(fields[0]), (int(fields[5]), int(fields[6]))) for fields in map(
                str.split, subprocess.run(
                    [f"{builder.build}/host-collector/vcpuscope", "clock", path, "--convert", "-"],
                    input="".join(f"{m[0]}\n{m[2]}\n" for m in marks), capture_output=True,
                    text=True, check=True).stdout.splitlines()[1:]))
    log_lines = [(stamp, predicted[before], predicted[after]) for before, stamp, after in marks]
    say(f"the recorder said:\n{log}\nthe clocks:\n{shown[0]}")
    return (json.loads(shown[1]), [tuple(map(int, line.split())) for line in samples.splitlines()],
            log_lines, fresh)


def check_log(lines, expect):
    outside, widths = [], []
    for stamp_us, (begin_ns, begin_err), (end_ns, end_err) in lines:
        low, high = begin_ns - begin_err, end_ns + end_err
        widths.append(high - low)
        if not low // 1000 <= stamp_us <= high // 1000:
            outside.append((stamp_us, low / 1000, high / 1000))
    expect(len(lines) == LOG_LINES, f"{len(lines)} lines of the log were found, not {LOG_LINES}")
    expect(not outside, f"{len(outside)} of {len(lines)} lines were stamped outside what was "
           f"predicted: {outside[:3]}")
    return {"log_lines": len(lines), "log_interval_ns_median": sorted(widths or [0])[len(widths) // 2]}


def check_fresh(fresh, expect):
    figures = {}
    for name, echoes in fresh.items():
        missed = [e for e in echoes if abs(e.get("exact_from_middle_ns", 1e18)) > e.get("error_ns", 0)]
        expect(len(echoes) == FRESH_CHANNELS and not missed,
               f"on {len(missed)} of {len(echoes)} fresh channels on {name} echo's interval misses "
               f"the exact map: {missed[:2]}")
        expect(not any(e["violations"] for e in echoes), f"{name}: causal pairs are violated")
        figures[name] = {
            "channels": len(echoes), "missed": len(missed),
            "error_ns_median": sorted(e.get("error_ns") or 0 for e in echoes)[len(echoes) // 2],
            "off_ns_max": max(abs(e.get("exact_from_middle_ns", 0)) for e in echoes)}
    return {"fresh": figures}


def check(clocks, samples, log_lines, fresh):
    """What is wrong, and the figures."""
    wrong, vm = [], clocks["vms"][0]
    epochs, lines = vm["tsc_epochs"], [line for line in vm["kvmclock_lines"] if line["vcpu"] == 0]

    def expect(right, what):
        if not right:
            wrong.append(what)

    expect(vm["method"] == "pvclock", f"the method is {vm['method']}, not pvclock")
    expect(len(epochs) == 1 and epochs[0]["verdict"] == "proven",
           f"not one proven TSC epoch: {epochs}")
    expect(epochs and epochs[0]["agreed"] >= 20 and not epochs[0]["contradicted"],
           "fewer than 20 round trips confirm the offset, or some contradict it")
    expect(vm["guest_page_values"] >= 2 and not vm["guest_page_values_differ"],
           f"of {vm['guest_page_values']} values of the guest's own page (one more after cont), "
           f"{vm['guest_page_values_differ']} are not the hypervisor's")
    expect(vm["presence_pairs"] >= 1000, f"only {vm['presence_pairs']} guest events were held against "
           "when their vCPU was in the guest")
    expect(vm["causality_pairs"] >= 100 and not vm["causality_violations"],
           f"{vm['causality_violations']} of {vm['causality_pairs']} causal pairs are violated")
    expect(vm["error_ns"] < ERROR_MAX_NS and vm.get("beside_pauses", 0) <= BESIDE_MAX,
           f"guest times are known to +-{vm['error_ns']} ns, and {vm.get('beside_pauses', 0)} events may "
           "lie on either side of the pause")
    echo = vm["echo"]
    expect(abs(echo.get("exact_from_middle_ns", 1e18)) <= echo["error_ns"],
           f"echo's interval does not hold the exact map: {echo}")
    more = {**check_log(log_lines, expect), **check_fresh(fresh, expect)}
    expect(len(samples) == SAMPLES, f"{len(samples)} samples, not {SAMPLES}")
    if wrong and not (epochs and lines):
        return wrong, more
    offset, low, high, unsure, widths = epochs[0]["tsc_offset"], [], [], 0, []
    for before, monotonic, after in samples:
        line = line_in_force(lines, before - offset, after - offset)
        if not line:
            unsure += 1
            continue
        low.append(monotonic - kvmclock(line, after))
        high.append(monotonic - kvmclock(line, before))
        widths.append(high[-1] - low[-1])
    expect(unsure <= UNSURE_MAX, f"{unsure} samples lie where the parameters may have changed")
    expect(low and max(low) <= min(high),
           f"no constant between kvmclock and the guest's clock fits: {max(low, default=0)} > "
           f"{min(high, default=0)} ns")
    return wrong, {"samples": len(low), "unsure": unsure, "constant_ns": [max(low), min(high)],
                   "bracket_ns_median": sorted(widths)[len(widths) // 2],
                   "error_ns": vm["error_ns"], "echo": echo, "round_trips": epochs[0]["agreed"], **more}


def main():
    failed = False
    for pair in sys.argv[1:] or PAIRS:
        def say(text, pair=pair):
            print(f"[{pair}] {text}", flush=True)

        try:
            clocks, samples, log_lines, fresh = attempt(say, record, pair)
            for name, echoes in fresh.items():
                while len(echoes) < FRESH_CHANNELS:
                    n = min(FRESH_A_BOOT, FRESH_CHANNELS - len(echoes))
                    echoes += attempt(say, more_channels, pair, name, n)
            wrong, figures = check(clocks, samples, log_lines, fresh)
        except (*bed.BedError, scene.SceneError) as error:
            wrong, figures = [str(error)], {}
        say(json.dumps(figures))
        for line in wrong:
            say(f"wrong: {line}")
        failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())
