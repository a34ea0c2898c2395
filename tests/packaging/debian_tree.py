# SPDX-License-Identifier: GPL-2.0-only
"""Clean Debian trees: made by debootstrap once, unpacked for each use, entered by chroot."""
import hashlib
import os
import shutil
import subprocess
import tempfile


def command(*words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


def chroot(tree, *words, **options):
    return command("chroot", tree, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                   "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", *words, **options)


def mirror():
    """Where this machine gets its own Debian from."""
    for line in command("apt-get", "indextargets", "--format", "$(SITE) $(COMPONENT) $(ORIGIN)",
                        "Created-By: Packages").splitlines():
        site, component, origin = line.split(maxsplit=2)
        if (component, origin) == ("main", "Debian") and "security" not in site:
            return site
    raise RuntimeError("this machine's apt knows no Debian main")


def tree_tar(cache, suite, include):
    """The path of a tar of `suite` with these packages, kept in the folder `cache`."""
    key = hashlib.sha256(" ".join((suite, *include)).encode()).hexdigest()[:12]
    tar = f"{cache}/debian-{suite}-{key}.tar"
    if not os.path.exists(tar):
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="vcpuscope-debian.") as work:
            command("debootstrap", "--variant=minbase", f"--include={','.join(include)}", suite,
                    f"{work}/tree", mirror())
            shutil.rmtree(f"{work}/tree/var/cache/apt/archives", ignore_errors=True)
            command("tar", "-C", f"{work}/tree", "-cf", f"{tar}.part", ".")
            os.rename(f"{tar}.part", tar)
    return tar


def network_lend(tree):
    """Lets apt in the tree reach what this machine's apt reaches."""
    for path in ("/etc/resolv.conf", "/etc/hosts"):
        if os.path.exists(path):
            shutil.copy(path, f"{tree}{path}")
    folder = "/etc/apt/apt.conf.d"
    for name in sorted(os.listdir(folder)):
        with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as f:
            text = f.read()
        if "Acquire::" in text and "Pre-Invoke" not in text:
            shutil.copy(f"{folder}/{name}", f"{tree}{folder}/{name}")
