#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A packager's compiler and linker flags decide: usage: test_build_flags.py SOURCE.

Configures the sources as dpkg-buildpackage and rpmbuild do (flags in the environment, no build type) and
reads from compile_commands.json and build.ninja what would be run. Nothing is compiled."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMMON = ["-DVCPUSCOPE_TESTS=OFF", "-DVCPUSCOPE_LIBPERF=OFF"]
# None of it is what our own flags would be.
ODD = {"CFLAGS": "-Og -fstack-protector-all -fcf-protection=branch -fno-stack-clash-protection "
                 "-D_FORTIFY_SOURCE=1 -fno-lto", "LDFLAGS": "-Wl,-z,relro -Wl,--as-needed"}


def dpkg_flags():
    """As debhelper passes them to cmake; None without dpkg-dev."""
    def get(name):
        return subprocess.run(["dpkg-buildflags", "--get", name], check=True, capture_output=True,
                              text=True).stdout.strip()
    try:
        return {"CFLAGS": f"{get('CFLAGS')} {get('CPPFLAGS')}", "LDFLAGS": get("LDFLAGS")}
    except FileNotFoundError:
        return None


def configured(source, flags, *arguments):
    """(C command lines of our own files, text of build.ninja)"""
    env = {name: value for name, value in os.environ.items() if name not in ("CFLAGS", "LDFLAGS", "CPPFLAGS")}
    with tempfile.TemporaryDirectory(prefix="vcpuscope-flags.") as build:
        subprocess.run(["cmake", "-S", source, "-B", build, "-G", "Ninja", *COMMON, *arguments], check=True,
                       env={**env, **flags}, stdout=subprocess.DEVNULL)
        entries = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
        return [e["command"] for e in entries], pathlib.Path(build, "build.ninja").read_text()


def last(command, pattern):
    found = re.findall(rf" ({pattern})(?= )", command)
    return found[-1] if found else None


def respected(source, flags):
    """What the packager's flags say, and the commands do not."""
    commands, ninja = configured(source, flags)
    faults = []
    assert len(commands) > 100
    for kind in ("-O\\S+", "-f(?:no-)?stack-protector\\S*", "-f(?:no-)?stack-clash-protection",
                 "-fcf-protection\\S*", "-[UD]_FORTIFY_SOURCE\\S*"):
        want = last(f" {flags['CFLAGS']} ", kind)
        got = {last(command, kind) for command in commands}
        if want and got != {want}:
            faults.append(f"{want} of the packager became {got}")
    if any(re.search(r" -Werror ", command) for command in commands):
        faults.append("warnings are errors")
    for flag in flags["LDFLAGS"].split():
        links = re.findall(r"^  LINK_FLAGS = (.*)", ninja, re.M)
        if not links or any(flag not in link.split() for link in links if "-pie" in link):
            faults.append(f"{flag} is not at every link")
    return faults


def ours(source):
    """Without flags of a packager ours are there, and the preset for shipping optimises."""
    commands, _ = configured(source, {})
    faults = [f"{flag} is missing" for flag in ("-O2", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2",
                                                "-fstack-clash-protection")
              if any(f" {flag} " not in command for command in commands)]
    if any(" -Werror " in command or " -march" in command for command in commands):
        faults.append("a build without a preset has -Werror or asks for more than the baseline")
    with open(f"{source}/CMakePresets.json", encoding="utf-8") as f:
        presets = {p["name"]: p["cacheVariables"] for p in json.load(f)["configurePresets"]}
    arguments = [f"-D{name}={value}" for name, value in presets["ship"].items()]
    commands, _ = configured(source, {}, *arguments)
    for flag in ("-O3", "-g", "-flto\\S*", "-D_FORTIFY_SOURCE=2"):
        if any(not re.search(rf" {flag} ", command) for command in commands):
            faults.append(f"the preset for shipping lacks {flag}")
    if any(" -march" in command for command in commands):
        faults.append("the preset for shipping asks for more than the baseline")
    return faults


def main():
    source = sys.argv[1]
    faults = ours(source)
    for name, flags in (("dpkg", dpkg_flags()), ("odd", ODD)):
        if flags:
            faults += [f"{name}: {fault}" for fault in respected(source, flags)]
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
