# SPDX-License-Identifier: GPL-2.0-only
"""Gets Debian's cloud kernels as files (image, modules and headers), without root.

Finds the current version of `linux-image-cloud-amd64` (6.1) and `linux-image-6.12-cloud-amd64` at run time.
`apt-get download` and `dpkg -x` put its files into the cache. Installs nothing on this machine.
"""
import lzma
import os
import re
import shutil
import subprocess
import tempfile

META_SUFFIX = {"6.1": "cloud-amd64", "6.12": "6.12-cloud-amd64"}


class KernelError(Exception):
    pass


def _output(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise KernelError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-1000:]}")
    return done.stdout


def _depends(package):
    """(version, names) of the candidate version of a package."""
    record = _output("apt-cache", "show", "--no-all-versions", package)
    version = re.search(r"^Version: (\S+)", record, re.M)[1]
    depends = re.search(r"^Depends: (.*)", record, re.M)
    return version, [d.split()[0] for d in (depends[1].split(", ") if depends else [])]


class Kernel:
    """One kernel version, unpacked under `root`."""

    def __init__(self, root, release):
        self.root, self.release = root, release
        self.vmlinuz = f"{root}/boot/vmlinuz-{release}"
        self._modules = f"{root}/lib/modules/{release}"
        self._paths = {}
        for folder, _, files in os.walk(self._modules):
            for name in files:
                if re.search(r"\.ko(\.xz)?$", name):
                    self._paths[name.split(".ko")[0].replace("-", "_")] = os.path.join(folder, name)
        with open(f"{self._modules}/modules.builtin") as f:
            self._builtin = {os.path.basename(line.strip())[:-3].replace("-", "_") for line in f}

    def modules(self, names):
        """[(file name, bytes)] of the modules and all they depend on, in the order of loading."""
        loaded = {}

        def load(name):
            name = name.replace("-", "_")
            if name in loaded or name in self._builtin:
                return
            if name not in self._paths:
                raise KernelError(f"kernel {self.release} has no module {name}")
            path = self._paths[name]
            with (lzma.open if path.endswith(".xz") else open)(path, "rb") as f:
                content = f.read()
            for dependency in re.search(rb"\0depends=([^\0]*)\0", content)[1].decode().split(","):
                if dependency:
                    load(dependency)
            loaded[name] = content

        for name in names:
            load(name)
        return [(f"{name}.ko", content) for name, content in loaded.items()]

    def build_module(self, source, work):
        """Builds the out-of-tree module in folder `source` under `work`; the path of its .ko."""
        out = f"{work}/{os.path.basename(source)}-{self.release}"
        name = os.path.basename(source)
        inputs = [os.path.join(source, f) for f in sorted(os.listdir(source))]
        ko = f"{out}/{name}.ko"
        if os.path.exists(ko) and os.path.getmtime(ko) > max(map(os.path.getmtime, inputs)):
            return ko
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(source, out)
        headers = f"{self.root}/usr/src/linux-headers-{self.release}"
        # Without BTF of its own: a loader does not need it, and pahole is one package less.
        _output("make", "-s", "-C", headers, f"M={out}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
        return ko


def kernel_get(cache, series):
    """The Kernel of "6.1" or "6.12", downloaded into `cache` if it is not there yet."""
    if series not in META_SUFFIX:
        raise KernelError(f"kernel {series}: known are {', '.join(META_SUFFIX)}")
    suffix = META_SUFFIX[series]
    try:
        image = _depends(f"linux-image-{suffix}")[1][0]
    except (KernelError, FileNotFoundError, TypeError, IndexError) as error:
        raise KernelError(f"cannot resolve linux-image-{suffix}: {error}; "
                          "run deploy/install-deps, or apt-get update as root") from error
    release = image.removeprefix("linux-image-")
    root = f"{cache}/linux-{release}"
    if not os.path.isdir(root):
        _unpack(root, release, image)
    return Kernel(root, release)


def _unpack(root, release, image):
    headers = f"linux-headers-{release}"
    packages = [image, headers]
    packages += [d for d in _depends(headers)[1] if re.match(r"linux-(headers|kbuild)-", d)]
    os.makedirs(os.path.dirname(root), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(root), prefix="unpack.") as work:
        os.mkdir(f"{work}/debs")
        os.mkdir(f"{work}/root")
        _output("apt-get", "download", *packages, cwd=f"{work}/debs")
        for deb in os.listdir(f"{work}/debs"):
            _output("dpkg", "-x", f"{work}/debs/{deb}", f"{work}/root")
        # The headers' Makefile includes its common part by absolute path.
        makefile = f"{work}/root/usr/src/{headers}/Makefile"
        with open(makefile) as f:
            text = f.read()
        with open(makefile, "w") as f:
            f.write(text.replace("/usr/src/", f"{root}/usr/src/"))
        os.rename(f"{work}/root", root)
