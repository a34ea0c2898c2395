#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests the daemon's page of incidents: it lists folders and serves reports, and nothing else, whatever the
request is.
"""
import base64
import http.client
import json
import os
import pathlib
import random
import re
import socket
import stat
import tempfile
import time
import unittest

from daemon_rig import Daemon, skip_unless_possible, until

TOKEN = "0123456789abcdef"
SECRET = "the secret of another file"
ONE = "web1-20261123T101500Z-vm_paused"
CONNECTIONS_MAX, REQUEST_MAX_S = 16, 30  # of http_server.c
TWO = "a-b-20261123T101501Z-libvirt_io_error-1"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(connection, path="/", method="GET", **headers):
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    return answer, answer.read().decode(errors="replace")


class PageTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="vcpuscope-page.")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.incidents = self.folder / "data/incidents"
        self.incidents.mkdir(parents=True)
        self.incident(ONE, verdict="vm_paused", duration_ns=2_000_000_000, because="<script>alert(1)</script>\x1b[2J")
        self.incident(TWO, trigger="libvirt_io_error", vm='"><img src=x>')
        self.incident(f"{ONE}.part", report=SECRET)
        (self.folder / "secret").write_text(SECRET)

    def incident(self, name, report="<html>a report</html>", **members):
        folder = self.incidents / name
        folder.mkdir()
        (folder / "incident.json").write_text(json.dumps({"vm": "web1", **members}))
        (folder / "run.vcs").write_text(SECRET)
        if report:
            (folder / "report.html").write_text(report)
        return folder

    def start(self, settings):
        d = Daemon("", settings)
        self.addCleanup(d.clean)
        d.recordings = self.folder / "data"
        d.configure("")
        d.start()
        return d

    def unix(self):
        self.socket = self.folder / "page.sock"
        return self.start(f"page = listen:unix:{self.socket}")

    def tcp(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        token = self.folder / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        return self.start(f"page = listen:tcp:127.0.0.1:{self.port}\npage_token = {token}\n"
                          "page_hosts = host1.example, other.example")

    def page(self, path="/", **headers):
        if hasattr(self, "port"):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        else:
            connection = UnixConnection(self.socket)
        try:
            return get(connection, path, **headers)
        finally:
            connection.close()

    def test_list_and_report(self):
        self.unix()
        self.assertEqual(stat.S_IMODE(self.socket.stat().st_mode), 0o600)
        answer, text = self.page()
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.getheader("Content-Security-Policy"),
                         "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
                         "frame-ancestors 'none'")
        self.assertEqual(re.findall(r'href="(/incidents/[^"]*)"', text),
                         [f"/incidents/{TWO}/report.html", f"/incidents/{ONE}/report.html"], "the newest first")
        self.assertIn("2026-11-23 10:15:00 UTC", text)
        self.assertIn("2000 ms", text)
        for bad in ("<script>", "<img", "\x1b"):
            self.assertNotIn(bad, text)
        answer, text = self.page(f"/incidents/{ONE}/report.html")
        self.assertEqual((answer.status, text), (200, "<html>a report</html>"))
        self.assertTrue(answer.getheader("Content-Security-Policy").startswith("sandbox allow-scripts; default-src 'none'"))
        self.assertEqual(answer.getheader("X-Content-Type-Options"), "nosniff")
        self.assertEqual(self.page("/page.css")[0].getheader("Content-Type"), "text/css")

    def test_only_reports(self):
        self.unix()
        os.symlink(self.folder / "secret", self.incidents / f"{ONE}/link")
        linked = self.incident("c-20261123T101502Z-x", report=None)
        os.symlink(self.folder / "secret", linked / "report.html")
        waits = self.incident("d-20261123T101503Z-x", report=None)
        os.mkfifo(waits / "report.html")
        os.remove(waits / "incident.json")
        os.mkfifo(waits / "incident.json")
        os.symlink(self.incidents / ONE, self.incidents / "e-20261123T101504Z-x")
        for path in (f"/incidents/{ONE}/run.vcs", f"/incidents/{ONE}/incident.json", f"/incidents/{ONE}/link",
                     f"/incidents/{linked.name}/report.html", f"/incidents/{waits.name}/report.html",
                     "/incidents/e-20261123T101504Z-x/report.html", f"/incidents/{ONE}.part/report.html",
                     "/incidents/../../secret", "/incidents/%2e%2e/%2e%2e/secret", "//etc/passwd", "/../secret",
                     f"/incidents/{ONE}/../../../secret/report.html", "/incidents//report.html",
                     f"/incidents/{ONE}%00/report.html", f"/incidents/{ONE}/report.html/", "/metrics", "*", "/%",
                     f"/incidents/{'a' * 5000}/report.html", "/incidents/-20261123T101500Z-/report.html"):
            answer, text = self.page(path)
            self.assertIn(answer.status, (400, 404), path)
            self.assertNotIn(SECRET, text, path)
        answer, text = self.page()
        self.assertEqual(answer.status, 200)
        self.assertNotIn(SECRET, text)
        self.assertEqual(text.count("no report"), 2, text)

    def test_hosts(self):
        self.unix()
        for host, status in (("localhost", 200), ("LOCALHOST:8080", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200),
                             ("evil.example", 403), ("localhost.evil.example", 403), ("localhost:80@evil", 403), ("", 403),
                             ("127.0.0.1.evil", 403), ("[::1", 403), ("[::1]x", 403)):
            self.assertEqual(self.page(Host=host)[0].status, status, host)

    def test_token(self):
        self.tcp()

        def basic(text):
            return "Basic " + base64.b64encode(text.encode()).decode()

        for header, status in ((None, 401), (f"Bearer {TOKEN}", 200), (basic(f"me:{TOKEN}"), 200), (basic(f":{TOKEN}"), 200),
                               (basic(TOKEN), 401), (basic(f"{TOKEN}:"), 401), ("Basic !!!!", 401), ("Basic ", 401),
                               (f"Bearer {TOKEN}x", 401), (f"Bearer {TOKEN[:-1]}", 401), ("Bearer ", 401), (TOKEN, 401),
                               ("Basic " + "A" * 4000, 401)):
            answer, text = self.page(**({"Authorization": header} if header else {}))
            self.assertEqual(answer.status, status, header)
            self.assertEqual("vm_paused" in text, status == 200, header)
        right = {"Authorization": f"Bearer {TOKEN}"}
        self.assertEqual(self.page(Host="other.example:443", **right)[0].status, 200)
        self.assertEqual(self.page(Host="third.example", **right)[0].status, 403)
        self.assertIn("Basic", self.page()[0].getheader("WWW-Authenticate"))

    def test_many(self):
        self.unix()
        for i in range(1000):
            self.incident(f"many-20260101T{i:06d}Z-x")
        begin = time.monotonic()
        answer, text = self.page()
        self.assertLess(time.monotonic() - begin, 3)
        self.assertEqual(answer.status, 200)
        self.assertIn("The newest 200 of 1002", text)
        self.assertEqual(text.count("<a href"), 200)

    def test_hostile_clients(self):
        """Random bytes, and mutations of a right request, in any pieces: no answer has the secret, the daemon lives."""
        d = self.unix()
        rng = random.Random(5)
        right = f"GET /incidents/{ONE}/report.html HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YTpi\r\n\r\n".encode()
        parts = [b"GET ", b"/", b"..", b"%2e", b"incidents/", ONE.encode(), b"report.html", b"\r\n", b"Host: localhost",
                 b"Content-Length: 99999999999999999999", b"Transfer-Encoding: chunked", b"\0", b"\xff" * 9, b"a" * 40000]
        for _ in range(200):
            text = bytearray(right)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(text) + 1)
                text[at:at + rng.randrange(0, 8)] = rng.choice(parts) if rng.random() < 0.7 else rng.randbytes(3)
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(0.2)  # an incomplete request has no answer
                s.connect(str(self.socket))
                try:
                    s.sendall(text)
                    s.shutdown(socket.SHUT_WR)
                    got = s.recv(65536)
                except OSError:
                    got = b""
            self.assertNotIn(SECRET.encode(), got, text)
        silent = []
        for _ in range(40):
            s = socket.socket(socket.AF_UNIX)
            s.connect(str(self.socket))
            s.sendall(b"GET / HT")
            silent.append(s)
        self.assertEqual(d.ctl("list").returncode, 0, "the daemon goes on meanwhile")
        until("the page is served again", self.served, 60)
        for s in silent:
            s.close()

    def test_slow_requests(self):
        """A request that arrives byte by byte, as many times as there are connections: it ends after its time."""
        self.unix()
        slow, begin = [], time.monotonic()
        for _ in range(CONNECTIONS_MAX):
            s = socket.socket(socket.AF_UNIX)
            s.connect(str(self.socket))
            s.sendall(b"GET /")
            slow.append(s)

        def ended():
            for s in list(slow):
                try:
                    s.sendall(b"a")
                except OSError:
                    s.close()
                    slow.remove(s)
            time.sleep(1)
            return not slow

        until("the slow requests end", ended, REQUEST_MAX_S + 20)
        self.assertGreater(time.monotonic() - begin, REQUEST_MAX_S - 2)
        until("the page is served again", self.served, 20)

    def served(self):
        try:
            return self.page()[0].status == 200
        except (OSError, http.client.HTTPException):
            return False

    def test_wrong_configuration(self):
        token = self.folder / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        for settings, why in (("page = listen:tcp:127.0.0.1:1", "needs page_token"),
                              (f"page = listen:tcp:127.0.0.1:1\npage_token = {self.folder}/secret", "chmod 600"),
                              (f"page = listen:unix:{self.folder}/s\npage_token = {self.folder}/none", "No such file"),
                              (f"page = listen:tcp:0.0.0.0:1\npage_token = {token}", "cross a network unencrypted"),
                              ("page = /run/x", "want listen:unix:PATH or listen:tcp:HOST:PORT")):
            d = Daemon("", settings)
            self.addCleanup(d.clean)
            with self.assertRaisesRegex(AssertionError, why):
                d.start()
        (self.folder / "secret").write_text("short")
        (self.folder / "secret").chmod(0o600)
        d = Daemon("", f"page = listen:unix:{self.folder}/s\npage_token = {self.folder}/secret")
        self.addCleanup(d.clean)
        with self.assertRaisesRegex(AssertionError, "16 to 128 characters"):
            d.start()


if __name__ == "__main__":
    skip_unless_possible()
    unittest.main(verbosity=2)
