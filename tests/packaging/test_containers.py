#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The container images, without a container daemon: another program (umoci) reads and unpacks them, the
programs run from their root folder, the same build gives the same bytes, and the manifest for Kubernetes
mounts what the configuration in the image needs. Needs root (chroot, mount)."""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
from debian_tree import command  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.abspath(f"{HERE}/../..")
BUILD = os.path.abspath(os.environ.get("VCPUSCOPE_BUILD", f"{REPOSITORY}/build"))
CONTAINER = f"{REPOSITORY}/deploy/container"
# The agent's is tiny: the program, four folders and two files.
AGENT_BYTES_MAX = 3 << 20


class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="vcpuscope-containers.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.images, cls.roots, cls.configs = {}, {}, {}
        for kind in ("host", "agent"):
            image = cls.images[kind] = f"{cls.folder}/{kind}.tar"
            command(f"{CONTAINER}/make-image", kind, image, "--build", BUILD, "--tag", f"example.org/{kind}:v1")
            layout = f"{cls.folder}/{kind}"
            os.mkdir(layout)
            command("tar", "-C", layout, "-xf", image)
            bundle = f"{cls.folder}/{kind}-bundle"
            command("umoci", "unpack", "--image", f"{layout}:v1", bundle)
            cls.roots[kind] = f"{bundle}/rootfs"
            with open(f"{bundle}/config.json", encoding="utf-8") as f:
                cls.configs[kind] = json.load(f)

    def run_in(self, kind, *words, status=0):
        script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, self.roots[kind], *words],
                              capture_output=True, text=True, check=False, timeout=300,
                              env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_the_host_image_runs(self):
        entry = self.configs["host"]["process"]["args"]
        self.assertEqual(entry, ["/usr/bin/vcpuscope", "daemon"])
        self.assertRegex(self.run_in("host", entry[0], "--version"), r"^vcpuscope \d")
        self.assertIn("good", self.run_in("host", entry[0], "config", "check"))
        # Every library is there: a helper process, a recording, a report.
        self.run_in("host", entry[0], "simulate", "vm_paused.signal", "-o", "/tmp/s.vcs")
        self.assertIn("paused", self.run_in("host", entry[0], "report", "/tmp/s.vcs"))

    def test_the_agent_image_is_tiny_and_runs(self):
        entry = self.configs["agent"]["process"]["args"]
        self.assertEqual(entry, ["/usr/sbin/vcpuscope-agent"])
        self.assertRegex(self.run_in("agent", entry[0], "--version"), r"^vcpuscope-agent \d")
        self.assertLess(os.path.getsize(self.images["agent"]), AGENT_BYTES_MAX)
        files = {os.path.relpath(f"{folder}/{name}", self.roots["agent"])
                 for folder, _, names in os.walk(self.roots["agent"]) for name in names}
        self.assertEqual(files, {"usr/sbin/vcpuscope-agent", "etc/passwd", "etc/group"})

    def test_the_same_build_gives_the_same_bytes(self):
        again = f"{self.folder}/again.tar"
        command(f"{CONTAINER}/make-image", "host", again, "--build", BUILD, "--tag", "example.org/host:v1")
        with open(again, "rb") as a, open(self.images["host"], "rb") as b:
            self.assertTrue(a.read() == b.read())

    def test_owners_and_names(self):
        for image in self.images.values():
            with tarfile.open(image) as tar:
                index = json.load(tar.extractfile("index.json"))
                self.assertRegex(index["manifests"][0]["annotations"]["io.containerd.image.name"], r"^example\.org/")
                manifest = json.load(tar.extractfile(
                    "blobs/" + index["manifests"][0]["digest"].replace(":", "/")))
                layer = tar.extractfile("blobs/" + manifest["layers"][0]["digest"].replace(":", "/"))
                with tarfile.open(fileobj=layer) as files:
                    for info in files:
                        self.assertEqual((info.uid, info.gid), (0, 0), info.name)
                        self.assertFalse(info.name.startswith(("/", "..")), info.name)

    def test_a_wrong_build_folder_is_said(self):
        done = subprocess.run([f"{CONTAINER}/make-image", "host", f"{self.folder}/no.tar", "--build", self.folder],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^make-image: .* is no build folder: run cmake --preset ship")

    def test_the_manifest_fits_the_image(self):
        with open(f"{CONTAINER}/daemonset.yaml", encoding="utf-8") as f:
            text = f.read()
        for need in (r"hostPID: true", r"privileged: true", r"kind: DaemonSet"):
            self.assertRegex(text, need)
        mounts = dict(re.findall(r"\{name: (\w+), mountPath: ([^,}]+)", text))
        volumes = set(re.findall(r"^        - name: (\w+)$", text[text.index("      volumes:"):], re.M))
        self.assertEqual(set(mounts), volumes)
        # With a read-only root, what the daemon writes is on a mount.
        with open(f"{self.roots['host']}/etc/vcpuscope/vcpuscope.conf", encoding="utf-8") as f:
            directory = re.search(r"^directory = (\S+)", f.read(), re.M)[1]
        self.assertIn(directory, mounts.values())
        self.assertIn("/run/vcpuscope", mounts.values())
        for program in re.findall(r"command: \[([^,\]]+)", text):
            self.assertTrue(os.path.exists(self.roots["host"] + program), program)
        try:
            import yaml
        except ImportError:
            return
        self.assertEqual([d["kind"] for d in yaml.safe_load_all(text)], ["Namespace", "DaemonSet"])


if __name__ == "__main__":
    if os.geteuid():
        print("skipped: chroot and mount need root")
        sys.exit(77)
    if not shutil.which("umoci"):
        print("skipped: umoci is missing: run deploy/install-deps")
        sys.exit(77)
    unittest.main()
