#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Plays the quickstart's scene on a bed and compares the report with the truth.

Leaves run.vcs, report.txt, report.json and truth.json in the output folder. Exit status: 0 all as provoked, 1
a difference or an error, 77 this bed cannot run here (prints the reason).
"""
import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/beds"]
import bed  # noqa: E402
import check_quickstart  # noqa: E402
import scene  # noqa: E402

SKIP = 77
KVM_PROBE_S = 20
# perf is blind in some tasks of some kernels, and says so (docs/backends.md).
HOST_LOSS_SHARE = {"perf": 0.01}
DISTURBED_MAX = 3  # runs, before a busy machine's result counts as it is


class Skip(Exception):
    pass


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bed", choices=("a", "b", "kvm"),
                   help="a: emulated guest, this kernel; b: nested; kvm: this machine's own KVM")
    p.add_argument("--kernel", default="6.1", choices=("6.1", "6.12"))
    p.add_argument("--backend", default="auto", choices=("auto", "bpf", "perf"),
                   help="of the recorder")
    p.add_argument("--build", help="build tree (default: ./build)")
    p.add_argument("--out", default="out", help="folder for the results")
    p.add_argument("--runs", type=int, default=1, help="play it so often, each on a fresh boot")
    p.add_argument("--keep", action="store_true", help="keep the machines' and programs' logs")
    p.add_argument("--started", type=float, default=time.time(), help=argparse.SUPPRESS)
    return p.parse_args()


@contextlib.contextmanager
def own_signals():
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that every machine is closed."""
    def stop(number, _):
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    yield


@contextlib.contextmanager
def nested(builder, folder, say, before="true", guest_arguments=""):
    """Bed B: yields (scene, machine). `before` runs in the host before its guest is there."""
    with bed.boot_b(builder) as host:
        say(f"host with KVM is up after {host.boot_s:.1f} s")
        host.run(before)
        pid = bed.guest_start(host, say, f"guest-start 1 {guest_arguments}")
        say("its guest is up")
        yield scene.Scene(host, scene.NestedGuest(host), pid, "/run/guest/agent", "/root/out", say,
                          emulated=True), host


def boot_direct(builder, accelerator):
    if accelerator == "tcg":
        return bed.boot_a(builder)
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Skip("no access to /dev/kvm here: run it without --on-host")
    try:
        return bed.boot_a(builder, accelerator=accelerator, boot_timeout_s=KVM_PROBE_S)
    except bed.machine.MachineError as error:
        reason = str(error).splitlines()[0][:160]
        raise Skip(f"a probe guest does not boot under this machine's KVM in {KVM_PROBE_S} s "
                   f"({reason}): run it without --on-host") from None


@contextlib.contextmanager
def direct(builder, folder, say, accelerator):
    """A guest on this machine: yields (scene, machine)."""
    if os.geteuid():
        raise Skip("BPF on this machine's kernel needs root: run it as root, or use bed b")
    with boot_direct(builder, accelerator) as guest:
        say(f"guest is up after {guest.boot_s:.1f} s")
        host = scene.ThisMachine([f"{builder.build}/host-collector", f"{builder.build}/tests/e2e/beds"])
        yield scene.Scene(host, guest, guest.pid, guest.agent_socket, f"{folder}/host", say,
                          emulated=accelerator == "tcg"), guest


def play(args, builder, folder, say):
    """One run: (the report as text, what differs, [] if nothing, the truth)."""
    os.makedirs(folder, exist_ok=True)

    def save(name, content):
        with open(f"{folder}/{name}", "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())

    places = (nested(builder, folder, say) if args.bed == "b" else
              direct(builder, folder, say, "kvm" if args.bed == "kvm" else "tcg"))
    with places as (played, machine):
        keep = True
        try:
            played.backend = args.backend
            played.prepare()
            played.record_start()
            say("recording")
            played.play()
            played.record_stop()
            save("run.vcs", played.host.get(f"{played.folder}/run.vcs"))
            save("truth.json", json.dumps(played.truth, indent=1) + "\n")
            say("reading the recording")
            text, report = played.report()
            save("report.txt", text)
            save("report.json", json.dumps(report, indent=1) + "\n")
            wrong = check_quickstart.check(report, played.truth,
                                           HOST_LOSS_SHARE.get(args.backend, 0.0))
            if args.bed == "b":  # elsewhere other machines' tasks may be hidden from the tracer
                wrong += check_quickstart.check_run_delay(played.table("vcpu"), played.table("tasks"),
                                                          played.truth)
                wrong += check_quickstart.check_steal(played.table("steal"), played.table("vcpu"),
                                                      played.truth)
            for incident in check_quickstart.interference(report, played.truth):
                say(f"the incident of {incident['duration_ns'] / 1e6:.0f} ms at {incident['begin_ns']} "
                    "was this machine, which did not run the emulated one meanwhile")
            keep = bool(wrong) or args.keep
        finally:
            if keep:
                for name, content in played.logs().items():
                    save(name, content)
                save("console.log", machine.serial())
    return text, wrong, played.truth


def replayed(times):
    return f" (played again: {times})" if times else ""


def play_until_valid(args, builder, folder, say):
    """Plays until a run is right, or wrong in anything that the machine underneath cannot have caused:
    (what differs, how often it was played again)."""
    faults = []

    def say_fault(text):
        faults.append(text)
        say(text)

    for disturbed in range(DISTURBED_MAX):
        text, wrong, truth = bed.machine.retry_emulator(
            lambda: play(args, builder, folder, say), say_fault)
        gaps = truth["interference"]
        if not all(check_quickstart.is_excused(difference, gaps) for difference in wrong) or not wrong:
            break
        if disturbed + 1 < DISTURBED_MAX:
            longest = max(gap["duration_ns"] for gap in gaps) / 1e6
            for line in wrong:
                say(f"differs: {line}")
            say(f"this machine held the emulated host up where all of this lies ({len(gaps)} times in all, "
                f"longest {longest:.0f} ms): the run says nothing about vcpuscope; playing it again")
    if args.runs == 1:
        print(f"\n{text}")
    return wrong, disturbed + len(faults)



def recording_save(played, out):
    """The scene's recording becomes OUT/run.vcs."""
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/run.vcs", "wb") as f:
        f.write(played.host.get(f"{played.folder}/run.vcs"))


def test_main(description, once, kernels=("6.1",)):
    """A test's main function: calls `once(builder, folder, args, say)`, again where only the emulator
    failed, until it returns what differs: a list of lines. Returns the exit status."""
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kernel", default=kernels[0], choices=kernels)
    p.add_argument("--out", default="out", help="folder for the results")
    args = p.parse_args()
    if os.geteuid():
        print("skipped: BPF on this machine's kernel needs root")
        return SKIP
    started = time.time()

    def say(text):
        print(f"[{time.time() - started:5.1f} s] {text}", flush=True)

    def attempt():
        with tempfile.TemporaryDirectory(prefix="vcpuscope-scene.") as folder:
            return once(builder, folder, args, say)

    builder = bed.Builder(None, args.kernel, say)
    with own_signals():
        wrong = bed.machine.retry_emulator(attempt, say)
    for line in wrong:
        say(f"WRONG: {line}")
    return 1 if wrong else 0


def main():
    args = arguments()

    def say(text):
        print(f"[{time.time() - args.started:5.1f} s] {text}", flush=True)

    try:
        with own_signals():
            builder = bed.Builder(args.build, args.kernel, say)
            failed = replays = 0
            for number in range(1, args.runs + 1):
                folder = args.out if args.runs == 1 else f"{args.out}/run-{number}"
                if args.runs > 1:
                    say(f"run {number} of {args.runs}")
                wrong, again = play_until_valid(args, builder, os.path.abspath(folder), say)
                for line in wrong:
                    print(f"differs: {line}")
                failed += bool(wrong)
                replays += again
                say(f"{'OK: three stalls, three right verdicts' if not wrong else 'NOT as provoked'}"
                    f"{replayed(again)}; results in {folder}")
            if args.runs > 1:
                say(f"{args.runs - failed} of {args.runs} runs right{replayed(replays)}")
            return 1 if failed else 0
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIP
    except (*bed.BedError, scene.SceneError, ValueError, KeyError) as error:
        print(f"run_scene: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
