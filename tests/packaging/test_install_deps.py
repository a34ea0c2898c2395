#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What install-deps installs: every group's packages exist, the quick start names few packages, and neither
the build nor the quick start brings a server to an empty Debian. test_distributions.py looks for services
that are really enabled."""
import os
import re
import subprocess
import sys
import tempfile

DEPLOY = os.path.abspath(f"{os.path.dirname(os.path.abspath(__file__))}/../../deploy")
GROUPS = ("build", "optional", "quickstart", "tests")
QUICKSTART_LIMIT = 30
# Programs that run by themselves once installed, and the manager that would start them.
SERVERS = re.compile(r"prometheus|libvirt-daemon|dnsmasq|dbus|systemd|avahi-daemon|openssh-server|.*-server")
# Libraries with such a name.
LIBRARIES = re.compile(r"lib(?!virt-daemon).*")


def names(*groups):
    """What install-deps would install with nothing there: dpkg-query finds nothing."""
    with tempfile.TemporaryDirectory(prefix="vcpuscope-deps.") as folder:
        query = f"{folder}/dpkg-query"
        with open(query, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nexit 1\n")
        os.chmod(query, 0o755)
        env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")
        done = subprocess.run([f"{DEPLOY}/install-deps", "--list", *groups], env=env, check=True,
                              capture_output=True, text=True)
    return done.stdout.split()


def closure(packages):
    """Everything that apt would install for them on an empty system."""
    with tempfile.NamedTemporaryFile(prefix="vcpuscope-status.") as empty:
        done = subprocess.run(["apt-get", "-s", "-o", f"Dir::State::status={empty.name}", "install",
                               "--no-install-recommends", *packages], capture_output=True, text=True,
                              check=False)
    if done.returncode:
        return None, done.stderr
    return re.findall(r"^Inst (\S+)", done.stdout, re.M), ""


def main():
    faults = []
    quickstart = names("build", "quickstart")
    if len(quickstart) >= QUICKSTART_LIMIT or len(set(quickstart)) != len(quickstart):
        faults.append(f"the quick start names {len(quickstart)} packages, not fewer than {QUICKSTART_LIMIT}")
    print(f"the quick start names {len(quickstart)} packages, everything {len(names(*GROUPS))}")
    for groups in (("build", "optional", "quickstart"), GROUPS):
        installed, error = closure(names(*groups))
        if installed is None:
            print(*faults, sep="\n")
            print(f"skipped: apt knows not all packages here (no package lists?): {error}")
            return 1 if faults else 77
        print(f"{' '.join(groups)}: {len(installed)} packages on an empty system")
        servers = [name for name in installed if SERVERS.fullmatch(name) and not LIBRARIES.fullmatch(name)]
        if "tests" in groups and not servers:
            faults.append("the tests bring no server: this check sees nothing")
        elif "tests" not in groups and servers:
            faults.append(f"{groups} bring {servers}")
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
