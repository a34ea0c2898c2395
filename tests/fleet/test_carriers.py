#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Shipping to real servers (carriers.py) through kill -9 of the outbox's writer and of the shipper, a target that
is down, and a full disk: the distinct lines at the target and the losses that were counted are what was written.

The writer is outbox-writer or, with --daemon, the daemon, whose VMs are stopped all the time (writers.py). All
carriers at once. VCPUSCOPE_TEST_FULL=1: 200 kills of each, 60 s down, and S3 (whose server comes from npm)."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import carriers
import writers

FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
KILLS, DOWN_S, DISK_BYTES = (200, 60, 2 << 20) if FULL else (10, 3, 1 << 20)
USER = writers.USER


class Round:
    def __init__(self, build, folder, carrier, writer):
        self.carrier, self.writer, self.kills = carrier, writer, 0
        self.random = random.Random(carrier.command)
        self.outbox = folder / "outbox"
        self.outbox.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0755", "none", self.outbox]
        self.mounted = not os.geteuid() and not subprocess.run(mount, check=False).returncode
        config = folder / "vcpuscope.conf"
        config.write_text(f"[daemon]\ndirectory = {folder}\nship = {carriers.SHIP / carrier.command}\n"
                          f"ship_user = {USER}\nship_timeout = 15s\n{writer.settings(folder)}")
        writer.prepare(folder, config)
        self.ship_words = [build / "host-collector/vcpuscope", "ship", "--config", config]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **carrier.env}

    def shipper(self):
        return subprocess.Popen(self.ship_words, env=self.environment, cwd="/", stderr=subprocess.DEVNULL)

    def kill_round(self, longest_s):
        """A writer and a shipper, which are killed at any time."""
        writer, shipper = self.writer.start(), self.shipper()
        time.sleep(self.random.uniform(0.01, longest_s + self.writer.START_S))
        for p in self.random.sample([writer, shipper], 2):
            p.send_signal(signal.SIGKILL)
            time.sleep(self.random.uniform(0, 0.02))
        shipper.wait()
        self.writer.killed(writer)
        self.kills += 1

    def drain(self, seconds=300):
        """Losses are reported, all segments delivered."""
        end = time.monotonic() + seconds
        for _ in range(2):  # the second delivers the report of losses that became known in the first
            self.writer.complete()
            while True:
                done = subprocess.run([*self.ship_words, "--once"], env=self.environment, cwd="/",
                                      capture_output=True, timeout=seconds)
                if done.returncode == 0:
                    break
                assert time.monotonic() < end, done.stderr[-500:]
                time.sleep(0.2)

    def fill_disk(self):
        """More than the disk holds while the target is down, and then more."""
        if self.mounted:
            self.carrier.down()
            self.writer.fill(2 * DISK_BYTES)
            self.kill_round(0.3)
            self.carrier.up()
            self.drain()
            self.writer.write_few()

    def run(self):
        for kill in range(KILLS):
            if kill == KILLS // 2:
                self.carrier.down()
                end = time.monotonic() + DOWN_S
                while time.monotonic() < end:
                    self.kill_round(1.5)
                self.carrier.up()
            # Some live long enough to deliver.
            self.kill_round(0.3 if kill % 3 else 2)
        self.fill_disk()
        self.drain()
        return self.check()

    def check(self):
        keys, losses, twice = set(), {}, 0
        for text in self.carrier.lines():
            line = json.loads(text)  # a damaged line is an error
            loss = self.writer.loss(line)
            if loss:
                assert losses.setdefault(loss[0], loss[1]) == loss[1], line
            else:
                key = self.writer.key(line)
                twice += key in keys
                keys.add(key)
        said, lost = self.writer.said(), sum(losses.values())
        text = (f"{self.carrier.command}: {self.kills} kills, {said} lines said, {len(keys)} distinct "
                f"at the target, {twice} twice, {lost} lost and counted in {len(losses)} reports")
        print(text, flush=True)
        # A line that was in a file but not said yet is one more for each kill at most.
        assert said <= len(keys) + lost <= said + self.kills, text
        assert said > self.kills, "hardly a line was written"
        assert lost > 0 or not self.mounted, "the disk was not full"

    def close(self):
        if self.mounted:
            subprocess.run(["umount", "-l", self.outbox], check=True)


def carrier_run(build, make, make_writer):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="test_carriers."))
    folder.chmod(0o755)
    carrier = writer = round_ = None
    try:
        target = folder / "target"
        target.mkdir()
        carrier = make(target)
        writer = make_writer(build)
        round_ = Round(build, folder, carrier, writer)
        round_.run()
    finally:
        if writer:
            writer.close()
        if round_:
            round_.close()
        if carrier:
            carrier.close()
        shutil.rmtree(folder, ignore_errors=True)


def nats_refuses(folder):
    """A wrong password, or a subject that no stream takes: later, and no secret is printed."""
    server = carriers.Nats(folder)
    try:
        segment = folder / f"incidents-{carriers.HOST}-{carriers.HOST}-{1:016x}.jsonl"
        segment.write_text("{}\n")
        wrong = folder / "wrong"
        wrong.write_text('{"user": "vcpuscope", "pass": "sesame"}')
        for settings in ({"SHIP_SUBJECT": "elsewhere"}, {"SHIP_NATS": str(wrong)},
                         {"SHIP_URL": "nats://127.0.0.1:1"}):
            done = subprocess.run([carriers.SHIP / "nats", segment], capture_output=True, timeout=60,
                                  env={"PATH": os.environ["PATH"], **server.env, **settings})
            assert done.returncode == 1 and done.stderr, (settings, done)
            assert b"sesame" not in done.stderr and b"swordfish" not in done.stderr, done
        assert not server.lines()
        done = subprocess.run([carriers.SHIP / "nats", segment], timeout=60,
                              env={"PATH": os.environ["PATH"], **server.env})
        assert done.returncode == 0 and server.lines() == [b"{}"]
    finally:
        server.close()


def refusals():
    with tempfile.TemporaryDirectory(prefix="test_carriers.") as folder:
        nats_refuses(pathlib.Path(folder))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", required=True, type=pathlib.Path)
    p.add_argument("--daemon", action="store_true", help="the writer is the daemon, which needs root")
    p.add_argument("only", nargs="*", help="http, kcat, nats, rclone")
    a = p.parse_args()
    build = a.build.resolve()
    if a.daemon and os.geteuid():
        print("skipped: the daemon captures the host's events, which needs root")
        return 77
    if not os.geteuid() and not os.environ.get("CARRIERS_MOUNTS"):  # mounts of its own, which go with it
        os.environ["CARRIERS_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    all_ = [carriers.Http, carriers.Kafka, carriers.Nats]
    if FULL or "rclone" in a.only:
        all_.append(lambda folder: carriers.S3(folder, build))
    names = ["http", "kcat", "nats", "rclone"]
    make_writer = writers.Daemon if a.daemon else writers.Numbers
    missing = 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        rounds = [pool.submit(carrier_run, build, make, make_writer) for name, make in zip(names, all_)
                  if not a.only or name in a.only]
        if not a.daemon and (not a.only or "nats" in a.only):
            rounds.append(pool.submit(refusals))
        for r in rounds:
            try:
                r.result()
            except carriers.Missing as e:
                print(f"left out: {e}")
                missing += 1
    return 77 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
