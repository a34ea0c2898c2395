#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the daemon's metrics. Debian's Prometheus scrapes them and counts a stall, and promtool finds no
error. A Unix socket and a file have the same metrics. Hostile clients do not cost the daemon CPU time or
memory.
"""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from daemon_rig import Daemon, FakeVm, skip_unless_possible, until


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(connection, path="/metrics", method="GET"):
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read().decode()


def value(page, series):
    lines = [line for line in page.splitlines() if line.startswith(series + " ")]
    return float(lines[0].rsplit(" ", 1)[1]) if lines else None


class Prometheus:
    def __init__(self, target):
        self.folder = tempfile.mkdtemp(prefix="vcpuscope-prometheus.")
        self.port = free_port()
        config = pathlib.Path(self.folder) / "prometheus.yml"
        config.write_text(f"""
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: vcpuscope
    static_configs: [{{targets: ['{target}']}}]
""")
        self.log = open(f"{self.folder}/log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log)

    def query(self, expression):
        url = (f"http://127.0.0.1:{self.port}/api/v1/query?"
               + urllib.parse.urlencode({"query": expression}))
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            return None
        return float(found[0]["value"][1]) if found else None

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class MetricsTest(unittest.TestCase):
    def setUp(self):
        self.vm = FakeVm("web1")
        self.addCleanup(self.vm.end)
        self.port = free_port()

    def daemon(self, settings):
        d = Daemon(f"[vm web1]\npid = {self.vm.pid}\n", settings)
        self.addCleanup(d.clean)
        d.start()
        until("it watches", lambda: d.vm("web1")["state"] == "running")
        return d

    def page(self):
        status, kind, text = get(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20))
        self.assertEqual(status, 200)
        self.assertIn("version=0.0.4", kind)
        return text

    @unittest.skipUnless(shutil.which("prometheus"), "no prometheus here")
    def test_prometheus_scrapes_a_stall(self):
        d = self.daemon(f"metrics = listen:tcp:127.0.0.1:{self.port}")
        until("events come", lambda: value(
            self.page(), 'vcpuscope_events_total{side="host",vm="web1"}'))
        prometheus = Prometheus(f"127.0.0.1:{self.port}")
        self.addCleanup(prometheus.close)
        until("it is scraped", lambda: prometheus.query('up{job="vcpuscope"}') == 1, 60)
        stopped = 'vcpuscope_incidents_total{vm="web1",verdict="vm_paused"}'
        stalls = 'vcpuscope_stalls_total{vm="web1"}'
        until("the counter is there", lambda: prometheus.query(stalls) is not None, 60)
        before = prometheus.query(stalls)  # of a loaded machine, not of ours
        self.assertIsNone(prometheus.query(stopped), "no series of a verdict that never occurred")
        os.kill(self.vm.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(self.vm.pid, signal.SIGCONT)
        until("the stall is counted", lambda: prometheus.query(stopped) == 1, 60)
        self.assertGreater(prometheus.query(stalls), before)
        self.assertGreater(prometheus.query("vcpuscope_host_stalls_total"), before)
        self.assertGreater(prometheus.query('vcpuscope_vcpu_seconds_total{state="stopped"}'), 0.4)
        self.assertGreater(prometheus.query("vcpuscope_cpu_seconds_total"), 0)
        said = subprocess.run(["promtool", "check", "metrics"], input=self.page(), text=True,
                              capture_output=True, check=False)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertNotIn("cannot", d.log.read_text())

    def test_sums_outlive_a_vm(self):
        other = FakeVm("web2")
        self.addCleanup(other.end)
        d = self.daemon(f"metrics = listen:tcp:127.0.0.1:{self.port}\nmetrics_vm = no\nlabels = zone=a")
        d.ask("attach", "web2", f"pid={other.pid}")
        until("both are there", lambda: value(self.page(), "vcpuscope_host_vcpus") == 2)
        events = 'vcpuscope_host_events_total{side="host"}'
        until("events come", lambda: value(self.page(), events))
        self.assertIn(',label_zone="a"} 1\n', self.page())
        self.assertNotIn('vm="', self.page())
        before = value(self.page(), events)
        d.ask("detach", "web2")
        until("it is gone", lambda: value(self.page(), "vcpuscope_host_vms") == 1)
        self.assertGreaterEqual(value(self.page(), events), before)

    def test_unix_socket_and_file(self):
        with tempfile.TemporaryDirectory(prefix="vcpuscope-metrics.") as folder:
            file = pathlib.Path(folder) / "vcpuscope.prom"
            path = pathlib.Path(folder) / "socket"
            d = self.daemon(f"metrics = listen:unix:{path}\nmetrics_file = {file}")
            until("events come", lambda: value(get(UnixConnection(path))[2],
                                               'vcpuscope_events_total{side="host",vm="web1"}'))
            until("the file is there", file.exists)
            self.assertEqual(file.stat().st_mode & 0o777, 0o644)
            self.assertEqual(value(file.read_text(), 'vcpuscope_vcpus{vm="web1"}'), 1)
            d.stop()
            self.assertEqual(os.listdir(folder), [], "nothing is left behind")

    def test_clients_that_mean_no_good(self):
        d = self.daemon(f"metrics = listen:tcp:127.0.0.1:{self.port}")
        where = ("127.0.0.1", self.port)
        connection = http.client.HTTPConnection(*where, timeout=20)
        self.assertEqual(get(connection, "/../etc/passwd")[0], 404)
        self.assertEqual(get(connection, "/metrics", "POST")[0], 405)
        connection.close()
        endless = socket.create_connection(where)
        endless.sendall(b"GET /" + b"a" * (1 << 20))
        silent = [socket.create_connection(where) for _ in range(40)]
        try:
            begin = time.monotonic()
            self.assertEqual(d.vm("web1")["state"], "running")
            self.assertLess(time.monotonic() - begin, 5, "the daemon goes on meanwhile")
        finally:
            # Without their going: they are thrown out in time.
            until("the page is served again", self.served, 60)
            for s in [endless, *silent]:
                s.close()
        self.assertIsNotNone(value(self.page(), 'vcpuscope_vcpus{vm="web1"}'))

    def served(self):
        try:
            return bool(self.page())
        except (OSError, http.client.HTTPException):
            return False

    def test_an_address_that_cannot_be_is_said(self):
        d = Daemon("", "metrics = tcp:127.0.0.1:1")
        self.addCleanup(d.clean)
        with self.assertRaisesRegex(AssertionError, "want listen:unix:PATH or listen:tcp:HOST:PORT"):
            d.start()


if __name__ == "__main__":
    skip_unless_possible()
    unittest.main(verbosity=2)
