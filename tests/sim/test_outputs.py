#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""`-o -` is standard output: the bytes are those of a file, and no file called "-" appears. A recording cannot go
there, and the command says so in one line."""
import argparse
import os
import subprocess
import sys
import tempfile

RUN = "run.vcs"
# What -o FILE writes; the name decides the format of flame.
WRITERS = [
    ("report.txt", ("report", RUN, "--color", "never")),
    ("report.json", ("report", RUN, "--format", "json")),
    ("report.html", ("report", RUN, "--format", "html")),
    ("table.csv", ("report", RUN, "vcpu", "--format", "csv")),
    ("base.json", ("summarize", RUN)),
    ("gate.txt", ("compare", RUN, "--against", RUN)),
    ("metrics.prom", ("metrics", RUN)),
    ("wall.folded", ("flame", RUN)),
    ("diff.svg", ("flame", "--diff", RUN, RUN)),
    ("run.pftrace", ("export", RUN, "--to", "perfetto")),
    ("run.csv", ("export", RUN, "--to", "csv")),
    ("run.folded", ("export", RUN, "--to", "folded")),
]
REFUSED = [
    ("simulate", "vmm_lock", "-o", "-"),
    ("import", "--host", "text", "-o", "-"),
    ("record", "--pid", "1", "--no-guest", "-o", "-"),
    ("watch", "--pid", "1", "--metrics", "-"),
]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    vcpuscope = os.path.abspath(p.parse_args().vcpuscope)
    bad = []
    with tempfile.TemporaryDirectory(prefix="vcpuscope-outputs.") as folder:
        def run(*words):
            return subprocess.run([vcpuscope, *words], cwd=folder, capture_output=True, check=False)

        made = run("simulate", "vmm_lock", "-o", RUN)
        if made.returncode:
            bad.append(f"simulate: {made.stderr}")
        for name, words in WRITERS:
            to_file, through = run(*words, "-o", name), run(*words, "-o", "-")
            with open(os.path.join(folder, name), "rb") as f:
                wanted = f.read()
            if not wanted or through.stdout != wanted or through.returncode != to_file.returncode:
                bad.append(f"{' '.join(words)} -o -: {len(through.stdout)} bytes, rc {through.returncode}; the file "
                           f"has {len(wanted)}, rc {to_file.returncode}; {through.stderr}")
        for words in REFUSED:
            done = run(*words)
            lines = done.stderr.decode().splitlines()
            if done.returncode != 2 or len(lines) != 1 or "cannot go to standard output" not in lines[0]:
                bad.append(f"{' '.join(words)}: rc {done.returncode}: {lines}")
        if os.path.exists(os.path.join(folder, "-")):
            bad.append("there is a file called -")
    for line in bad:
        print("FAILED:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
