#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The commands of deploy/fleet/ship against stand-ins: a server that checks path, headers and body, and
programs that check their arguments. Real engines are not needed; what a real one does is not tested here."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHIP = SOURCE / "deploy/fleet/ship"
HOST, BOOT = "0" * 31 + "1", "0" * 31 + "2"
SECRET = "swordfish"


class Engine(http.server.BaseHTTPRequestHandler):
    requests, status = [], 200

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Engine.requests.append((self.path, dict(self.headers), body))
        self.send_response(Engine.status)
        self.end_headers()

    def log_message(self, *_):
        pass


class Stage:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="test_ship."))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        lines = (SOURCE / "tests/data/fleet/incident-2.jsonl").read_bytes()
        self.segment = self.folder / f"incidents-{HOST}-{BOOT}-{5:016x}.jsonl"
        self.segment.write_bytes(lines * 3)
        self.evidence = self.folder / f"evidence-{HOST}-{'ab' * 16}-{4:016x}.vcs"
        self.evidence.write_bytes(b"\0recording\n")
        (self.folder / "curl").write_text(f'header = "Authorization: Bearer {SECRET}"\n')
        self.programs = self.folder / "bin"
        self.programs.mkdir()

    def stand_in(self, name):
        """A program that writes its arguments, and ends with the exit code in a file."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {self.folder}/{name}.args\n"
                        f"exit $(cat {self.folder}/{name}.code 2>/dev/null || echo 0)\n")
        path.chmod(0o755)

    def arguments(self, name):
        return (self.folder / f"{name}.args").read_text().splitlines()

    def ship(self, command, file, **environment):
        return subprocess.run([SHIP / command, f"./{file.name}"], cwd=self.folder, capture_output=True,
                              env={"PATH": f"{self.programs}:{os.environ['PATH']}",
                                   "SHIP_CURL": str(self.folder / "curl"), **environment}, timeout=60)

    def posted(self, to):
        Engine.requests.clear()
        done = self.ship("http", self.segment, SHIP_TO=to, SHIP_URL=self.url)
        assert done.returncode == 0, done
        assert len(Engine.requests) == 1, Engine.requests
        path, headers, body = Engine.requests[0]
        assert headers["Authorization"] == f"Bearer {SECRET}", headers
        return path, headers, body

    def http(self):
        path, headers, body = self.posted("clickhouse")
        assert path == ("/?query=INSERT%20INTO%20vcpuscope.incidents%20FORMAT%20JSONEachRow"
                        f"&insert_deduplication_token={self.segment.name}"
                        "&input_format_skip_unknown_fields=1"), path
        assert body == self.segment.read_bytes()
        path, headers, body = self.posted("victorialogs")
        assert path == ("/insert/jsonline?_stream_fields=host_id,vm_uuid&_time_field=begin_realtime_ns"
                        "&_msg_field=schema"), path
        assert headers["Content-Type"] == "application/stream+json"
        assert body == self.segment.read_bytes()
        if shutil.which("jq"):
            path, headers, body = self.posted("otlp")
            assert path == "/v1/logs" and headers["Content-Type"] == "application/json"
            records = json.loads(body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
            assert len(records) == 3
            line = json.loads(records[0]["body"]["stringValue"])
            assert records[0]["timeUnixNano"] == str(line["begin_realtime_ns"]), records[0]

    def http_fails(self):
        """An engine that refuses, one that is down, and a setting that is wrong are not delivered."""
        Engine.status = 503
        assert self.ship("http", self.segment, SHIP_TO="clickhouse", SHIP_URL=self.url).returncode
        Engine.status = 200
        assert self.ship("http", self.segment, SHIP_TO="clickhouse", SHIP_URL="http://127.0.0.1:1").returncode
        wrong = self.ship("http", self.segment, SHIP_TO="elsewhere", SHIP_URL=self.url)
        assert wrong.returncode == 2 and b"SHIP_TO" in wrong.stderr, wrong

    def otlp_without_jq(self):
        """A segment that could not be translated is not delivered."""
        self.stand_in("jq")
        (self.folder / "jq.code").write_text("127")
        Engine.requests.clear()
        done = self.ship("http", self.segment, SHIP_TO="otlp", SHIP_URL=self.url)
        assert done.returncode and not Engine.requests, (done, Engine.requests)
        (self.programs / "jq").unlink()

    def http_hides(self):
        """The credentials are in no argument."""
        self.stand_in("curl")
        assert self.ship("http", self.segment, SHIP_TO="clickhouse", SHIP_URL=self.url).returncode == 0
        assert not any(SECRET in word for word in self.arguments("curl"))
        (self.programs / "curl").unlink()

    def kcat(self):
        self.stand_in("kcat")
        assert self.ship("kcat", self.segment, SHIP_KCAT="/x/kcat").returncode == 0
        words = self.arguments("kcat")
        assert words[:2] == ["-F", "/x/kcat"] and words[-2:] == ["-l", f"./{self.segment.name}"], words
        assert "vcpuscope.incidents" in words and "enable.idempotence=true" in words, words
        (self.folder / "kcat.code").write_text("1")
        assert self.ship("kcat", self.segment).returncode == 1

    def rclone(self):
        self.stand_in("rclone")
        for command in ("rclone", "kcat", "nats", "http"):  # recordings go to the storage in any case
            assert self.ship(command, self.evidence, SHIP_REMOTE="s3:b/v").returncode == 0
            assert self.arguments("rclone")[2:] == [
                "copyto", f"./{self.evidence.name}", f"s3:b/v/evidence/{HOST}/{'ab' * 16}.vcs"]
        assert self.ship("rclone", self.segment, SHIP_REMOTE="s3:b/v").returncode == 0
        words = self.arguments("rclone")
        assert words[2:5] == ["copy", "--immutable", f"./{self.segment.name}"], words
        assert words[5].startswith("s3:b/v/incidents/20"), words

    def end(self):
        self.server.shutdown()
        shutil.rmtree(self.folder)


if __name__ == "__main__":
    if not shutil.which("curl"):
        print("no curl")
        sys.exit(77)
    stage = Stage()
    try:
        stage.http()
        stage.http_fails()
        stage.otlp_without_jq()
        stage.http_hides()
        stage.kcat()
        stage.rclone()
    finally:
        stage.end()
