#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The documented commands on clean Debian trees: they build vcpuscope as it is shipped and enable no service,
its programs are hardened, the packages install and purge, and the unit tests pass. Ten minutes a tree, so
only tests/run --full runs it.

usage: test_distributions.py [SUITE...]   (default: bookworm trixie)

Needs root (debootstrap, chroot) and Debian's archive.
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from debian_tree import chroot, command, network_lend, tree_tar  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.abspath(f"{HERE}/../..")
BUILD = os.path.abspath(os.environ.get("VCPUSCOPE_BUILD", f"{REPOSITORY}/build"))
SUITES = ("bookworm", "trixie")
# What docs/install.md says to type.
COMMANDS = (
    "deploy/install-deps build quickstart optional",
    "cmake --preset ship",
    "cmake --build --preset ship",
    "cpack --config build-ship/CPackConfig.cmake -B build-ship/packages",
)
QUICKSTART_LIMIT = 30  # as test_install_deps.py
# Beside these, for the tests.
FOR_TESTS = "apt-get install -y --no-install-recommends libcmocka-dev"
# Every service that is enabled or runs at the machine's start. Not those of packages that a Debian has anyway.
ENABLED = ("find /etc/systemd/system /etc/init.d /etc/rc?.d '(' -type f -o -type l ')' 2>/dev/null |"
           " grep -Ev '(hwclock.sh|procps|e2scrub_[a-z]+[.](timer|service)|fstrim.timer|apt-daily.*[.]timer|"
           "dpkg-db-backup.timer)$' | sort")
HARDENING = ("python3 tests/packaging/test_hardening.py build-ship build-ship/host-collector/vcpuscope "
             "build-ship/host-collector/vcpuscope-libvirt build-ship/host-collector/vcpuscope-hook "
             "build-ship/host-collector/vcpuscope-simulate build-ship/guest-agent/vcpuscope-agent "
             "build-ship/guest-agent/vcpuscope-agent-tls")
# These ask the kernel of the machine for things that a tree in a chroot does not have (vmm_socket: a root that
# is a mount point), or need git's history of the sources.
NOT_IN_A_CHROOT = "capture|guest_stacks|pvclock_page|test_tls|test_decode|unwind|vmm_socket|patches|rooms_graph"


@contextlib.contextmanager
def mounted(tree):
    """/proc, /sys and /dev inside the tree."""
    places = [f"{tree}/{name}" for name in ("proc", "sys", "dev")]
    try:
        for place in places:
            command("mount", "--rbind", f"/{os.path.basename(place)}", place)
            command("mount", "--make-rslave", place)
        yield
    finally:
        for place in places:
            subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)


def tests_passed(text):
    """'N of M' of what ctest printed."""
    found = re.search(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)", text)
    if not found or found[2] != "0":
        raise RuntimeError(f"unit tests: {text[-3000:]}")
    return found[3]


def quickstart_packages(run, say, suite):
    """What the quick start needs on the empty tree, by name and with what these depend on."""
    names = run("deploy/install-deps --list build quickstart", quiet=True).split()
    installed = re.findall(r"^Inst (\S+)", run(
        f"apt-get -s install --no-install-recommends {' '.join(names)}", quiet=True), re.M)
    say(f"{suite}: the quick start names {len(names)} packages, apt installs {len(installed)}")
    if not 0 < len(names) < QUICKSTART_LIMIT or len(installed) < len(names):
        raise RuntimeError(f"the quick start's packages: {names}, {installed}")


def check(suite, folder, say):
    tree = f"{folder}/{suite}"
    os.mkdir(tree)
    command("tar", "-C", tree, "-xf", tree_tar(f"{BUILD}/beds/cache", suite, ("ca-certificates",)))
    network_lend(tree)
    command("git", "clone", "-q", "--no-hardlinks", REPOSITORY, f"{tree}/src")

    def run(line, quiet=False):
        began = time.monotonic()
        text = chroot(tree, "sh", "-c", f"cd /src && {line}")
        if not quiet:
            say(f"{suite}: {time.monotonic() - began:5.0f} s  {line}")
        return text

    with mounted(tree):
        run("apt-get update")
        quickstart_packages(run, say, suite)
        before = run(ENABLED, quiet=True)
        for line in COMMANDS:
            if line.startswith("cpack"):
                run("apt-get install -y --no-install-recommends dpkg-dev file")
            text = run(line)
            if "Left out of this build" in text and "LIBVIRT" in text.split("Left out")[1]:
                raise RuntimeError(f"{line}: {text[-2000:]}")
            if line.startswith("deploy/") and run(ENABLED, quiet=True) != before:
                raise RuntimeError(f"{line} enabled services: {run(ENABLED, quiet=True)}")
        say(run(HARDENING, quiet=True).strip())
        run("dpkg -i build-ship/packages/*.deb")
        for program in ("vcpuscope", "vcpuscope-agent"):
            run(f"{program} --version")
        run("dpkg -P $(dpkg-query -W -f '${Package}\\n' 'vcpuscope*')")
        run(FOR_TESTS)
        run("cmake --preset release")
        run("cmake --build --preset release")
        say(f"{suite}: " + tests_passed(run(
            f"cd build && ctest -L 'unit|property' -E '{NOT_IN_A_CHROOT}' -j2 --output-on-failure || true"))
            + " unit and property tests passed")
    shutil.rmtree(tree)


def main():
    if os.environ.get("VCPUSCOPE_TEST_FULL", "0") != "1" and len(sys.argv) == 1:
        print("skipped: ten minutes a distribution: tests/run --full")
        return 77
    if os.geteuid():
        print("skipped: debootstrap and chroot need root")
        return 77
    # Mounts of its own: those of a killed run must not outlive it, /dev is among them.
    if os.environ.get("VCPUSCOPE_OWN_MOUNTS") != "1":
        os.environ["VCPUSCOPE_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "slave", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory(prefix="vcpuscope-distributions.") as folder:
        for suite in sys.argv[1:] or SUITES:
            check(suite, folder, lambda line: print(line, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
