#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks that the JSON of the daemon fits deploy/schemas, member by member: each answer of the control
socket, the lines of `watch`, the texts of a stream, incident.json. The VM is a process that looks like a VM;
its guest's agent is simulated.
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

from daemon_rig import BUILD, Daemon, FakeVm, PROGRAM, skip_unless_possible, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sim"))
try:
    from schema_check import Schemas
except ImportError:
    print("skipped: no python3-jsonschema here")
    sys.exit(77)

SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"
ENTRY = struct.Struct("=IIQ")  # daemon/streams.h
STREAM_TEXT = 0xffffffff
EVENT = "sched:sched_stat_runtime"
PAIR = "switched=host:sched:sched_switch..guest:sched:sched_switch"


def connect(d, request):
    control = socket.socket(socket.AF_UNIX)
    control.settimeout(30)
    control.connect(str(d.control))
    control.sendall(json.dumps(request).encode() + b"\n")
    return control, control.makefile("rb")


def answer(d, **request):
    """What a program that speaks to the socket itself reads."""
    control, lines = connect(d, request)
    with control, lines:
        return lines.readline().decode()


def answers_check(c, d, vm):
    for when in ("at the beginning", "while the VM runs"):
        for command in ("list", "status", "top"):
            c.fits(f"control-1#{command}", answer(d, command=command), f"{command} {when}")
        until("the VM runs", lambda: d.vm("v")["state"] == "running")
    until("the agent is heard", lambda: d.vm("v")["channel"] == "ok" and d.vm("v")["guest_emitted"] > 1000)
    until("its clock is known", lambda: "clock" in d.vm("v"))
    vm_members = set(d.vm("v"))
    c.wrong(not {"flight", "link", "file", "qemu_pid", "agent", "clock"} <= vm_members,
            f"list shows only {vm_members}")
    os.kill(vm.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(vm.pid, signal.SIGCONT)
    until("top shows the stall",
          lambda: any("last_stall" in v for v in json.loads(answer(d, command="top"))["vms"]))
    for words, definition in ((("list",), "list"), (("status",), "status"), (("snapshot", "v"), "snapshot"),
                              (("level", "v", "summary"), "done"), (("level", "v", "detail"), "done"),
                              (("record", "v", "stop"), "done"), (("record", "v", "start"), "done"),
                              (("rescan",), "done"), (("reload",), "done")):
        text = d.ctl(*words, "--format", "json").stdout
        c.fits(f"control-1#{definition}", text, f"ctl {' '.join(words)}")
        c.fits("control-1", text, f"ctl {' '.join(words)}, any answer")
    for command in ("list", "top", "status"):
        c.fits(f"control-1#{command}", answer(d, command=command), command)
    for wrong in ({"command": "detach", "vm": "nosuch"}, {"command": "nosuch"}, {"vm": "v"}):
        c.fits("control-1#failed", answer(d, **wrong), f"the answer to {wrong}")


def stream_check(c, d):
    control, lines = connect(d, {"command": "stream", "vm": "v"})
    seen = set()
    with control, lines:
        c.fits("control-1#done", lines.readline().decode(), "the answer to stream")
        end = time.monotonic() + 20
        while "status" not in seen and time.monotonic() < end:
            source, n, _ = ENTRY.unpack(lines.read(ENTRY.size))
            body = lines.read(n)
            if source == STREAM_TEXT:
                seen |= set(json.loads(body))
                c.fits("control-1#stream_text", body.decode(), "a text of a stream")
    c.wrong("status" not in seen, f"a stream had only {seen}")


def watch_check(c, d, vm, expect, *words):
    """expect: the schema of its lines."""
    watch = subprocess.Popen([PROGRAM, "watch", *words, "--format", "json"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(1.5)
        os.kill(vm.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(vm.pid, signal.SIGCONT)
        out, err = watch.communicate(timeout=60)
    finally:
        watch.kill()
    c.wrong(watch.returncode, f"watch {words}: {err}")
    for line in out.splitlines():
        name = "pair-1" if line.startswith('{"pair"') else \
            "event-1" if '"event"' in line and '"schema"' not in line else expect
        c.fits(name, line, f"watch {' '.join(map(str, words))}")
    return out


def main():
    skip_unless_possible()
    c = Schemas()
    vm = FakeVm("v", 2)
    d = Daemon(settings="incident_gap = 1s")
    d.configure(f"[vm v]\npid = {vm.pid}\nrecord = yes\nflight_time = 2s\n"
                f"channel = listen:unix:{d.folder}/agent\n")
    agent = None
    try:
        d.start()
        agent = subprocess.Popen([SIM_AGENT, d.folder / "agent", "1000"], stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL)
        answers_check(c, d, vm)
        stream_check(c, d)
        through = ("--vm", "v", "--control", str(d.control), "--for", "4s")
        watch_check(c, d, vm, "report-1", *through)
        watch_check(c, d, vm, "table-2", "vcpu", "--interval", "500ms", *through)
        events = watch_check(c, d, vm, "report-1", "-e", EVENT, "--pid", str(vm.pid), "--for", "4s")
        c.wrong('"event"' not in events, "watch -e printed no event")
        pairs = watch_check(c, d, vm, "report-1", "--pair", PAIR, *through)
        c.wrong('"pair"' not in pairs, "watch --pair printed no pair")
        folders = d.recordings / "incidents"
        for path in until("a summary of an incident", lambda: sorted(folders.glob("*/incident.json"))):
            c.fits("incident-1", path.read_text(), path.name)
        c.fits("control-1#list", answer(d, command="list"), "list at the end")
        c.fits("vms-1", subprocess.run([PROGRAM, "list", "--all", "--format", "json", "--control", d.control],
                                       capture_output=True, text=True, check=True).stdout, "list --all")
        for words, definition in ((("detach", "v"), "done"), (("stop",), "done")):
            c.fits(f"control-1#{definition}", d.ctl(*words, "--format", "json").stdout, f"ctl {words[0]}")
    finally:
        if agent:
            agent.kill()
            agent.communicate()
        d.clean()
        vm.end()
    wanted = {f"control-1#{name}" for name in ("list", "status", "top", "snapshot", "done", "failed", "stream_text")}
    wanted |= {"control-1", "report-1", "table-2", "event-1", "incident-1", "vms-1"}
    c.wrong(wanted - set(c.checked), f"no text was compared with {wanted - set(c.checked)}")
    print(f"{c.checked}: {c.bad} wrong")
    sys.exit(bool(c.bad))


if __name__ == "__main__":
    main()
