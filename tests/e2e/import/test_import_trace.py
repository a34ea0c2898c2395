#!/usr/bin/env python3
"""Imports a pair of trace.dat that trace-cmd recorded on this machine, as files and as text. Both give the
same events, as many as trace-cmd reports. The times of a vCPU are equal to those that this test computes from
trace-cmd's text. A file that is cut in the middle is reported as damaged and does no harm. With the options
of a guest and its host added (generated, see dat_file.py), the guest's times are those that trace-cmd prints,
and its vCPUs are the listed threads.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/..")
sys.path.insert(0, HERE)
import dat_file
import state_times

BUILD = os.environ.get("VCPUSCOPE_BUILD", os.path.join(HERE, "../../../build"))
VCPUSCOPE = os.path.join(BUILD, "host-collector/vcpuscope")
INSTANCES = "/sys/kernel/tracing/instances"
RECORDINGS = 8


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, expect=(0, 5)):
    """5: a report was made, and cannot tell whether there was a stall."""
    r = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
    assert r.returncode in (expect if isinstance(expect, tuple) else (expect,)), f"{command}: {r.returncode}\n{r.stdout}{r.stderr}"
    return r.stdout + r.stderr


def record(folder):
    """The vCPU thread's id. trace-cmd leaves a buffer empty now and then, and it gives up if a BPF program
    is loaded while it copies the kernel's symbols: then it records again."""
    for _ in range(RECORDINGS):
        tid = record_once(folder)
        if tid is None:
            print("  the kernel's symbols changed while trace-cmd copied them; again")
            continue
        if all(any(lines_of(f"{folder}/{side}.txt")) for side in ("host", "guest")):
            return tid
        print("  trace-cmd recorded nothing of one side; again")
    skip(f"trace-cmd recorded nothing of one side, or gave up, {RECORDINGS} times")


def record_once(folder):
    """The vCPU thread's id, or None if trace-cmd gave up because the kernel's symbols changed."""
    prefix = f"vsimport{os.getpid()}"
    instances = [f"{INSTANCES}/{prefix}-{side}" for side in ("host", "guest")]
    try:
        for i in instances:
            os.mkdir(i)
        r = subprocess.run(["unshare", "-m", f"{HERE}/record.sh", folder, prefix, sys.executable,
                            f"{HERE}/load.py", f"{folder}/vcpu"],
                           capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as e:
        skip(f"no buffer of our own to trace into: {e}")
    finally:
        for i in instances:  # trace-cmd removes its own, mostly
            if os.path.isdir(i):
                os.rmdir(i)
    for side in ("host", "guest"):
        path = f"{folder}/{side}.dat"
        if not os.path.exists(path) or os.path.getsize(path) < 20000:
            said = (r.stderr or r.stdout).strip()
            if "error in size of file '/proc/kallsyms'" in said:
                return None
            skip(f"trace-cmd cannot record here: {said[:300]}")
        with open(f"{folder}/{side}.txt", "w") as out:
            subprocess.run(["trace-cmd", "report", "-t", path], stdout=out,
                           stderr=subprocess.DEVNULL, check=True, timeout=120)
    with open(f"{folder}/vcpu") as f:
        return int(f.read())


LINE = re.compile(r"\[(\d{3})\]\s+(\d+)\.(\d{9}): (\w+):\s+(.*)$")
SWITCH = re.compile(r":(\d+) \[-?\d+\] (\S+) ==> .*:(\d+) \[-?\d+\]$")
WAKEUP = re.compile(r":(\d+) \[-?\d+\]")


def lines_of(path):
    """(time, event, rest) of every event that trace-cmd prints."""
    with open(path, errors="replace") as f:
        for line in f:
            m = LINE.search(line)
            if m:
                yield int(m[2]) * 10**9 + int(m[3]), m[4], m[5]


def account(path, tid):
    """ns that the thread ran, waited for a CPU, slept and was stopped, from its first switch on. Where
    it leaves a CPU onto which no switch led (trace-cmd misses one now and then), the time is "unseen"."""
    total = {"ran": 0, "ready": 0, "asleep": 0, "stopped": 0, "unseen": 0}
    state = since = None

    def to(new, now):
        nonlocal state, since
        if state:
            total[state] += now - since
        state, since = new, now

    for now, event, rest in sorted(lines_of(path), key=lambda x: x[0]):
        if event == "sched_switch":
            m = SWITCH.search(rest)
            if int(m[3]) == tid:
                to("ran", now)
            elif int(m[1]) == tid:
                letter = m[2][0]
                if state and state != "ran":
                    state = "unseen"
                if letter in "XZ":
                    to(None, now)
                else:
                    to("ready" if letter == "R" else "stopped" if letter == "T" else "asleep", now)
        elif event == "sched_wakeup" and state in ("asleep", "stopped"):
            if int(WAKEUP.search(rest)[1]) == tid:
                to("ready", now)
    return total


def taken(text, side):
    return int(re.search(rf"^{side}: (\d+) events", text, re.M)[1])


def row_of(recording):
    out = recording + ".json"
    run(VCPUSCOPE, "report", recording, "vcpu", "--format", "json", "--output", out)
    with open(out) as f:
        return json.load(f)["rows"]


def near(what, ours, theirs):
    print(f"  {what}: {ours / 1e6:.6f} ms, by trace-cmd's text {theirs / 1e6:.6f} ms")
    assert abs(ours - theirs) <= 20000 + theirs // 10**4, what


def check_pair(folder, tid):
    pair = {}
    for form in ("dat", "txt"):
        out = f"{folder}/{form}.vcs"
        said = run(VCPUSCOPE, "import", "--host", f"{folder}/host.{form}", "--guest",
                   f"{folder}/guest.{form}", "--guest-offset-ns", "0", "--guest-error-ns", "1000",
                   "--vcpu", f"{tid}=0", "--vm", "pair", "-o", out)
        for side in ("host", "guest"):
            printed = sum(1 for _ in lines_of(f"{folder}/{side}.txt"))
            assert taken(said, side) == printed, f"{side}.{form}: {said} of {printed} printed"
            print(f"  {side}.{form}: {printed} events, all taken")
        assert "not understood" not in said, said
        pair[form] = out
    rows = {form: row_of(path) for form, path in pair.items()}
    assert rows["dat"] == rows["txt"], rows
    theirs = account(f"{folder}/host.txt", tid)
    row = rows["dat"][0]
    near("ran", row["ran_ns"], theirs["ran"])
    near("waited for a CPU", row["run_delay_ns"], theirs["ready"])
    near("asleep", row["halted_ns"] + row["blocked_ns"], theirs["asleep"])
    near("stopped", row["stopped_ns"], theirs["stopped"])
    assert theirs["stopped"] > 10**8, "the load was never stopped: this test shows nothing"
    return pair["dat"]


def check_untyped(folder):
    """An event without a type of ours has the same fields from the file, from its text, and in trace-cmd's print."""
    seen = {}
    for form, system in ("dat", "sched"), ("txt", "unknown"):
        said = run(VCPUSCOPE, "report", f"{folder}/{form}.vcs", "events", "-e",
                   f"host:{system}:sched_process_wait", "--top", "0", "--format", "json", expect=0)
        seen[form] = [json.loads(line)["fields"] for line in said.splitlines() if line.startswith("{")]
    printed = [rest for _, event, rest in lines_of(f"{folder}/host.txt") if event == "sched_process_wait"]
    assert printed, "nobody waited for a process: this test shows nothing"
    assert [f"comm={f['comm']} pid={f['pid']} prio={f['prio']}" for f in seen["dat"]] == printed, (seen, printed)
    assert seen["dat"] == seen["txt"], seen
    print(f"  sched_process_wait: {len(printed)} events with the fields that trace-cmd prints")


def check_report(recording):
    run(VCPUSCOPE, "report", recording, "--format", "json", "-o", recording + ".json")
    with open(recording + ".json") as f:
        report = state_times.check(json.load(f))
    assert report["imported"] and not report["simulated"]
    assert report["clock"][0]["method"] == "stated", report["clock"]
    assert 1000 <= report["clock"][0]["error_ns"] <= 1100, report["clock"]
    text = run(VCPUSCOPE, "report", recording)
    assert text.startswith("IMPORTED"), text
    verdicts = {i["verdict"] for i in report["incidents"]}
    print(f"  verdicts: {sorted(verdicts)}")
    assert "vm_paused" in verdicts, text


def check_one_clock(folder, tid):
    """Without an offset both clocks are taken as one, aloud, unless that cannot be."""
    out = f"{folder}/one.vcs"
    said = run(VCPUSCOPE, "import", "--host", f"{folder}/host.dat", "--guest", f"{folder}/guest.dat",
               "--vcpu", f"{tid}=0", "-o", out)
    assert "stamps are the host's, +-1000000 ns" in said, said
    run(VCPUSCOPE, "report", out, "--format", "json", "-o", out + ".json")
    with open(out + ".json") as f:
        assert json.load(f)["clock"][0]["error_ns"] >= 1000000
    with open(f"{folder}/early.txt", "w") as f:
        f.write("cat-5 [000] 0.000001: sched_wakeup: cat:5 [120] CPU:000\n")
    said = run(VCPUSCOPE, "import", "--host", f"{folder}/host.dat", "--guest", f"{folder}/early.txt",
               "--vcpu", f"{tid}=0", "-o", out, expect=2)
    assert "--guest-offset-ns" in said and "0.000001" in said, said


SHIFT_NS = 5000000000
HOST_ID, GUEST_ID = 0x1234567800000011, 0x1234567800000022


def paired(folder, tid):
    """host.dat lists this guest and another one; guest.dat's clock is SHIFT_NS behind the host's."""
    cpus = os.cpu_count()
    instance = dat_file.time_shift(HOST_ID, dat_file.INTERPOLATE, [[(0, SHIFT_NS), (10**15, SHIFT_NS)]] * cpus)
    listed = [dat_file.guest("other", 0x99, [tid + 1]), dat_file.guest("web1", GUEST_ID, [tid] + [-1] * (cpus - 1))]
    dat_file.rewrite(f"{folder}/host.dat", f"{folder}/p-host.dat", [dat_file.trace_id(HOST_ID)] + listed,
                     edit=dat_file.unnamed)
    dat_file.rewrite(f"{folder}/guest.dat", f"{folder}/p-guest.dat",
                     [dat_file.trace_id(GUEST_ID), instance], edit=dat_file.unnamed)


def events_of(recording):
    return run(VCPUSCOPE, "report", recording, "events", "-e", "guest:sched:sched_switch", "--top", "0",
               "--format", "csv", expect=0)


def check_sync(folder, tid):
    """A file with a sync is what the same file without it is with the same offset."""
    paired(folder, tid)
    said = run(VCPUSCOPE, "import", "--host", f"{folder}/p-host.dat", "--guest", f"{folder}/p-guest.dat",
               "-o", f"{folder}/pair.vcs")
    assert "(round trips): its times are the host's, +-200000 ns\n" in said, said
    assert re.search(rf"^VM web1: vCPU 0 is thread {tid} \(CPU 0/KVM\)$", said, re.M), said
    assert re.search(rf"^VM other: vCPU 0 is thread {tid + 1} ", said, re.M), said
    run(VCPUSCOPE, "import", "--host", f"{folder}/host.dat", "--guest", f"{folder}/guest.dat", "--vcpu",
        f"{tid}=0", "--vm", "web1", "--guest-offset-ns", str(SHIFT_NS), "--guest-error-ns", "200000",
        "-o", f"{folder}/stated.vcs")
    theirs = events_of(f"{folder}/pair.vcs")
    assert theirs.count("\n") > 10 and theirs == events_of(f"{folder}/stated.vcs")
    run(VCPUSCOPE, "report", f"{folder}/pair.vcs", "--format", "json", "-o", f"{folder}/pair.json")
    with open(f"{folder}/pair.json") as f:
        clock = json.load(f)["clock"][0]
    assert clock["method"] == "stated" and 200000 <= clock["error_ns"] <= 201000, clock
    with open(f"{folder}/p-guest.txt", "w") as out:
        subprocess.run(["trace-cmd", "report", "-t", f"{folder}/p-guest.dat"], stdout=out,
                       stderr=subprocess.DEVNULL, check=True, timeout=120)
    printed = [now for now, _, _ in lines_of(f"{folder}/p-guest.txt")]
    plain = [now for now, _, _ in lines_of(f"{folder}/guest.txt")]
    assert [now + SHIFT_NS for now in plain] == printed, "trace-cmd itself shows other times"
    print(f"  sync: {len(printed)} times as trace-cmd prints them")


def check_mismatch(folder, tid):
    """What does not belong together, or would be wrong, is refused in one line."""
    cpus = os.cpu_count()
    samples = [[(0, SHIFT_NS)]] * cpus
    ids = [dat_file.trace_id(GUEST_ID)]
    host = f"{folder}/p-host.dat"

    def refused(words, guest_options=(), edit=dat_file.unnamed, more=()):
        dat_file.rewrite(f"{folder}/guest.dat", f"{folder}/wrong.dat", guest_options, edit=edit)
        said = run(VCPUSCOPE, "import", "--host", host, "--guest", f"{folder}/wrong.dat", *more,
                   "-o", f"{folder}/wrong.vcs", expect=2)
        assert words in said and len(said.splitlines()) == 1, said
        assert not os.path.exists(f"{folder}/wrong.vcs")

    refused("another host trace", ids + [dat_file.time_shift(0x77, 1, samples)])
    refused("none of the 2 guests", [dat_file.trace_id(0x78)])
    refused("scaled", ids + [dat_file.time_shift(HOST_ID, 0, samples, scaling=1 << 47, fraction=48)])
    refused("fewer CPUs", ids + [dat_file.time_shift(HOST_ID, 1, samples[:-1] or [[(0, 0)]]),
                                 (dat_file.CPUCOUNT, (cpus + 1).to_bytes(4, "little"))])
    refused("only the main one", ids + [dat_file.time_shift(HOST_ID, 1, samples)], edit=lambda *o: o)
    refused("by other factors", ids + [dat_file.time_shift(HOST_ID, 1, samples),
                                       (dat_file.TSC2NSEC, bytes(16))])
    refused("--guest-offset-ns", ids + [dat_file.time_shift(HOST_ID, 1, samples)],
            more=("--guest-offset-ns", "1", "--guest-error-ns", "1"))
    print("  files that do not match are refused")


def check_version_6(folder, tid):
    """The same files in the older format, as trace-cmd converts them, are a pair, too."""
    for side in ("host", "guest"):
        subprocess.run(["trace-cmd", "convert", "--file-version", "6", "-i", f"{folder}/p-{side}.dat", "-o",
                        f"{folder}/6-{side}.dat"], check=True, timeout=120, capture_output=True)
    said = run(VCPUSCOPE, "import", "--host", f"{folder}/6-host.dat", "--guest", f"{folder}/6-guest.dat",
               "-o", f"{folder}/6.vcs")
    assert f"VM web1: vCPU 0 is thread {tid} " in said, said
    assert events_of(f"{folder}/6.vcs") == events_of(f"{folder}/pair.vcs")
    print("  version 6: the same events")


def check_damage(folder):
    with open(f"{folder}/host.dat", "rb") as f:
        whole = f.read()
    for share in (0.02, 0.5, 0.9, 0.999):
        cut = f"{folder}/cut.dat"
        with open(cut, "wb") as f:
            f.write(whole[:int(len(whole) * share)])
        r = subprocess.run([VCPUSCOPE, "import", "--host", cut, "-o", f"{folder}/cut.vcs"],
                           capture_output=True, text=True, timeout=120)
        assert r.returncode in (0, 1), r
        assert "is damaged" in r.stderr, (share, r)
        assert r.returncode or os.path.exists(f"{folder}/cut.vcs")
        print(f"  cut to {share:.1%}: {r.stderr.splitlines()[0].split(': ', 2)[2]}")


def check_errors(folder):
    dat = f"{folder}/host.dat"
    for arguments, words in (
            (["--host", dat, "--guest", dat, "--guest-offset-ns", "5", "-o", "x.vcs"],
             "--guest-error-ns"),
            (["--host", dat, "--vcpu", "x", "-o", "x.vcs"], "TID=INDEX"),
            (["--host", dat], "--output")):
        said = run(VCPUSCOPE, "import", *arguments, expect=2)
        assert words in said, said
    assert "cannot read" in run(VCPUSCOPE, "import", "--host", f"{folder}/none", "-o",
                                f"{folder}/x.vcs", expect=1)


def main():
    if os.geteuid():
        skip("trace-cmd needs root")
    if not shutil.which("trace-cmd"):
        skip("no trace-cmd; apt-get install trace-cmd")
    with tempfile.TemporaryDirectory(prefix="test_import_") as folder:
        tid = record(folder)
        check_report(check_pair(folder, tid))
        check_untyped(folder)
        check_one_clock(folder, tid)
        check_sync(folder, tid)
        check_mismatch(folder, tid)
        check_version_6(folder, tid)
        check_damage(folder)
        check_errors(folder)
    print("ok")


main()
