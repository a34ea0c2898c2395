# SPDX-License-Identifier: GPL-2.0-only
"""The carriers of deploy/fleet/ship for tests. Kafka is librdkafka's mock cluster (real protocol, its log in
memory), NATS is nats-server with JetStream, S3 is s3rver from npm; all of them run on this machine. The HTTP
engine is a stand-in, which stores each body."""
import fcntl
import http.server
import json
import os
import pathlib
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SHIP = HERE.parents[1] / "deploy/fleet/ship"
HOST = "0" * 31 + "1"  # of outbox-writer.c


class Missing(Exception):
    """What this carrier needs is not installed."""


def need(program):
    if not shutil.which(program):
        raise Missing(f"{program} is not installed (deploy/packages.txt, part tests)")
    return program


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process, seconds=60):
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError as e:
            if time.monotonic() > end or process.poll() is not None:
                raise AssertionError(f"{process.args[0]} does not listen on {port}: {e}") from e
            time.sleep(0.05)


class Carrier:
    """folder: its own, readable by the shipper's user. env: of the command. lines(): what the target has."""
    command = None

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        self.env = {}
        self.process = None

    def down(self):
        self.process.kill()
        self.process.wait()

    def up(self):
        raise NotImplementedError

    def lines(self):
        raise NotImplementedError

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Http(Carrier):
    """A stand-in for ClickHouse."""
    command = "http"

    def __init__(self, folder):
        super().__init__(folder)
        need("curl")
        self.bodies, self.server = [], None
        self.env = {"SHIP_TO": "clickhouse", "SHIP_URL": f"http://127.0.0.1:{self.port}"}
        self.up()

    def up(self):
        bodies = self.bodies

        class Engine(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                ours = "INSERT%20INTO%20vcpuscope.incidents%20FORMAT%20JSONEachRow" in self.path
                if ours:
                    bodies.append(body)
                self.send_response(200 if ours else 400)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Engine)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def down(self):
        self.server.shutdown()
        self.server.server_close()

    def lines(self):
        return b"".join(self.bodies).splitlines()

    def close(self):
        self.down()


# The cluster lives in a process of its own: it takes "down" and "up", and goes with its input.
MOCK = """
import ctypes, sys
k = ctypes.CDLL("librdkafka.so.1")
k.rd_kafka_conf_new.restype = k.rd_kafka_new.restype = k.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
k.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
why = ctypes.create_string_buffer(512)
handle = k.rd_kafka_new(0, ctypes.c_void_p(k.rd_kafka_conf_new()), why, len(why))
cluster = ctypes.c_void_p(k.rd_kafka_mock_cluster_new(ctypes.c_void_p(handle), 3))
print(k.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
for line in sys.stdin:
    for broker in (1, 2, 3):
        getattr(k, "rd_kafka_mock_broker_set_" + line.strip())(cluster, broker)
    print("done", flush=True)
"""


class Kafka(Carrier):
    command = "kcat"
    topic = "vcpuscope.incidents"

    def __init__(self, folder):
        super().__init__(folder)
        need("kcat")
        self.process = subprocess.Popen([sys.executable, "-c", MOCK], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        brokers = self.process.stdout.readline().strip()
        if not brokers:
            raise Missing("librdkafka.so.1 has no mock cluster")
        config = self.folder / "kcat.conf"
        config.write_text(f"bootstrap.servers={brokers}\n")
        config.chmod(0o644)
        self.env = {"SHIP_KCAT": str(config)}
        # It reads all the time: the mock keeps 5 MiB of a partition.
        self.taken = open(self.folder / "taken", "wb")
        self.read = ["kcat", "-F", str(config), "-C", "-q", "-o", "beginning", "-t", self.topic]
        self.reader = None
        self.reader_start()

    def reader_start(self):
        self.taken.write(b"\n")  # the one before may have been killed within a line
        self.taken.flush()
        self.reader = subprocess.Popen([*self.read, "-u", "-X", "topic.metadata.refresh.interval.ms=500",
                                        "-X", "topic.auto.offset.reset=earliest"],
                                       stdout=self.taken, stderr=subprocess.DEVNULL)

    def reader_end(self):
        self.reader.kill()
        self.reader.wait()

    def tell(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def down(self):
        self.tell("down")
        self.reader_end()  # kcat ends when all brokers are down

    def up(self):
        self.tell("up")
        self.reader_start()  # from the beginning, again

    def lines(self):
        done = subprocess.run([*self.read, "-e"], capture_output=True, timeout=120, check=True)
        # A reader that was killed may have cut its last line.
        taken = (self.folder / "taken").read_bytes().splitlines()
        return [line for line in taken if line[:1] == b"{" and line[-1:] == b"}"] + done.stdout.splitlines()

    def close(self):
        self.reader_end()
        self.taken.close()
        self.process.stdin.close()
        self.process.stdout.close()
        super().close()


class Nats(Carrier):
    command = "nats"

    def __init__(self, folder):
        super().__init__(folder)
        need("nats-server")
        secret = self.folder / "ship.nats"
        secret.write_text('{"user": "vcpuscope", "pass": "swordfish"}')
        secret.chmod(0o644)
        self.config = self.folder / "server.conf"
        self.config.write_text(f"listen: 127.0.0.1:{self.port}\njetstream: {{store_dir: {self.folder}/store}}\n"
                               "authorization: {user: vcpuscope, password: swordfish}\n")
        self.env = {"SHIP_URL": f"nats://127.0.0.1:{self.port}", "SHIP_NATS": str(secret)}
        self.up()
        # The stream keeps a line that comes twice within a second only: the window is the operator's.
        self.ask("STREAM.CREATE.vcpuscope", {"name": "vcpuscope", "subjects": ["vcpuscope.>"], "storage": "file",
                                             "duplicate_window": 1_000_000_000})

    def up(self):
        self.process = subprocess.Popen(["nats-server", "-c", self.config], stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)

    def connection(self):
        """The command's own connection; what it publishes is read with the requests below."""
        ship = runpy.run_path(str(SHIP / "nats"))
        return ship["Connection"](self.env["SHIP_URL"], json.loads((self.folder / "ship.nats").read_text()))

    def ask(self, what, request):
        c = self.connection()
        try:
            body = json.dumps(request).encode()
            c.socket.sendall(b"PUB $JS.API.%s _INBOX.ship %d\r\n%s\r\n" % (what.encode(), len(body), body))
            answer = json.loads(self.message(c))
            assert "error" not in answer, answer
            return answer
        finally:
            c.socket.close()

    @staticmethod
    def message(c):
        words = c.line().split(b" ")
        while words[0] not in (b"MSG", b"HMSG"):
            if words[0] == b"PING":
                c.socket.sendall(b"PONG\r\n")
            words = c.line().split(b" ")
        length, header = int(words[-1]), int(words[-2]) if words[0] == b"HMSG" else 0
        # In small pieces: what is left is copied for each message, and the server closes slow connections.
        while len(c.buffer) < length + 2:
            c.buffer += c.socket.recv(65536)
        body, c.buffer = c.buffer[header:length], c.buffer[length + 2:]
        return body

    def lines(self):
        n = self.ask("STREAM.INFO.vcpuscope", {})["state"]["messages"]
        c = self.connection()
        try:
            c.socket.sendall(b"SUB deliver 2\r\n")
            body = json.dumps({"stream_name": "vcpuscope", "config": {
                "deliver_subject": "deliver", "ack_policy": "none", "deliver_policy": "all"}}).encode()
            c.socket.sendall(b"PUB $JS.API.CONSUMER.CREATE.vcpuscope %d\r\n%s\r\n" % (len(body), body))
            return [self.message(c) for _ in range(n)]
        finally:
            c.socket.close()


class S3(Carrier):
    command = "rclone"

    def __init__(self, folder, build):
        super().__init__(folder)
        need("rclone")
        need("npm")
        self.modules = installed(build)
        config = self.folder / "rclone.conf"
        config.write_text("[fleet]\ntype = s3\nprovider = Other\naccess_key_id = S3RVER\nsecret_access_key = S3RVER\n"
                          f"endpoint = http://127.0.0.1:{self.port}\nforce_path_style = true\n")
        config.chmod(0o644)
        (self.folder / "s3/bucket").mkdir(parents=True)
        self.env = {"SHIP_RCLONE": str(config), "SHIP_REMOTE": "fleet:bucket/vcpuscope"}
        self.process = subprocess.Popen(["node", self.modules / "s3rver/bin/s3rver.js", "-d", self.folder / "s3", "-a",
                                         "127.0.0.1", "-p", str(self.port), "--silent"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)

    def down(self):
        """A server that is away: what a killed s3rver leaves of an object is its own bug."""
        self.process.send_signal(signal.SIGSTOP)

    def up(self):
        self.process.send_signal(signal.SIGCONT)

    def lines(self):
        rclone = ["rclone", "--config", self.env["SHIP_RCLONE"]]
        to = self.folder / "got"
        subprocess.run([*rclone, "copy", "--fast-list", self.env["SHIP_REMOTE"], to], check=True, timeout=300,
                       env={"PATH": os.environ["PATH"], "HOME": str(self.folder)})
        return b"".join(p.read_bytes() for p in to.rglob("incidents-*.jsonl")).splitlines()


def installed(build):
    """Returns s3rver's node_modules, after npm has installed it below the build folder."""
    folder = pathlib.Path(build) / "fleet-engines/s3rver"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (HERE / "s3rver/package-lock.json").read_text()
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "installed"
        if not stamp.exists() or stamp.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / "s3rver" / name, folder / name)
            done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder,
                                  capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise Missing(f"npm ci of s3rver failed: {done.stderr[-300:]}")
            stamp.write_text(wanted)
    return folder / "node_modules"
