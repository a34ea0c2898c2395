#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the life of the daemon: VMs start and end, recordings follow each other, the disk is not filled, a
reload applies the changed settings, kill -9 leaves nothing behind, and systemd gets its notifications.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from daemon_rig import BUILD, Daemon, FakeVm, PROGRAM, report_json, skip_unless_possible, until


SIM_AGENT = BUILD / "tests/e2e/daemon/sim-agent"


def programs_of(pid):
    """The kernel's BPF programs that a process holds."""
    n = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            n += "bpf-prog" in os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            pass
    return n


def test_attach_record_detach():
    vm = FakeVm("one", 2)
    d = Daemon().start()
    try:
        assert d.ask("list")["vms"] == []
        bad = d.ctl("attach", "one", f"pid={os.getpid()}", "colour=red")
        assert bad.returncode == 1 and "colour: unknown key" in bad.stderr, bad
        assert d.ctl("detach", "one").returncode == 1
        d.ask("attach", "one", f"pid={vm.pid}", f"channel={d.folder}/port")
        assert d.ctl("attach", "one", f"pid={vm.pid}").returncode == 1
        until("it runs", lambda: d.vm("one")["state"] == "running")
        assert d.vm("one")["vcpus"] == 2 and not d.vm("one")["recording"]
        d.ask("record", "one", "start")
        until("a file grows", lambda: d.vm("one")["file_bytes"] > 2000)
        assert d.ctl("record", "one", "start").returncode == 1
        path = d.vm("one")["file"]
        d.ask("record", "one", "stop")
        assert not d.vm("one")["recording"]
        assert report_json(path)["loss"]["host"]["delivered"], path
        d.ask("level", "one", "summary")
        assert d.vm("one")["level"] == "summary"
        # A second VM shares the programs, and has a level and a stream of its own.
        programs = programs_of(d.process.pid)
        other = FakeVm("two", 3)
        d.ask("attach", "two", f"pid={other.pid}")
        until("it runs", lambda: d.vm("two")["state"] == "running")
        assert programs_of(d.process.pid) == programs > 0
        capture = d.ask("status")["capture"]
        assert capture["captures"] == 1 and capture["vms"] == 2, capture
        assert d.vm("one")["level"] == "summary" and d.vm("two")["level"] == "detail"
        d.ask("record", "two", "start")
        until("a file grows", lambda: d.vm("two")["file_bytes"] > 4000)
        path = d.vm("two")["file"]
        d.ask("detach", "two")
        report = report_json(path)
        assert report["complete"] and len(report["vcpus"]) == 3, report
        assert report["loss"]["host"]["delivered"], report["loss"]
        other.end()
        assert d.ask("status")["capture"]["vms"] == 1
        vm.end()
        until("its end is seen", lambda: d.vm("one")["state"] == "gone")
        until("the capture ends", lambda: d.ask("status")["capture"]["captures"] == 0)
        assert programs_of(d.process.pid) == 0
        d.ask("detach", "one")
        assert d.ask("list")["vms"] == []
        again = subprocess.run([PROGRAM, "daemon", "--config", d.folder / "conf"],
                               capture_output=True, text=True)
        assert again.returncode == 1 and "running already" in again.stderr, again
        d.ask("stop")
        assert d.process.wait(20) == 0
        assert not d.control.exists()
    finally:
        d.clean()


def test_trouble_is_told_by_the_command_that_was_typed():
    for typed, usage in ((["list"], None), (["snapshot"], "vcpuscope snapshot: VM is missing; see "),
                         (["ctl", "list"], None), (["ctl", "detach"], "usage: vcpuscope ctl detach VM")):
        done = subprocess.run([PROGRAM, *typed, "--control", "/nowhere"], capture_output=True, text=True)
        assert done.returncode == (2 if usage else 1), done
        assert done.stderr.startswith(usage or f"vcpuscope {typed[0]}: /nowhere: "), done


# QEMU's monitor, to a collector: `python3 -c MONITOR PATH TID`; TID 0: a vCPU thread of its own.
MONITOR = """
import ctypes, json, socket, sys, threading, time
named = [int(sys.argv[2])]
ready = threading.Event()
def vcpu():
    ctypes.CDLL(None).prctl(15, b"CPU 0/KVM", 0, 0, 0)
    named[0] = named[0] or threading.get_native_id()
    ready.set()
    while True:
        time.sleep(0.01)
threading.Thread(target=vcpu, daemon=True).start()
ready.wait()
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(4)
while True:
    stream = listener.accept()[0].makefile("rw")
    def put(answer):
        stream.write(json.dumps(answer) + "\\n")
        stream.flush()
    put({"QMP": {"version": {}, "capabilities": []}})
    for line in stream:
        asked = json.loads(line)
        put({"id": asked["id"], "return": {
            "query-cpus-fast": [{"thread-id": named[0], "cpu-index": 0}],
            "query-name": {"name": "boxed"}}.get(asked["execute"], {})})
"""


def test_a_monitor_speaks_for_its_own_process_only():
    """QEMU in a PID namespace names threads by ids that are other threads on the host."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="vcpuscope-qmp-", dir="/tmp"))
    innocent = FakeVm("innocent")
    monitors = []

    def record(*words):
        return run("record", *words, "--no-guest", "-o", folder / "run.vcs", "--for", "1s")

    try:
        for path, tid in (("own", 0), ("innocents", innocent.pid)):
            monitors.append(subprocess.Popen(["unshare", "--pid", "--kill-child", sys.executable, "-c",
                                              MONITOR, folder / path, str(tid)]))
            until("the monitor answers", (folder / path).exists)
        refused = record("--qmp", folder / "innocents")
        assert refused.returncode and "is no thread of process" in refused.stderr, refused
        refused = record("--qmp", folder / "own", "--pid", innocent.pid)
        assert refused.returncode and f"not by --pid {innocent.pid}" in refused.stderr, refused
        boxed = record("--qmp", folder / "own")
        assert not boxed.returncode, boxed
        report = report_json(folder / "run.vcs")  # its vCPU wakes 100 times a second
        assert report["vcpus"][0]["vm"] == "boxed", report["vcpus"]
        assert report["loss"]["host"]["delivered"] >= 50, report["loss"]
        away = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", PROGRAM, "record", "--pid", "1",
                               "--no-guest", "-o", folder / "away.vcs", "--for", "0.5s"],
                              capture_output=True, text=True, timeout=60)
        assert away.returncode and "PID namespace of its own" in away.stderr, away
    finally:
        for monitor in monitors:
            monitor.kill()
            monitor.wait()
        innocent.end()
        shutil.rmtree(folder)


def test_a_channel_that_fails_leaves_the_hosts_half():
    """VMs share a vsock port; one that is not to be had, or a key that is not there, is tried again."""
    vms = [FakeVm(f"v{i}") for i in range(3)]
    try:
        taken = socket.socket(socket.AF_VSOCK)
        taken.bind((socket.VMADDR_CID_ANY, 17431))
        taken.listen(1)
        why = "another process listens there"
    except OSError as e:  # no vsock here: then it cannot be had at all
        taken, why = None, os.strerror(e.errno)
    d = Daemon()
    key = d.folder / "key"
    d.configure(f"[vm a]\npid = {vms[0].pid}\nchannel = vsock:3:17431\n"
                f"[vm b]\npid = {vms[1].pid}\nchannel = vsock:4:17431\n"
                f"[vm c]\npid = {vms[2].pid}\nchannel = listen:tls:127.0.0.1:17432\npsk = {key}\n")

    def all_are(good):
        seen = d.ask("list")["vms"]
        return all(map(good, seen)) and seen

    try:
        d.start()
        vms_seen = until("the hosts' halves come without channels",
                         lambda: all_are(lambda v: v["state"] == "running" and v["host_emitted"] > 10 and
                                         "channel_error" in v))
        assert [v["channel"] for v in vms_seen] == ["down"] * 3
        errors = [v["channel_error"] for v in vms_seen]
        assert errors[:2] == [why] * 2 and str(key) in errors[2], errors
        assert f"channel: {why}; tried again" in d.ctl("list").stdout
        if taken:
            taken.close()
        key.write_text("c:00112233445566778899aabbccddeeff\n")
        key.chmod(0o600)
        vms_seen = until("all channels can be used",
                         lambda: all_are(lambda v: v.get("channel_error") == (None if taken or v["vm"] == "c" else why)))
        assert [v["runs"] for v in vms_seen] == [1] * 3
        refused = d.ctl("attach", "d", f"pid={os.getpid()}", "channel=vsock:4:17431")
        assert refused.returncode and "VM b waits for the same guests" in refused.stderr, refused
    finally:
        d.clean()
        if taken:
            taken.close()
        for vm in vms:
            vm.end()


def test_a_file_of_another_kind_is_not_removed():
    """A mistyped path must not cost a file."""
    d = Daemon()
    try:
        d.folder.mkdir(exist_ok=True)
        note = d.folder / "note"
        for key in ("control", "agents", "metrics"):
            note.write_text("keep me")
            d.settings = f"{key} = {'listen:unix:' if key == 'metrics' else ''}{note}"
            d.configure("")
            done = subprocess.run([PROGRAM, "daemon", "--config", d.folder / "conf"],
                                  capture_output=True, text=True, timeout=20)
            assert done.returncode == 1 and "is no socket; it is left alone" in done.stderr, done
            assert note.read_text() == "keep me"
    finally:
        d.clean()


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60)


def test_commands_go_through_the_daemon():
    """What it watches comes from it, both halves, as much as a capture of one's own brings."""
    vm = FakeVm("one", 2)
    d = Daemon().start()
    agent = None
    try:
        d.ask("attach", "one", f"pid={vm.pid}", f"channel=listen:unix:{d.folder}/agent")
        agent = subprocess.Popen([SIM_AGENT, d.folder / "agent", "1000"], stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL)
        until("the agent is heard", lambda: d.vm("one")["channel"] == "ok")
        until("there are events", lambda: d.vm("one")["guest_emitted"] > 1000)
        through, direct = d.folder / "through.vcs", d.folder / "direct.vcs"
        # At once, so that both see the same.
        both = [subprocess.Popen([PROGRAM, "record", "--for", "2s", "-o", path, *which],
                                 stderr=subprocess.PIPE, text=True)
                for path, which in ((through, ["--vm", "one", "--control", d.control]),
                                    (direct, ["--pid", str(vm.pid), "--no-guest"]))]
        said = [process.communicate(timeout=60)[1] for process in both]
        assert [process.returncode for process in both] == [0, 0], said
        assert "the daemon watches VM one" in said[0] and "the daemon" not in said[1], said
        reports = [report_json(path) for path in (through, direct)]
        for report in reports:
            assert report["complete"] and len(report["vcpus"]) == 2, report
            for name, loss in report["loss"].items():
                assert loss["emitted"] == loss["delivered"] + loss["dropped_kernel"] + \
                    loss["dropped_user"], (name, loss)
                assert not loss["lost_frames"] and not loss["nonsense_frames"], (name, loss)
        assert len(reports[0]["loss"]) == 2, reports[0]["loss"]
        assert min(loss["delivered"] for loss in reports[0]["loss"].values()) > 100
        # By pid it is the same VM; what the daemon cannot do for it is said.
        host = run("record", "--pid", vm.pid, "--no-guest", "--control", d.control, "--for", "1s",
                   "-o", through)
        assert host.returncode == 0 and "the daemon watches VM one" in host.stderr, host
        # The host's stream knows of round trips to the agent; of the guest's events there are none.
        assert all(name == "host" or not loss["delivered"]
                   for name, loss in report_json(through)["loss"].items())
        no = run("record", "--vm", "one", "--control", d.control, "--sample-hz", 99, "-o", through)
        assert no.returncode == 2 and "takes no samples" in no.stderr, no
        no = run("record", "--vm", "nosuch", "--control", d.control, "--no-guest", "-o", through)
        assert no.returncode == 1 and "watches no such VM" in no.stderr, no
        top = run("top", "--vm", "one", "--control", d.control, "--batch", "--count", 1)
        assert top.returncode == 0 and "1 VM" in top.stdout, top
        os.kill(agent.pid, signal.SIGSTOP)  # it is silent then, not "ok"
        until("its silence is said", lambda: "agent silent for " in d.ctl("list").stdout)
        assert d.vm("one")["agent_silent_ms"] >= 1000
        os.kill(agent.pid, signal.SIGCONT)
        until("it is heard again", lambda: "silent" not in d.ctl("list").stdout)
        # Its stalls are told, and the end.
        watch = subprocess.Popen([PROGRAM, "watch", "--vm", "one", "--control", d.control],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert "the daemon watches VM one" in watch.stderr.readline()
            time.sleep(1)
            os.kill(vm.pid, signal.SIGSTOP)
            time.sleep(1)
            os.kill(vm.pid, signal.SIGCONT)
            time.sleep(1)
            d.ask("detach", "one")
            out, err = watch.communicate(timeout=60)
        finally:
            watch.kill()
        assert watch.returncode == 0 and "vm_paused" in out, (out, err)
        assert "detached" in err, err
        assert d.process.poll() is None
    finally:
        if agent:
            agent.kill()  # its channel is gone: it would wait for another
            agent.communicate()
        d.clean()
        vm.end()


def test_files_follow_each_other_within_the_budget():
    vm = FakeVm("one", 4)
    d = Daemon(settings="file_size = 2M\ndisk_budget = 4M\nfile_time = 2s\ndisk_reserve = 1M")
    d.configure(f"[vm one]\npid = {vm.pid}\nrecord = yes\nchannel = listen:unix:{d.folder}/one\n"
                f"flight_time = 1s\nflight_size = 1M\n")
    agent = None
    try:
        d.start()
        agent = subprocess.Popen([SIM_AGENT, d.folder / "one", "5000"], stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL)
        until("a fifth file", lambda: d.vm("one")["files"] >= 5)
        assert d.vm("one")["runs"] == 1  # nothing was attached anew
        reports = [report_json(p) for p in sorted((d.recordings / "one").glob("*.vcs"))[1:4]]
        for before, after in zip(reports, reports[1:]):
            assert after["begin_ns"] < before["end_ns"], "there is a gap between two files"
        for report in reports:
            assert report["complete"]
            assert len(report["loss"]) == 2, report["loss"]
            for name, loss in report["loss"].items():
                assert loss["delivered"] > 100, (name, loss)
                assert not loss["lost_frames"] and not loss["lost_channel"], (name, loss)
                assert not loss["nonsense_frames"], (name, loss)
        # Old recordings as large as the budget: they go, oldest first; other files are not ours.
        old = d.recordings / "one" / "one-20200101T000000Z.vcs"
        # One that is gone since yesterday holds less than its share: it loses nothing to the other.
        gone = d.recordings / "two" / "two-20200101T000000Z.vcs"
        gone.parent.mkdir()
        gone.write_bytes(bytes(1 << 20))
        os.utime(gone, (time.time() - 86400,) * 2)
        other = d.recordings / "one" / "notes.txt"
        other.write_text("x")
        old.write_bytes(bytes(4 << 20))
        os.utime(old, (1, 1))
        until("the oldest goes", lambda: not old.exists())
        assert other.exists() and gone.exists()
        closed = sorted(p for p in (d.recordings / "one").glob("*.vcs"))[:2]
        for path in closed:
            assert report_json(path)["loss"]["host"]["delivered"], path
    finally:
        if agent:
            agent.communicate()
        d.clean()
        vm.end()


def test_a_full_disk_is_left_alone():
    """On a small disk of its own, filled by somebody else."""
    vm = FakeVm("one")
    d = Daemon(f"[vm one]\npid = {vm.pid}\nrecord = yes\nflight_size = 1M\n",
               "file_size = 2M\ndisk_budget = 100M\ndisk_reserve = 8M")
    d.recordings.mkdir()
    mounted = not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32M", "none",
                                  d.recordings]).returncode
    try:
        if not mounted:
            print("  not tested: this machine does not let us mount a small disk")
            return
        d.start()
        until("it records", lambda: d.vm("one").get("file_bytes", 0) > 1000)
        ballast = d.recordings / "ballast"
        ballast.write_bytes(bytes(26 << 20))
        until("it stops", lambda: d.vm("one").get("recording_error"))
        path = d.vm("one")["file"]
        size = os.stat(path).st_size
        time.sleep(2)
        assert os.stat(path).st_size == size
        assert "nothing is recorded until" in d.log.read_text()
        ballast.unlink()
        until("it goes on", lambda: not d.vm("one").get("recording_error"))
        until("into a new file", lambda: d.vm("one")["file"] != path and
              d.vm("one")["file_bytes"] > 1000)
        assert report_json(path)["loss"]["host"]["delivered"]
    finally:
        d.stop()
        if mounted:
            subprocess.run(["umount", d.recordings])
        d.clean()
        vm.end()


def test_reload_changes_what_changed():
    a, b = FakeVm("a"), FakeVm("b")
    config = f"[vm a]\npid = {a.pid}\n"
    d = Daemon(config + f"[vm b]\npid = {b.pid}\n").start()
    try:
        until("both run", lambda: all(v["state"] == "running" for v in d.ask("list")["vms"]))
        d.configure(config + "[vm b]\npid = x\n")
        d.process.send_signal(signal.SIGHUP)
        until("it says no", lambda: "not reloaded: " in d.log.read_text())
        assert d.vm("b")["state"] == "running"
        d.configure(config)
        d.process.send_signal(signal.SIGHUP)
        until("b goes", lambda: d.vm("b") is None)
        assert d.vm("a")["runs"] == 1  # it was left alone
    finally:
        d.clean()
        a.end()
        b.end()


def test_kill_9_leaves_nothing_and_a_restart_goes_on():
    vm = FakeVm("one")
    d = Daemon(f"[vm one]\npid = {vm.pid}\nrecord = yes\nchannel = PORT\n")
    port = d.folder / "port"
    d.configure(f"[vm one]\npid = {vm.pid}\nrecord = yes\nchannel = {port}\n")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(port))
    listener.listen(4)
    try:
        d.start()
        until("it records", lambda: d.vm("one").get("file_bytes", 0) > 1000)
        decoder = until("a decoder", lambda: d.vm("one")["link"]["decoder_pid"])
        assert programs_of(d.process.pid) > 0
        assert not os.path.exists("/sys/fs/bpf/vcpuscope")  # nothing is pinned
        time.sleep(1.2)  # a flush
        path = d.vm("one")["file"]
        d.process.kill()
        d.process.wait()
        until("its decoder is gone", lambda: not os.path.exists(f"/proc/{decoder}"))
        assert report_json(path)["loss"]["host"]["delivered"], path
        d.start()  # over the stale socket
        until("it records again", lambda: d.vm("one").get("file_bytes", 0) > 1000)
        assert d.vm("one")["file"] != path
    finally:
        d.clean()
        listener.close()
        vm.end()


def test_detail_is_shed_first():
    vm = FakeVm("one", 2)
    d = Daemon(f"[vm one]\npid = {vm.pid}\ndetail_rate = 1\n").start()
    try:
        until("it sheds", lambda: d.vm("one").get("sheds"))
        assert d.vm("one")["level"] == "summary"
        assert "detail_rate" in d.log.read_text()
        d.ask("level", "one", "detail")  # somebody insists, until the next time
        assert d.vm("one")["level"] == "detail"
    finally:
        d.clean()
        vm.end()


def test_systemd_hears():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        hears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        hears.bind(folder + "/notify")
        hears.settimeout(20)
        d = Daemon(environment={"NOTIFY_SOCKET": folder + "/notify",
                                "WATCHDOG_USEC": "400000"}).start()
        try:
            assert hears.recv(100) == b"READY=1"
            assert hears.recv(100) == b"WATCHDOG=1"
            d.process.terminate()
            while hears.recv(100) != b"STOPPING=1":
                pass
        finally:
            d.clean()
            hears.close()


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    skip_unless_possible()
    for name, test in sorted(globals().items()):
        if name.startswith("test_") and only in name:
            begin = time.monotonic()
            test()
            print(f"{name}: passed, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
