# SPDX-License-Identifier: GPL-2.0-only
"""`report` in scripts: one line for each stall, exit codes, recordings from standard input."""
import argparse
import os
import subprocess
import sys
import tempfile

NO_STALL, USAGE, STALL, CANNOT_TELL = 0, 2, 4, 5


class Check:
    def __init__(self, vcpuscope, folder):
        self.vcpuscope, self.folder, self.bad = vcpuscope, folder, 0

    def run(self, *args, data=None):
        given = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run([self.vcpuscope, *args], cwd=self.folder, capture_output=True, **given)

    def make(self, scenario, *options):
        name = scenario + "".join(options) + ".vcs"
        done = self.run("simulate", scenario, *options, "-o", name)
        if done.returncode:
            sys.exit(done.stderr.decode())
        return name

    def expect(self, ok, what):
        if not ok:
            print(f"not so: {what}")
            self.bad += 1

    def exit_is(self, code, *args):
        done = self.run("report", *args)
        self.expect(done.returncode == code,
                    f"report {' '.join(args)} ends with {code} (it was {done.returncode}: {done.stderr!r})")
        return done


def brief(c, stalled, quiet):
    lines = c.run("report", stalled, "--brief").stdout.decode().splitlines()
    wanted = c.run("report", stalled).stdout.decode()
    c.expect(lines and f"\n{len(lines)} stall" in "\n" + wanted.split("simulator, not by a machine.\n")[1],
             "--brief has one line for each stall")
    c.expect(all("vmm_lock (decided)" in line and "QEMU's big lock" in line for line in lines),
             "a line of --brief has verdict and cause")
    c.expect([line.split(".")[0].strip() for line in lines] == [str(i + 1) for i in range(len(lines))],
             "a line of --brief begins with the number of its stall")
    for number, line in enumerate(lines, 1):
        around = c.run("report", stalled, "--around", str(number), "--brief").stdout.decode().splitlines()
        c.expect(line in around, f"--around {number} keeps stall {number} and its number")
    done = c.run("report", quiet, "--brief")
    c.expect(not done.stdout and b"No stall" in done.stderr, "--brief without a stall prints no line")


def events_named(c):
    """A name that is none of the list: the nearest one, and how to record others."""
    for typed, nearest in (("kvm:kvm_exitt", b"did you mean kvm:kvm_exit?"), ("sched_swich", b"did you mean sched:sched_switch?"),
                           ("irq:sched_switch", b"did you mean sched:sched_switch?"), ("kmem:mm_page_alloc", b"")):
        done = c.run("events", "-e", typed)
        c.expect(done.returncode == USAGE and nearest in done.stderr and done.stderr.count(b"did you mean") == bool(nearest)
                 and b"record -e" in done.stderr, f"events -e {typed} names what there is: {done.stderr!r}")
    c.expect(b"record -e" not in c.run("events", "-e", "kvm:kvm_exit/nosuch/").stderr, "a wrong filter is no wrong name")


def fail_on(c, stalled, quiet, dark):
    c.exit_is(NO_STALL, stalled)
    c.exit_is(STALL, stalled, "--fail-on", "stall")
    c.exit_is(STALL, stalled, "--fail-on", "vm_paused,vmm_lock", "--format", "json")
    c.exit_is(NO_STALL, stalled, "--fail-on", "vm_paused")
    c.exit_is(NO_STALL, quiet, "--fail-on", "stall", "--brief")
    c.exit_is(CANNOT_TELL, dark, "--fail-on", "stall")
    wrong = c.exit_is(USAGE, stalled, "--fail-on", "vmm_lokc").stderr
    c.expect(b"did you mean 'vmm_lock'?" in wrong, "a misspelt verdict is named")
    c.exit_is(USAGE, stalled, "vcpu", "--fail-on", "stall")
    c.exit_is(USAGE, stalled, "vcpu", "--brief")


def standard_input(c, stalled):
    path = os.path.join(c.folder, stalled)
    with open(path, "rb") as f:
        data = f.read()
    for args in ([], ["vcpu"], ["--format", "json"]):
        piped = c.run("report", "-", *args, data=data)
        direct = c.run("report", stalled, *args)
        c.expect(piped.returncode == 0 and piped.stdout == direct.stdout, f"report - {args} from a pipe")
    with open(path, "rb") as f:
        f.seek(100)  # its position does not matter
        done = subprocess.run([c.vcpuscope, "report", "-"], stdin=f, capture_output=True)
    c.expect(done.stdout == c.run("report", stalled).stdout, "report - from a file")
    for args in (["export", "-", "--to", "csv", "-o", "-"], ["export", "-", "--to", "folded", "-o", "-"],
                 ["metrics", "-"], ["clock", "-"], ["summarize", "-"]):
        done = c.run(*args, data=data)
        c.expect(done.returncode == 0 and done.stdout, f"{' '.join(args)}: {done.stderr!r}")
    done = c.run("report", "-", data=b"no recording")
    c.expect(done.returncode == 1 and b"not a recording" in done.stderr, "what is no recording is refused")
    c.expect(c.run("report", "-", data=b"").returncode == 1, "an empty input is refused")
    done = c.run("report", stalled, "vcpu", "--format", "csv", "-o", "-")
    c.expect(done.stdout.startswith(b"table,"), "CSV goes to standard output")


def mistakes(c, stalled):
    """Each is answered by what was probably meant, or by where to look."""
    for args, answer in [
            ("report {run} vcup", "did you mean 'vcpu'?"),
            ("report {run} evnets", "did you mean 'events'?"),
            ("report {run} nosuch", "; of events: events, pairs, top, dist and rate"),
            ("report {run} --format jsn", "did you mean 'json'?"),
            ("reprot {run}", "did you mean 'report'?"),
            ("help reprot", "did you mean 'report'?"),
            ("simulate vmm_lokc -o x.vcs", "did you mean 'vmm_lock'?"),
            ("clock", "see `vcpuscope clock --help`"),
            ("clock eval", "see `vcpuscope clock --help`"),
            ("compare", "see `vcpuscope compare --help`"),
            ("compare --bogus", "see `vcpuscope compare --help`"),
            ("report {run} --fail-on nothing_known", "see `vcpuscope report --help`")]:
        done = c.run(*args.format(run=stalled).split())
        c.expect(done.returncode in (1, USAGE) and answer in done.stderr.decode(),
                 f"{args} says {answer} (it said {done.stderr!r})")
    done, wanted = c.run("help", "report"), c.run("report", "--help")
    c.expect(done.returncode == 0 and done.stdout == wanted.stdout, "help report is report --help")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    with tempfile.TemporaryDirectory() as folder:
        c = Check(os.path.abspath(parser.parse_args().vcpuscope), folder)
        stalled, quiet, dark = c.make("vmm_lock"), c.make("decoy.idle"), c.make("decoy.idle", "--loss", "0.9")
        brief(c, stalled, quiet)
        events_named(c)
        fail_on(c, stalled, quiet, dark)
        standard_input(c, stalled)
        mistakes(c, stalled)
        print(f"{c.bad} wrong")
        sys.exit(bool(c.bad))


if __name__ == "__main__":
    main()
