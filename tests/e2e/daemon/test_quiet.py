#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The agent of a VM that does nothing for 10 s sends the daemon one heartbeat per second instead of five.
When the VM runs again, its events are recorded and the heartbeats are frequent again immediately.
"""
import json
import socket
import subprocess
import time

from daemon_rig import BUILD, Daemon, FakeVm, report_json, skip_unless_possible, until

HOST_BEATS = BUILD / "tests/e2e/daemon/host-beats"
QUIET_AFTER_S, SETTLED_S, QUIET_S, BUSY_S = 10, 3, 6, 4


def beats_between(beats, begin, end):
    return sum(begin <= beat < end for beat in beats)


def wake(vm, seconds):
    """A hundred wake-ups a second. Returns when they began and ended."""
    begin = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        while time.monotonic() - begin < seconds:
            s.sendto(b"x", ("127.0.0.1", vm.port))
            time.sleep(0.01)
    return begin, time.monotonic()


def run(daemon, vm):
    until("it records", lambda: (daemon.vm("quiet") or {}).get("file_bytes"))
    began = time.monotonic()
    time.sleep(QUIET_AFTER_S + SETTLED_S + QUIET_S)
    busy, over = wake(vm, BUSY_S)
    path = daemon.vm("quiet")["file"]
    daemon.ask("record", "quiet", "stop")
    out = subprocess.run([HOST_BEATS, path], check=True, stdout=subprocess.PIPE, text=True).stdout
    beats = [int(line) / 1e9 for line in out.split()]
    at_first = beats_between(beats, began + 1, began + QUIET_AFTER_S - 2) / (QUIET_AFTER_S - 3)
    quiet = beats_between(beats, busy - QUIET_S, busy) / QUIET_S
    loaded = beats_between(beats, busy + 0.5, over) / (over - busy - 0.5)
    first = min(beat for beat in beats if beat > busy) - busy
    print(f"heartbeats per second: {at_first:.1f} at first, {quiet:.1f} quiet, {loaded:.1f} loaded; the first "
          f"{first * 1000:.0f} ms after the first event")
    # A busy machine makes fewer of them, never more.
    assert quiet <= 1.5, quiet
    assert at_first > 3 and loaded > 3, (at_first, loaded)
    assert first < 0.9, first
    events = report_json(path)["loss"]
    assert sum(stream["delivered"] for stream in events.values()) >= 2 * BUSY_S * 20, json.dumps(events)


def main():
    skip_unless_possible()
    vm = FakeVm("quiet", 1, port=True)
    daemon = Daemon(f"[vm quiet]\npid = {vm.pid}\nrecord = yes\nstall = 60s\n")
    try:
        daemon.start()
        run(daemon, vm)
    finally:
        daemon.clean()
        vm.end()


if __name__ == "__main__":
    main()
