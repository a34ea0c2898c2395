#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Manual pages format without a warning and name every option, every verdict, table and key of the
configuration; bash, zsh and fish complete what the help lists."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def records(program):
    out = subprocess.run([program, "--dump-options"], check=True, capture_output=True, text=True)
    return [line.split("\t") for line in out.stdout.splitlines()]


def page_text(path):
    """The page as man shows it; its warnings are failures."""
    env = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="1000", MAN_KEEP_FORMATTING="", MANROFFOPT="")
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", path], capture_output=True,
                          text=True, env=env, check=False)
    check(done.returncode == 0 and not done.stderr.strip(), f"{path}: man says: {done.stderr}")
    return done.stdout


# The administrator's commands are in a section of their own.
SECTIONS = {"vcpuscope-daemon": 8}
REPOSITORY = os.path.abspath(f"{os.path.dirname(os.path.abspath(__file__))}/../..")


def check_configuration(text):
    """Every key of the daemon's configuration has an entry, and every entry is a key."""
    keys = set()
    with open(f"{REPOSITORY}/host-collector/daemon/config_keys.c", encoding="utf-8") as f:
        source = f.read()
    keys |= set(re.findall(r'^\s*\{"(\w+)", KEY_', source, re.M))
    with open(f"{REPOSITORY}/host-collector/daemon/trigger.h", encoding="utf-8") as f:
        keys |= set(re.findall(r'^\s*X\([A-Z_]+, "(\w+)", LIMIT_', f.read(), re.M))
    entries = set(re.findall(r"^\s*(\w+) =", text, re.M))
    check(len(keys) > 30 and keys == entries,
          f"vcpuscope.conf.5: {sorted(keys ^ entries)} are not both keys and entries")


def check_names(dump, verdicts, tables):
    """Every name that a report can contain has an entry with a meaning."""
    known = {"verdict": verdicts, "confidence": verdicts, "missing": verdicts, "state": verdicts,
             "table": tables, "column": tables}
    counts = dict.fromkeys(known, 0)
    for kind, name, *_ in dump:
        if kind not in known:
            continue
        counts[kind] += 1
        where = known[kind]
        if kind == "table":
            check(re.search(rf"^{name.upper()}$", where, re.M), f"vcpuscope-tables.7 has no table {name}")
        elif kind == "column":
            check(re.search(rf"\b{re.escape(name)}\b", where), f"vcpuscope-tables.7 has no column {name}")
        else:
            check(re.search(rf"^ +{name}(\s|$)", where, re.M), f"vcpuscope-verdicts.7 has no {kind} {name}")
    with open(f"{REPOSITORY}/docs/verdicts.md", encoding="utf-8") as f:
        document = f.read()
    for name, holds, _, todo in (fields for kind, *fields in dump if kind == "verdict"):
        row = re.search(rf"^\| (?:\[`{name}`\]\(#{name}\)|`{name}`) \| (.*) \| (.*) \|$", document, re.M)
        check(row and holds in ("", row[1]) and row[2] == todo,
              f"docs/verdicts.md has no row `{name}` | {holds} | {todo}")
    check(counts["verdict"] > 20 and counts["table"] > 10 and counts["column"] > 100,
          f"the program dumps {counts}")
    check(verdicts.count("What to do:") == counts["verdict"], "not every verdict says what to do")
    check(tables.count("One row per") == counts["table"], "not every table of the guide is described")


def check_sections(page, text):
    """A real description: more than the summary in NAME."""
    description = re.search(r"^DESCRIPTION\n(.*?)^[A-Z]", text, re.M | re.S)
    check(description and len(description[1].split()) > 15, f"{page} has no description")
    wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"]
    if page != "vcpuscope.1":
        wanted += ["OPTIONS", "EXAMPLES"]
    if "agent" not in page:
        wanted.append("ENVIRONMENT")
    sections = dict(re.findall(r"^([A-Z][A-Z ]+)\n(.*?)(?=^[A-Za-z]|\Z)", text, re.M | re.S))
    for heading in wanted:
        check(sections.get(heading, "").strip(), f"{page} has no section {heading}")
    for path in set(re.findall(r"(?<![\w:/.])/(?:etc|run|var)/[\w./-]*\w", sections.get("OPTIONS", ""))):
        check(path in sections.get("FILES", ""), f"{page}: {path} is a default, and not under FILES")
    check(len(re.findall(r"vcpuscope[\w.-]*\(\d\)", sections.get("SEE ALSO", ""))) > 1,
          f"{page}: SEE ALSO names no page of a neighbour")
    codes = sections.get("EXIT STATUS", "")
    check(re.search(r"^ +0 ", codes, re.M), f"{page}: EXIT STATUS does not say what 0 is")
    check(page in ("vcpuscope.1", "vcpuscope-report.1") or "report" not in codes,
          f"{page}: EXIT STATUS has codes of another command")


def check_pages(name, section, dump, folder):
    texts = {f: page_text(os.path.join(folder, f)) for f in sorted(os.listdir(folder))}
    if name == "vcpuscope":
        check_configuration(texts.pop("vcpuscope.conf.5"))
        check_names(dump, texts.pop("vcpuscope-verdicts.7"), texts.pop("vcpuscope-tables.7"))
    for page, text in texts.items():
        check_sections(page, text)
    here = f"{name}.{section}"
    check(here in texts, f"there is no page {here}")
    at = 0
    for kind, *fields in dump:
        if kind not in ("group", "command"):
            continue
        what = re.escape(fields[0]) + (rf"\s+{re.escape(fields[1])}" if kind == "command" else "")
        found = re.compile(rf"^ +{what}$", re.M | re.I).search(texts[here], at)
        check(found, f"{here} lacks {kind} {fields[0]}, or lists it in another order than --help")
        at = found.end() if found else at
    for kind, *fields in dump:
        if kind == "command":
            here = f"{name}-{fields[0]}.{SECTIONS.get(f'{name}-{fields[0]}', section)}"
            check(here in texts, f"there is no page {here}")
            check(fields[0] in texts[f"{name}.{section}"],
                  f"{name}.{section} does not name {fields[0]}")
        elif kind == "option":
            left = fields[0] if fields[2].startswith("operand") else "--" + fields[0]
            check(left in texts.get(here, ""), f"{here} does not name {left}")
    check(len(texts) == 1 + sum(r[0] == "command" for r in dump), f"{folder} has {list(texts)}")


def complete(script, program, *words):
    """What bash offers for the last word."""
    line = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '"$(complete -p "$1" | sed "s/.*-F \\([^ ]*\\) .*/\\1/")"; '
            'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-uc", line, "bash", script, program, *words],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"completing {words}: {done.stderr}")
    return set(done.stdout.split())


def check_completion(name, dump, script):
    commands = {r[1] for r in dump if r[0] == "command"}
    if commands:
        check(commands <= complete(script, name, ""), f"{name}: not all commands are offered")
        first = sorted(commands)[0]
        check(complete(script, name, first[:-1]) == {c for c in commands
                                                     if c.startswith(first[:-1])},
              f"{name} {first[:-1]} does not complete")
    before = ()
    for kind, *fields in dump:
        if kind == "command":
            before = (fields[0],)
        if kind != "option" or fields[2].startswith("operand"):
            continue
        check("--" + fields[0] in complete(script, name, *before, "--"),
              f"{name} {' '.join(before)}: --{fields[0]} is not offered")
        if fields[2] == "choice":
            words = set(fields[3].split("|"))
            check(complete(script, name, *before, "--" + fields[0], "") == words,
                  f"{name} {' '.join(before)}: --{fields[0]} does not offer {words}")
            check(complete(script, name, *before, "--" + fields[0], "=") == words,
                  f"{name} {' '.join(before)}: --{fields[0]}= does not offer {words}")


def check_files(script):
    with tempfile.TemporaryDirectory(prefix="vcpuscope-pages.") as folder:
        for file in ("my run.vcs", "mine.txt"):
            with open(os.path.join(folder, file), "w", encoding="utf-8"):
                pass
        offered = complete(script, "vcpuscope", "report", folder + "/m")
        check(any(word.startswith(folder) for word in offered), "report offers no recording")
        check(not any("mine" in word for word in offered), "report offers what is no recording")


def check_words(script, build):
    """Operands and values that are names."""
    def offers(wanted, *words):
        offered = complete(script, "vcpuscope", *words)
        check(wanted <= offered, f"{' '.join(words)} offers {sorted(offered)}, not {sorted(wanted)}")

    offers({"vcpu", "tasks", "culprits"}, "report", "run.vcs", "")
    offers({"vcpu"}, "report", "--than", "5ms", "run.vcs", "vcp")
    offers({"vcpu"}, "report", "--than=5ms", "run.vcs", "vcp")
    offers({"stall", "vmm_lock"}, "report", "run.vcs", "--fail-on", "")
    offers({"stall,vmm_lock"}, "report", "run.vcs", "--fail-on", "stall,vmm_")
    offers({"status", "reload"}, "ctl", "")
    offers({"check"}, "config", "")
    offers({"report"}, "help", "rep")
    path = os.environ["PATH"]
    os.environ["PATH"] = os.path.join(build, "host-collector") + ":" + path
    offers({"vmm_lock", "decoy.idle"}, "simulate", "")
    os.environ["PATH"] = path


def check_shells(pages, dump):
    """zsh and fish read their files and know every command."""
    commands = {r[1] for r in dump if r[0] == "command"}
    for shell, file in (("zsh", "zsh/_vcpuscope"), ("fish", "fish/vcpuscope.fish")):
        path = os.path.join(pages, "vcpuscope", file)
        if not shutil.which(shell):
            print(f"not checked: no {shell} here")
            continue
        done = subprocess.run([shell, "-n", path], capture_output=True, text=True, check=False)
        check(done.returncode == 0 and not done.stderr, f"{file}: {done.stderr}")
    with open(os.path.join(pages, "vcpuscope/zsh/_vcpuscope"), encoding="utf-8") as f:
        text = f.read()
    check(commands <= set(re.findall(r"^\t([a-z]+)\) _arguments", text, re.M)), "zsh: commands are missing")
    if not shutil.which("fish"):
        return
    script = f"source {pages}/vcpuscope/fish/vcpuscope.fish; complete -C '%s'"

    def fish(line):
        done = subprocess.run(["fish", "--no-config", "-c", script % line], capture_output=True, text=True,
                              check=False)
        return {offer.split("\t")[0] for offer in done.stdout.splitlines()}

    check(commands <= fish("vcpuscope "), "fish: commands are missing")
    here = None
    for kind, *fields in dump:
        if kind == "command":
            here = fields[0]
        elif kind == "option" and here and not fields[2].startswith("operand"):
            check(f"--{fields[0]}" in fish(f"vcpuscope {here} --{fields[0]}"),
                  f"fish: {here} has no --{fields[0]}")
    check({"text", "html"} <= fish("vcpuscope report --format "), "fish: --format has no values")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", required=True)
    a = p.parse_args()
    if not shutil.which("man") or not shutil.which("groff"):
        print("skipped: no man-db and groff here")
        return 77
    pages = os.path.join(a.build, "deploy/pages")
    for name, section, program in (("vcpuscope", 1, "host-collector/vcpuscope"),
                                   ("vcpuscope-agent", 8, "guest-agent/vcpuscope-agent")):
        dump = records(os.path.join(a.build, program))
        script = os.path.join(pages, name, "completion", name)
        check_pages(name, section, dump, os.path.join(pages, name, "man"))
        check_completion(name, dump, script)
        if name == "vcpuscope":
            check_words(script, a.build)
            check_shells(pages, dump)
    check_files(os.path.join(pages, "vcpuscope/completion/vcpuscope"))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
