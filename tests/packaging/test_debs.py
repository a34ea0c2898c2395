#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The Debian packages, without installing them on a system: what is in which, what they depend on, that
lintian finds nothing, that debug symbols fit, and that files which moved between packages are replaced."""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from debian_tree import command  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.abspath(f"{HERE}/../..")
BUILD = os.path.abspath(os.environ.get("VCPUSCOPE_BUILD", f"{REPOSITORY}/build"))
# Notes that ask for nothing: systemd is the only init, and words that happen to be in machine code.
ACCEPTED = re.compile(r"I: \S+ (package-supports-alternative-init-but-no-init.d-script|spelling-error-in-binary) ")
LIBVIRT = "usr/libexec/vcpuscope/vcpuscope-libvirt"


def contents(deb):
    return {line.split(maxsplit=5)[5].removeprefix("./")
            for line in command("dpkg-deb", "-c", deb).splitlines() if line[0] != "d"}


class Debs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="vcpuscope-debs.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        command("cpack", "--config", f"{BUILD}/CPackConfig.cmake", "-B", f"{cls.folder}/debs", cwd=BUILD)
        names = os.listdir(f"{cls.folder}/debs")
        cls.debs = {n.split("_")[0]: f"{cls.folder}/debs/{n}" for n in names if n.endswith(".deb")}
        cls.symbols = {n.split("_")[0]: f"{cls.folder}/debs/{n}" for n in names if n.endswith(".ddeb")}
        cls.files = {name: contents(deb) for name, deb in cls.debs.items()}

    def field(self, package, name):
        return command("dpkg-deb", "-f", self.debs[package], name).strip()

    def test_packages_and_dependencies(self):
        self.assertEqual(self.field("vcpuscope-agent", "Depends"), "")
        self.assertNotRegex(self.field("vcpuscope", "Depends"), r"libvirt|libxml")
        self.assertNotRegex(self.field("vcpuscope", "Recommends"), r"libvirt")
        suggested = self.field("vcpuscope", "Suggests")
        for program in ("vcpuscope-libvirt", "curl", "jq", "kcat", "python3", "rclone"):
            self.assertIn(program, suggested)
            self.assertNotIn(program, self.field("vcpuscope", "Depends"))
        for package in ("vcpuscope", "vcpuscope-libvirt", "vcpuscope-agent-tls"):
            self.assertIn("libc6", self.field(package, "Depends"))
        if "vcpuscope-libvirt" in self.debs:
            self.assertRegex(self.field("vcpuscope-libvirt", "Depends"), r"vcpuscope \(= .*libvirt0")
        seen = {}
        for package, files in self.files.items():
            for path in files:
                self.assertNotIn(path, seen, f"in {package} and in {seen.get(path)}")
                seen[path] = package

    def test_pages_and_docs(self):
        host = self.files["vcpuscope"]
        man = "usr/share/man"
        for path in ("man8/vcpuscope-daemon.8.gz", "man5/vcpuscope.conf.5.gz", "man1/vcpuscope-record.1.gz"):
            self.assertIn(f"{man}/{path}", host)
        self.assertNotIn(f"{man}/man1/vcpuscope-daemon.1.gz", host)
        self.assertIn(f"{man}/man8/vcpuscope-agent.8.gz", self.files["vcpuscope-agent"])
        docs = "usr/share/doc/vcpuscope"
        for name in os.listdir(f"{REPOSITORY}/docs"):
            if name.endswith(".md"):
                self.assertIn(f"{docs}/docs/{name}", host)
        # What pages and docs refer to is there.
        tree = f"{self.folder}/host"
        command("dpkg-deb", "-x", self.debs["vcpuscope"], tree)
        for folder, _, files in os.walk(f"{tree}/{man}"):
            for name in files:
                with gzip.open(f"{folder}/{name}", "rt", encoding="utf-8") as f:
                    text = f.read().replace("\\-", "-")
                for page in re.findall(r"docs/[\w-]+\.md", text):
                    self.assertIn(f"{docs}/{page}", host, name)
                for page, section in re.findall(r"\\fB(vcpuscope[\w.-]*)\\fR\((\d)\)", text):
                    where = self.files["vcpuscope"] | self.files["vcpuscope-agent"]
                    self.assertIn(f"{man}/man{section}/{page}.{section}.gz", where, name)

    def test_lintian(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is missing: run deploy/install-deps")
        done = subprocess.run(["lintian", "-I", "--tag-display-limit", "0", *self.debs.values()],
                              capture_output=True, text=True, check=False)
        tags = [line for line in done.stdout.splitlines() if line[:2] in ("E:", "W:", "I:")]
        self.assertEqual([line for line in tags if not ACCEPTED.match(line)], [])
        self.assertTrue(tags, f"lintian looked at nothing: {done.stderr}")

    def test_every_program_is_one_that_test_hardening_reads(self):
        shipped = os.environ.get("VCPUSCOPE_SHIPPED")
        if not shipped:
            self.skipTest("run by ctest, which has their list")
        programs = {os.path.basename(path) for files in self.files.values() for path in files
                    if re.match(r"usr/(s?bin|libexec/vcpuscope)/", path)}
        self.assertEqual(programs, set(shipped.split(",")))

    def test_debug_symbols_fit(self):
        for package, program in (("vcpuscope", "usr/bin/vcpuscope"),
                                 ("vcpuscope-agent", "usr/sbin/vcpuscope-agent")):
            tree = f"{self.folder}/symbols-{package}"
            command("dpkg-deb", "-x", self.debs[package], tree)
            command("dpkg-deb", "-x", self.symbols[f"{package}-dbgsym"], tree)
            notes = command("readelf", "-nW", f"{tree}/{program}")
            build_id = re.search(r"Build ID: ([0-9a-f]{2})([0-9a-f]+)", notes)
            symbols = f"{tree}/usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug"
            self.assertIn(".debug_info", command("readelf", "-SW", symbols))
            self.assertNotRegex(command("readelf", "-SW", f"{tree}/{program}"), r"\.debug_info|\.symtab|\.comment")

    def old_deb(self):
        """The host's package of before: with the helper of libvirt in it, version 0.1.0."""
        tree = f"{self.folder}/old"
        for package in ("vcpuscope", "vcpuscope-libvirt"):
            command("dpkg-deb", "-x", self.debs[package], tree)
        os.mkdir(f"{tree}/DEBIAN")
        with open(f"{tree}/DEBIAN/control", "w", encoding="utf-8") as f:
            f.write("Package: vcpuscope\nVersion: 0.1.0\nArchitecture: " + self.field("vcpuscope", "Architecture")
                    + "\nMaintainer: nobody <nobody@localhost>\nDescription: old\n")
        command("dpkg-deb", "-b", tree, f"{self.folder}/old.deb")
        return f"{self.folder}/old.deb"

    def test_the_old_package_is_upgraded(self):
        if os.geteuid():
            self.skipTest("dpkg needs root")
        if "vcpuscope-libvirt" not in self.debs:
            self.skipTest("built without libvirt")
        root = f"{self.folder}/root"
        for folder in ("info", "updates", "triggers"):
            os.makedirs(f"{root}/var/lib/dpkg/{folder}")
        for name in ("status", "available"):
            with open(f"{root}/var/lib/dpkg/{name}", "w", encoding="utf-8"):
                pass

        def dpkg(*words):
            return command("dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", *words)

        dpkg("-i", self.old_deb())
        self.assertIn("vcpuscope:", dpkg("-S", f"/{LIBVIRT}").replace(" ", ""))
        dpkg("--auto-deconfigure", "--unpack", self.debs["vcpuscope-libvirt"], self.debs["vcpuscope"])
        self.assertEqual(dpkg("-S", f"/{LIBVIRT}"), f"vcpuscope-libvirt: /{LIBVIRT}\n")
        self.assertTrue(os.path.exists(f"{root}/{LIBVIRT}"))


if __name__ == "__main__":
    for program in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
        if not shutil.which(program):
            print(f"skipped: {program} is missing: run deploy/install-deps")
            sys.exit(77)
    unittest.main()
