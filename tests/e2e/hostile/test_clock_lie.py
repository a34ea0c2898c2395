#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests a live guest that lies about its clock (bed A): its answers to round trips are changed on their way.
The guest must not be able to blame the host for its own spin, or to invent stalls. The report must say that
the guest's times are unproven. The host side must stay correct.

One lie by default, more with VCPUSCOPE_TEST_FULL=1. Exit status: 0 pass, 1 fail, 77 cannot run here.
"""
import json
import os
import struct
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.dirname(HERE)
sys.path[:0] = [E2E, f"{E2E}/beds"]
import bed  # noqa: E402
import relay  # noqa: E402
import run_scene  # noqa: E402
import scene  # noqa: E402
import test_verdicts  # noqa: E402

FRAME_ECHO_REPLY = 5
PAYLOAD_CRC, HEADER_CRC_BYTES = 8, 4  # the fields in front of these: the index, and what is not covered
LIES_MS = (405, -405, 1700, 50) if test_verdicts.FULL else (405,)
PAUSE_S = 0.8


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varints(payload):
    """(field, value) of a message of numbers."""
    numbers, value, shift = [], 0, 0
    for byte in payload:
        value |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(value)
            value = shift = 0
    return [(key >> 3, value) for key, value in zip(numbers[::2], numbers[1::2])]


class LyingRelay(relay.Relay):
    """Adds `ticks` to both stamps of the guest's answers."""

    def __init__(self, path, agent):
        self.ticks, self.lies = 0, 0
        super().__init__(path, agent)

    def _spoilt(self, frame):
        if not self.ticks or len(frame) < relay.HEADER.size or frame[5] != FRAME_ECHO_REPLY:
            return frame
        fields = varints(frame[relay.HEADER.size:])
        payload = b"".join(varint(field << 3) + varint(value + self.ticks * (field > 1)) for field, value in fields)
        header = list(relay.HEADER.unpack_from(frame))
        header[4] = header[5] = len(payload)
        header[PAYLOAD_CRC] = relay.crc32c(payload)
        packed = relay.HEADER.pack(*header)[:-HEADER_CRC_BYTES]
        self.lies += 1
        return packed + struct.pack("<I", relay.crc32c(packed)) + payload


def ticks_per_ms(played):
    before = json.loads(played.host.run("provoke now"))
    time.sleep(0.5)
    after = json.loads(played.host.run("provoke now"))
    return (after["begin_tsc"] - before["begin_tsc"]) / (after["begin_raw_ns"] - before["begin_raw_ns"]) * 1e6


def provoke(played):
    """Stalls of both sides. Returns those that the host caused: [(verdict, window)]."""
    host = []
    for _ in range(2):
        time.sleep(PAUSE_S)
        played.guest.run("provoke stall preempt 500")
        time.sleep(PAUSE_S)
        for verdict, command in (("vm_paused", f"provoke sigstop {played.qemu_pid} 400"),
                                 ("vcpu_not_scheduled", f"provoke hog {scene.VCPU_CPU} 400")):
            done = json.loads(played.host.run(command))
            host.append((verdict, (done["begin_raw_ns"], done["end_raw_ns"])))
            time.sleep(PAUSE_S)
    return host


def check(text, report, host, lie_ms):
    """What is wrong: a list of lines."""
    wrong, clock = [], report["clock"][0]
    incidents = report["incidents"]
    if clock["method"] != "untrusted":
        wrong.append(f"a lie of {lie_ms} ms passes: {clock}")
    if "NOT PROVEN" not in text.split("\n\n")[0].splitlines()[0]:
        wrong.append(f"the report does not begin with it: {text[:400]}")
    for i in incidents:
        where = (f"{i.get('verdict')} ({i['confidence']}) {i['duration_ns'] / 1e6:.0f} ms at {i['begin_ns']}: "
                 f"{i['because']}")
        if i["kind"] != "unknown" and i.get("verdict") != "undetermined":
            wrong.append(f"joins what is not proven: {where}")
        if i["kind"] != "unknown" and i["confidence"] == "decided":
            wrong.append(f"decided: {where}")
        if i["kind"] == "unknown" and i.get("verdict") != "vcpu_not_scheduled" and not any(
                test_verdicts.overlap_ns(i, window) > 0 for _, window in host):
            wrong.append(f"invented: {where}")
    for verdict, window in host:
        if not any(i.get("verdict") == verdict and test_verdicts.overlap_ns(i, window) > 0 for i in incidents):
            wrong.append(f"the host's own {verdict} is missing")
    return wrong


def main():
    if os.geteuid():
        print("skipped: BPF on this machine's kernel needs root")
        return run_scene.SKIP
    started, wrong = time.time(), []

    def say(text):
        print(f"[{time.time() - started:5.1f} s] {text}", flush=True)

    builder = bed.Builder(None, "6.1", say)
    with run_scene.own_signals(), tempfile.TemporaryDirectory(prefix="vcpuscope-lie.") as folder, \
            run_scene.direct(builder, folder, say, "tcg") as (played, guest):
        lying = LyingRelay(f"{folder}/relay", played.channel)
        played.channel = lying.path
        played.prepare()
        played.guest.run("provoke ticker 5000 >/dev/null 2>&1 </dev/null & "
                         "provoke compute 600000 >/dev/null 2>&1 </dev/null & true")
        rate = ticks_per_ms(played)
        for lie_ms in LIES_MS:
            lying.ticks, lying.lies = int(lie_ms * rate), 0
            played.record_start()
            host = provoke(played)
            played.record_stop()
            lines = check(*played.report(), host, lie_ms)
            say(f"a lie of {lie_ms} ms, told {lying.lies} times: {'WRONG' if lines else 'right'}"
                + "".join(f"\n    {line}" for line in lines))
            wrong += lines
        lying.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
