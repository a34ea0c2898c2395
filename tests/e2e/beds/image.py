# SPDX-License-Identifier: GPL-2.0-only
"""Makes an initramfs from files of this machine: collects them by path, and writes a cpio archive. The cache
finds an archive by its content, so an unchanged one is built only once. Needs no root, because device nodes
are only bytes in the archive.
"""
import contextlib
import glob
import hashlib
import os
import re
import stat
import subprocess

CACHED_ARCHIVES = 8  # a bed's two, of both kernels, and the ones before the last change


class ImageError(Exception):
    pass


class Image:
    """What goes in: path inside the image -> (mode, content). Folders appear by themselves."""

    def __init__(self):
        self._entries = {}
        for link, target in (("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"),
                             ("lib64", "usr/lib64")):
            self._entries[link] = (stat.S_IFLNK | 0o777, target.encode())
        for folder in ("dev", "proc", "sys", "tmp", "run", "root", "etc", "usr/bin", "usr/sbin",
                       "usr/lib", "usr/lib64"):
            self._add_folder(folder)

    def _add_folder(self, path):
        while path and path not in self._entries:
            self._entries[path] = (stat.S_IFDIR | 0o755, b"")
            path = os.path.dirname(path)

    def add_bytes(self, path, content, mode=0o644):
        path = path.strip("/")
        for link in ("bin", "sbin", "lib", "lib64"):  # as merged-usr would resolve them
            if path.startswith(link + "/"):
                path = "usr/" + path
        self._add_folder(os.path.dirname(path))
        self._entries[path] = (stat.S_IFREG | mode, content)

    def add_file(self, source, path=None):
        """A file with its permissions; by default at the same path as here."""
        try:
            with open(source, "rb") as f:
                content = f.read()
        except FileNotFoundError:
            raise ImageError(f"{source} is missing: build the project (cmake --build build) and "
                             "run deploy/install-deps") from None
        self.add_bytes(path or source, content, stat.S_IMODE(os.stat(source).st_mode) | 0o444)

    def add_program(self, source, path=None):
        """An executable and every shared library that the loader would map for it."""
        self.add_file(source, path)
        listing = subprocess.run(["ldd", source], capture_output=True, text=True)
        if listing.returncode:
            return  # static
        if "not found" in listing.stdout:
            raise ImageError(f"{source}: a shared library is missing: {listing.stdout.strip()}")
        for library in re.findall(r"(/\S+) \(0x", listing.stdout):
            self.add_file(library)

    def add_modules(self, modules):
        """[(name, bytes)] as Kernel.modules() returns them; init loads them in this order."""
        for name, content in modules:
            self.add_bytes(f"etc/modules/{name}", content)
        self.add_bytes("etc/modules/order", "".join(f"{name}\n" for name, _ in modules).encode())

    def write(self, cache):
        """The path of the archive in `cache`, written only if this content was not there."""
        digest = hashlib.sha256()
        for path, (mode, content) in sorted(self._entries.items()):
            digest.update(f"{path}\0{mode}\0{len(content)}\0".encode())
            digest.update(content)
        os.makedirs(cache, exist_ok=True)
        target = f"{cache}/initramfs-{digest.hexdigest()[:16]}.cpio"
        if os.path.exists(target):
            os.utime(target)
        else:
            partial = f"{target}.{os.getpid()}"
            with open(partial, "wb") as f:
                self._write_cpio(f)
            os.rename(partial, target)
        archives = sorted(glob.glob(f"{cache}/initramfs-*"), key=os.path.getmtime)
        for old in archives[:-CACHED_ARCHIVES]:
            with contextlib.suppress(FileNotFoundError):  # another bed was faster
                os.unlink(old)
        return target

    def _write_cpio(self, f):
        """The kernel's "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst)."""

        def entry(inode, path, mode, content, device=(0, 0)):
            name = path.encode() + b"\0"
            fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
            header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
            f.write(header + bytes(-len(header) % 4) + content + bytes(-len(content) % 4))

        ordered = sorted(self._entries.items())  # a folder sorts before what it holds
        for inode, (path, (mode, content)) in enumerate(ordered, start=1):
            entry(inode, path, mode, content)
        entry(len(ordered) + 1, "dev/console", stat.S_IFCHR | 0o600, b"", (5, 1))
        entry(0, "TRAILER!!!", 0, b"")
