#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compiles the agent for arm64 and runs its unit tests under qemu-user: usage: test_arm64.py SOURCE BUILD.

Uses Debian's cross compiler and a sysroot of unpacked packages (deploy/cross/make-sysroot)."""
import os
import re
import shutil
import subprocess
import sys

NEEDED = ("aarch64-linux-gnu-gcc", "qemu-aarch64", "apt-get", "dpkg-deb")
# qemu-user has no seccomp filters, and emulates the counter and the clocks of the kernel from different
# clocks (docs/porting.md).
NOT_UNDER_QEMU = r"test_(namer|clock_sample|clock_raw)|prop_probe_finder"
LEAST_TESTS = 20


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(done.stdout[-6000:])
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


def main():
    source, build = map(os.path.abspath, sys.argv[1:3])
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        print(f"skipped: {', '.join(missing)} missing: run deploy/install-deps")
        return 77
    sysroot = f"{source}/.deps/sysroot-arm64"
    print(run(f"{source}/deploy/cross/make-sysroot", sysroot), end="")
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", "--toolchain", f"{source}/deploy/cross/aarch64.cmake",
        f"-DCMAKE_SYSROOT={sysroot}", "-DVCPUSCOPE_HOST=OFF", "-DVCPUSCOPE_LIBPERF=OFF", "-DVCPUSCOPE_WERROR=ON")
    run("cmake", "--build", build)
    agent = f"{build}/guest-agent/vcpuscope-agent"
    header = run("aarch64-linux-gnu-readelf", "-hlW", agent)
    assert "AArch64" in header and "INTERP" not in header, "not a static program for arm64"
    version = run("qemu-aarch64", agent, "--version")
    assert re.match(r"vcpuscope-agent \d", version), version
    text = run("ctest", "--test-dir", build, "-L", "unit|property", "-E", f"^({NOT_UNDER_QEMU})$",
               "--output-on-failure", "-j", "2")
    found = re.search(r"100% tests passed, 0 tests failed out of (\d+)", text)
    if not found or int(found[1]) < LEAST_TESTS:
        print(text[-6000:])
        return 1
    print(f"arm64: the agent is linked, {found[1]} unit and property tests passed under qemu-user")
    return 0


if __name__ == "__main__":
    sys.exit(main())
