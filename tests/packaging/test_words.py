#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Spelling and links of what people read: README and the other pages, --help, the manual pages. A link of a page
leads to a file and a heading that exist; a manual page refers to pages and documents that exist."""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PAGES = ["README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "docs/*.md", "docs/hacking/*.md"]
# Manual pages of others.
OTHERS = {"virsh(1)", "perf(1)", "trace-cmd(1)"}
bad = []


def wrong(what):
    bad.append(what)
    print("wrong:", what)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def heading_anchors(text):
    """As GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", h).lower()).replace(" ", "-")
            for h in headings}


def links_check(path):
    text = read(path)
    plain = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    for target in re.findall(r"\]\(([^)\s]+)\)", plain):
        if re.match(r"https?://", target):
            continue
        file, _, anchor = target.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(to):
            wrong(f"{os.path.relpath(path, ROOT)} links to {target}, which does not exist")
        elif anchor and to.endswith(".md") and anchor not in heading_anchors(read(to)):
            wrong(f"{os.path.relpath(path, ROOT)} links to {target}, which has no such heading")


def texts_of_programs(build, folder):
    """--help of all commands and the manual pages, as files."""
    program = os.path.join(build, "host-collector/vcpuscope")

    def help_of(name, *args):
        text = subprocess.run([*args, "--help"], capture_output=True, text=True, check=True).stdout
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return text

    commands = re.findall(r"^  ([a-z]+) ", help_of("vcpuscope.help", program), re.M)
    for command in commands:
        help_of(f"{command}.help", program, command)
    help_of("agent.help", os.path.join(build, "guest-agent/vcpuscope-agent"))
    for page in glob.glob(os.path.join(build, "deploy/pages/*/man/*")):
        shutil.copy(page, os.path.join(folder, os.path.basename(page)))
    return sorted(glob.glob(os.path.join(folder, "*")))


def references_check(paths):
    """docs/NAME.md and name(section) in help and manual pages."""
    pages = {os.path.basename(p) for p in paths}
    for path in paths:
        text = read(path).replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        for document in re.findall(r"\bdocs/[\w/-]+\.md", text):
            if not os.path.exists(os.path.join(ROOT, document)):
                wrong(f"{os.path.basename(path)} refers to {document}")
        for name, section in re.findall(r"\b(vcpuscope[\w.-]*)\((\d)\)", text):
            if f"{name}.{section}" not in pages:
                wrong(f"{os.path.basename(path)} refers to {name}({section})")
        for other in set(re.findall(r"\b[a-z][\w.-]*\(\d\)", text)):
            if not other.startswith("vcpuscope") and other not in OTHERS:
                wrong(f"{os.path.basename(path)} refers to {other}, which is not listed in this test")


def spelling_check(paths):
    if not shutil.which("codespell"):
        print("not checked: spelling, no codespell here")
        return
    done = subprocess.run(["codespell", *paths], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if " ==> " in line:
            wrong(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    build = os.path.abspath(parser.parse_args().build)
    pages = [path for pattern in PAGES for path in sorted(glob.glob(os.path.join(ROOT, pattern)))]
    for path in pages:
        links_check(path)
    with tempfile.TemporaryDirectory(prefix="vcpuscope-words.") as folder:
        texts = texts_of_programs(build, folder)
        references_check(texts)
        spelling_check(pages + texts)
    print(f"{len(pages)} pages, {len(texts)} texts of programs: {len(bad)} wrong")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
