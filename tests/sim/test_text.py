# SPDX-License-Identifier: GPL-2.0-only
"""No text that people read is wider than the terminal (or 100 columns), whatever tasks and VMs are
called; colours come on terminals, or when asked for."""
import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata

WIDE, NARROW = 100, 80
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data")
EVENT_VIEWS = (["events", "-e", "sched:sched_switch"], ["pairs", "-e", "kvm:kvm_entry", "-e", "kvm:kvm_exit"],
               ["top", "-e", "sched:sched_switch", "--by", "prev_pid"],
               ["dist", "-e", "sched:sched_switch", "--by", "prev_pid"],
               ["rate", "-e", "sched:sched_switch", "--by", "prev_pid"])
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def text_of(args, status=(0,), env=None):
    done = subprocess.run(args, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env)
    if done.returncode not in status:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def terminal_text_of(args, columns, status=(0,)):
    """The same on a terminal of this width."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL,
                          env=env) as done:
        os.close(terminal)
        text = b""
        try:
            while part := os.read(screen, 65536):
                text += part
        except OSError:  # its end has no other sign
            pass
        os.close(screen)
    if done.returncode not in status:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}")
    return text.decode().replace("\r\n", "\n")


def width_check(args, text, columns=WIDE):
    bad = 0
    for line in COLOUR.sub("", text).split("\n"):
        if len(line) > columns or any(unicodedata.category(c) in ("Cc", "Cf") for c in line):
            print(f"{' '.join(args)}: {len(line)} columns: {line!r}")
            bad += 1
    return bad


def tables_of(vcpuscope, recording):
    done = subprocess.run([vcpuscope, "report", recording, "xxxxxxxxxx"], capture_output=True,
                          text=True)
    names = re.search(r"there are ([^;\n]*)", done.stderr).group(1)
    return [name for name in re.split(r",\s*|\s+and\s+", names) if name]


def colours_check(vcpuscope, recording):
    plain = text_of([vcpuscope, "report", recording], (0, 5))
    always = text_of([vcpuscope, "report", recording, "--color", "always"], (0, 5),
                     env={**os.environ, "NO_COLOR": "1"})
    never = text_of([vcpuscope, "report", recording, "--color", "never"], (0, 5))
    bad = "\x1b" in plain or "\x1b" in never or not COLOUR.search(always)
    if bad or COLOUR.sub("", always) != plain or never != plain:
        print("colours are not where they should be")
        return 1
    return 0


def help_check(program):
    """The list of the commands: each on one line of at most 80 columns, however wide the output is."""
    text = text_of([program, "--help"])
    bad = width_check(["--help"], text, NARROW)
    dump = [line.split("\t") for line in text_of([program, "--dump-options"]).splitlines()]
    commands = {r[1]: r[2] for r in dump if r[0] == "command"}
    groups = [r[1] for r in dump if r[0] == "group"]
    for line in [f"{group}:" for group in groups] + [f"  {name:<10} {what}" for name, what in commands.items()]:
        if text.splitlines().count(line) != 1:
            print(f"--help: not once: {line}")
            bad += 1
    if not 3 <= len(groups) <= 6:
        print(f"--help: {len(groups)} groups")
        bad += 1
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    parser.add_argument("--hostile", required=True, help="makes a recording full of hostile names")
    parser.add_argument("recordings", nargs="*")
    a = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        hostile = os.path.join(folder, "hostile.vcs")
        subprocess.run([a.hostile, hostile, "4"], check=True, stdout=subprocess.DEVNULL)
        recordings = [hostile, os.path.join(folder, "many.vcs"), os.path.join(DATA, "quickstart.vcs")]
        recordings += a.recordings
        text_of([a.vcpuscope, "simulate", "lock_holder_preempted.spin", "--vms", "8", "--vcpus", "16", "-o",
                 recordings[1]])
        for scenario in ("vmm_lock", "guest_irq_storm", "decoy.steady", "cgroup_throttled"):
            recordings.append(os.path.join(folder, f"{scenario}.vcs"))
            text_of([a.vcpuscope, "simulate", scenario, "--loss", "0.01", "-o", recordings[-1]])
        for recording in recordings:
            commands = [["report", recording], ["report", recording, "--all"], ["clock", recording],
                        ["report", recording, "--color", "always"], ["top", recording, "-b"]]
            commands += [["report", recording, table] for table in tables_of(a.vcpuscope, recording)]
            for command in commands:
                bad += width_check(command, text_of([a.vcpuscope, *command], (0, 5)))
                if command[0] in ("report", "top"):
                    bad += width_check(command, terminal_text_of([a.vcpuscope, *command], NARROW, (0, 5)),
                                       NARROW)
            for command in ([["events", recording]] + [["report", recording, *more] for more in EVENT_VIEWS]):
                bad += width_check(command, terminal_text_of([a.vcpuscope, *command], NARROW, (0, 2)), NARROW)
        bad += colours_check(a.vcpuscope, os.path.join(folder, "vmm_lock.vcs"))
    bad += help_check(a.vcpuscope)
    names = re.findall(r"^  ([a-z]+) ", text_of([a.vcpuscope, "--help"]), re.M)
    for command in [["--help"], ["simulate", "--list"]] + [[name, "--help"] for name in names]:
        bad += width_check(command, text_of([a.vcpuscope, *command]))
        bad += width_check(command, terminal_text_of([a.vcpuscope, *command], NARROW), NARROW)
    bad += width_check(["doctor"], text_of([a.vcpuscope, "doctor"], (0, 3)))
    bad += width_check(["doctor"], terminal_text_of([a.vcpuscope, "doctor"], NARROW, (0, 3)), NARROW)
    print(f"{len(recordings)} recordings, {bad} lines wrong")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
