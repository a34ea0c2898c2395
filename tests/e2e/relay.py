# SPDX-License-Identifier: GPL-2.0-only
"""Forwards the bytes between an agent's socket and a collector, and damages the guest's stream.

It knows only as much of proto/frame.h as it needs to find the frames. Bytes that it inserts between frames
must not cost the collector any frame. A frame that it damages must be the only one that is lost.
"""
import os
import socket
import struct
import threading

HEADER = struct.Struct("<4sBBHIIQIII")  # proto/frame.h
MAGIC = b"VCSF"
FRAME_BATCH = 2


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def header_with(frame, **fields):
    """The frame with header fields replaced (magic, version, kind, flags, payload_bytes, raw_bytes)
    and the header's own CRC made right again."""
    names = ("magic", "version", "kind", "flags", "payload_bytes", "raw_bytes")
    header = list(HEADER.unpack_from(frame))
    for name, value in fields.items():
        header[names.index(name)] = value
    packed = HEADER.pack(*header)[:-4]
    return packed + struct.pack("<I", crc32c(packed)) + frame[HEADER.size:]


class Relay:
    """Serves one collector after another on `path`, each joined to a fresh connection to `agent`."""

    def __init__(self, path, agent):
        self.path, self._agent = path, agent
        self._lock = threading.Lock()
        self._spoil = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self.frames = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._listener.close()
        if os.path.exists(self.path):
            os.unlink(self.path)

    def spoil_next(self, spoil, timeout_s=10):
        """Applies spoil(frame) -> bytes to the next batch that passes and waits for it."""
        done = threading.Event()
        with self._lock:
            self._spoil = (spoil, done)
        if not done.wait(timeout_s):
            raise TimeoutError("no batch passed the relay")

    def _serve(self):
        while True:
            try:
                collector, _ = self._listener.accept()
            except OSError:
                return
            with collector, socket.socket(socket.AF_UNIX) as agent:
                agent.connect(self._agent)
                upward = threading.Thread(target=self._copy, args=(collector, agent), daemon=True)
                upward.start()
                self._forward(agent, collector)
                for end in (agent, collector):
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
                upward.join()

    @staticmethod
    def _copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        try:
            source.shutdown(socket.SHUT_RDWR)
            target.shutdown(socket.SHUT_RDWR)  # a collector that left: leave the agent, too
        except OSError:
            pass

    def _forward(self, agent, collector):
        """Guest to host, frame by frame."""
        pending = bytearray()
        try:
            while data := agent.recv(65536):
                pending += data
                while (frame := self._cut(pending)) is not None:
                    collector.sendall(self._spoilt(frame))
        except OSError:
            pass

    @staticmethod
    def _cut(pending):
        """Takes one frame off, or bytes that are none (an agent's first bytes may be half a frame);
        None if more must come first."""
        start = pending.find(MAGIC)
        if start > 0:
            size = start
        elif start < 0:
            size = max(len(pending) - len(MAGIC) + 1, 0)
        elif len(pending) < HEADER.size:
            return None
        else:
            size = HEADER.size + HEADER.unpack_from(pending)[4]
        if not size or len(pending) < size:
            return None
        taken = bytes(pending[:size])
        del pending[:size]
        return taken

    def _spoilt(self, frame):
        self.frames += 1
        with self._lock:
            if not self._spoil or len(frame) < HEADER.size or frame[5] != FRAME_BATCH:
                return frame
            spoil, done = self._spoil
            self._spoil = None
        spoilt = spoil(frame)
        done.set()
        return spoilt
