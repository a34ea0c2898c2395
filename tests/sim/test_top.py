# SPDX-License-Identifier: GPL-2.0-only
"""`top` as a person sees it, in a terminal, of a recording that is played; and as a script does."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

from screen import Screen


def check(holds, what, screen=None):
    if not holds:
        sys.exit(f"{what}\n{screen.text() if screen else ''}")


def by_hand(args):
    s = Screen(args)
    s.wait_for(r"vcpuscope top  \+\d")
    s.wait_for(r"simulated +2 +\d")
    s.wait_for("h help")
    s.send("?")
    s.wait_for("irq max  the longest")
    s.send("?")
    s.wait_for(r"simulated +2")
    s.send("s")
    s.wait_for("by blocked")
    s.send("S")
    s.wait_for("by delay")
    s.send("\r")
    s.wait_for(r"VM simulated: 2 vCPUs")
    s.wait_for(r"vCPU 1 \w+ \(\d+\)")
    s.send("\x1b")
    s.wait_for(r"1 VM, by")
    s.send("/zzz")
    s.wait_for("show names with: zzz")
    s.send("\r")
    s.wait_for("0 VMs with zzz")
    s.send("/\x1b")
    s.wait_for("1 VM, by")
    s.send("p")
    s.wait_for("PAUSED")
    for columns, lines in ((120, 40), (40, 8), (10, 2), (80, 24)):
        s.resize(columns, lines)
        s.wait_for("vcpuscope"[:columns])
        check(not s.too_wide, f"wider than {columns} columns", s)
    s.send("p")
    s.wait_for("end of the recording", 60)
    check("last stall: VM simulated, guest CPU" in s.text() and "vmm_lock" in s.text(),
          "80 columns: the last stall is above the keys", s)
    s.resize(160, 24)
    s.wait_for(r"simulated +2 .* vmm_lock \d+ ms qemu-system-x86 \(\d+\)")
    check(re.search("[\u2581-\u2588]", s.text()) and not s.too_wide, "charts of run delay", s)
    s.send("q")
    check(s.leave() == 0, "q: exit status")


def by_interrupt(args):
    s = Screen(args)
    s.wait_for(r"vcpuscope top")
    s.send("\x03")
    status = s.leave()
    check(status == 0, f"Ctrl-C: status {status}")


def by_script(vcpuscope, recording):
    done = subprocess.run([vcpuscope, "top", recording, "-b", "-n", "1", "--sort", "exits"],
                          capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    lines = done.stdout.splitlines()
    check(len(lines) == 4 and re.match(r"simulated +2 ", lines[2]), done.stdout)
    check(all(len(line) <= 100 and "\x1b" not in line for line in lines), done.stdout)
    done = subprocess.run([vcpuscope, "top", recording, "-b"], capture_output=True, text=True)
    check(done.stdout.count("vcpuscope top") >= 2, done.stdout)
    done = subprocess.run([vcpuscope, "top", recording], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    check(done.returncode == 1 and "--batch" in done.stderr, done.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    vcpuscope = parser.parse_args().vcpuscope
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "run.vcs")
        subprocess.run([vcpuscope, "simulate", "vmm_lock", "-o", recording], check=True)
        by_script(vcpuscope, recording)
        by_hand([vcpuscope, "top", recording, "--interval", "400ms"])
        by_interrupt([vcpuscope, "top", recording])
    print("as it should be")


if __name__ == "__main__":
    main()
