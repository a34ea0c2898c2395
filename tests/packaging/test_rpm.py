#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""deploy/rpm/vcpuscope.spec packs the same files as the Debian packages, says so of every dependency that
nobody has tried, and names this version. Debian's rpmbuild packs what the build folder has (--nodeps,
--with prebuilt): no RPM distribution is needed."""
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from debian_tree import command  # noqa: E402
from test_debs import BUILD, REPOSITORY, contents  # noqa: E402

SPEC = f"{REPOSITORY}/deploy/rpm/vcpuscope.spec"
# Debian's own files.
DEBIAN_ONLY = re.compile(r"usr/share/(lintian/.*|doc/[^/]+/(copyright|changelog\.Debian\.gz))")


def rpm_field(rpm, what):
    return command("rpm", "-qp", f"--{what}", rpm).splitlines()


class Rpm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="vcpuscope-rpm.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.said = command("rpmbuild", "-bb", "--nodeps", "--with", "prebuilt", "--define", f"_topdir {cls.folder}",
                           "--define", f"prebuilt_folder {BUILD}", "--define", "dist .test", SPEC)
        cls.rpms = {}
        for folder, _, files in os.walk(f"{cls.folder}/RPMS"):
            for name in files:
                cls.rpms[re.match(r"(.*)-[^-]+-[^-]+$", name)[1]] = f"{folder}/{name}"

    def test_the_same_files_as_the_debs(self):
        command("cpack", "--config", f"{BUILD}/CPackConfig.cmake", "-B", f"{self.folder}/debs", cwd=BUILD)
        debs = {n.split("_")[0]: f"{self.folder}/debs/{n}" for n in os.listdir(f"{self.folder}/debs")
                if n.endswith(".deb")}
        self.assertEqual(set(self.rpms), set(debs))
        for package, rpm in self.rpms.items():
            lines = [line.split(maxsplit=1) for line in
                     command("rpm", "-qp", "--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]", rpm).splitlines()]
            files = {path.lstrip("/") for perms, path in lines if perms[0] != "d"}
            self.assertEqual(files, {path for path in contents(debs[package]) if not DEBIAN_ONLY.fullmatch(path)},
                             package)

    def test_dependencies(self):
        self.assertNotRegex("\n".join(rpm_field(self.rpms["vcpuscope"], "requires")), "libvirt|libxml")
        self.assertRegex("\n".join(rpm_field(self.rpms["vcpuscope"], "requires")), r"libbpf\.so")
        self.assertNotRegex("\n".join(rpm_field(self.rpms["vcpuscope"], "requires")), "python3", "of a carrier that few use")
        self.assertIn("python3", rpm_field(self.rpms["vcpuscope"], "suggests"))
        self.assertRegex("\n".join(rpm_field(self.rpms["vcpuscope-libvirt"], "requires")), r"libvirt\.so")
        agent = rpm_field(self.rpms["vcpuscope-agent"], "requires")
        self.assertEqual([line for line in agent if ".so" in line], [])
        self.assertIn("/etc/vcpuscope/vcpuscope.conf", rpm_field(self.rpms["vcpuscope"], "configfiles"))
        self.assertIn("/etc/default/vcpuscope-agent", rpm_field(self.rpms["vcpuscope-agent"], "configfiles"))

    def test_the_spec_names_this_version_and_what_is_unverified(self):
        with open(SPEC, encoding="utf-8") as f:
            spec = f.read()
        with open(f"{REPOSITORY}/CMakeLists.txt", encoding="utf-8") as f:
            version = re.search(r"project\(vcpuscope VERSION (\S+)", f.read())[1]
        self.assertIn(f"\nVersion: {version}\n", spec)
        self.assertLess(spec.index("# UNVERIFIED:"), spec.index("BuildRequires:"))
        # A library that the build asks pkg-config for is asked for by that name.
        asked = set()
        for folder, folders, files in os.walk(REPOSITORY):
            folders[:] = [name for name in folders if not name.startswith((".", "build", "tests"))]
            for name in files:
                if name == "CMakeLists.txt" or name.endswith(".cmake"):
                    with open(f"{folder}/{name}", encoding="utf-8") as f:
                        asked |= set(re.findall(r"pkg_check_modules\(\w+ (?:REQUIRED )?(?:IMPORTED_TARGET )?([\w.-]+)",
                                                f.read()))
        asked -= {"cmocka", "libperf"}
        self.assertGreater(len(asked), 10)
        self.assertEqual(asked - set(re.findall(r"pkgconfig\(([\w.-]+)\)", spec)), set())


if __name__ == "__main__":
    for program in ("cpack", "dpkg-deb", "rpmbuild"):
        if not shutil.which(program):
            print(f"skipped: {program} is missing: run deploy/install-deps")
            sys.exit(77)
    unittest.main()
