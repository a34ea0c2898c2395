# SPDX-License-Identifier: GPL-2.0-only
"""A program in a terminal of its own: what a person would see of it, by the few sequences that a
vt100's terminfo entry knows. A sequence that is not understood is an error."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

SEQUENCE = re.compile(rb"\x1b(?:\[([?0-9;]*)([A-Za-z@])|[()][0B]|[=>78MDE]|\$<[0-9]*>)")


class Screen:
    def __init__(self, args, columns=80, lines=24):
        self.master, slave = pty.openpty()
        self._size(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            os.execve(args[0], args, {**os.environ, "TERM": "vt100", "LC_ALL": "C.UTF-8"})
        self.slave = slave
        self.left = b""

    def _size(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.columns, self.lines = columns, lines
        self.cells = [[" "] * columns for _ in range(lines)]
        self.x = self.y = 0
        self.too_wide = False

    def resize(self, columns, lines):
        self._size(columns, lines)
        os.kill(self.pid, signal.SIGWINCH)

    def send(self, text):
        os.write(self.master, text.encode())

    def _put(self, char):
        if self.x >= self.columns:
            self.too_wide = True
            return
        self.cells[self.y][self.x] = char
        self.x += 1

    def _erase(self, from_, to):
        for i in range(max(from_, 0), min(to, self.columns * self.lines)):
            self.cells[i // self.columns][i % self.columns] = " "

    def _control(self, parameters, letter):
        numbers = [int(n or 0) for n in parameters.decode().lstrip("?").split(";")] if parameters else [0]
        n, at = max(numbers[0], 1), self.y * self.columns + self.x
        if letter in "mhlr":
            pass
        elif letter == "H":
            self.y = min(n, self.lines) - 1
            self.x = min(max((numbers + [1])[1], 1), self.columns) - 1
        elif letter == "J":
            self._erase(at if numbers[0] == 0 else 0, self.columns * self.lines)
        elif letter == "K":
            end = (self.y + 1) * self.columns
            self._erase(at if numbers[0] == 0 else self.y * self.columns,
                        at + 1 if numbers[0] == 1 else end)
        elif letter in "ABCD":
            self.x += {"C": n, "D": -n}.get(letter, 0)
            self.y += {"B": n, "A": -n}.get(letter, 0)
        else:
            raise ValueError(f"sequence {parameters} {letter}")

    def _feed(self, data):
        data, self.left = self.left + data, b""
        at = 0
        while at < len(data):
            byte = data[at:at + 1]
            if byte == b"\x1b":
                match = SEQUENCE.match(data, at)
                if not match:
                    if len(data) - at < 12:
                        self.left = data[at:]
                        return
                    raise ValueError(f"sequence {data[at:at + 12]}")
                if match.group(2):
                    self._control(match.group(1), match.group(2).decode())
                at = match.end()
                continue
            if byte == b"\r":
                self.x = 0
            elif byte == b"\n":
                self.y = min(self.y + 1, self.lines - 1)
            elif byte == b"\b":
                self.x = max(self.x - 1, 0)
            elif byte >= b" ":
                length = 1 if byte < b"\xc0" else 2 if byte < b"\xe0" else 3 if byte < b"\xf0" else 4
                if at + length > len(data):
                    self.left = data[at:]
                    return
                self._put(data[at:at + length].decode("utf-8", errors="replace"))
                at += length
                continue
            at += 1

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)

    def read(self, seconds):
        """Takes what comes for so long. False: the program has closed the terminal."""
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.master], [], [], max(end - time.monotonic(), 0))
            if not ready:
                return True
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return False
            if not data:
                return False
            self._feed(data)

    def wait_for(self, wanted, seconds=20):
        end = time.monotonic() + seconds
        while not re.search(wanted, self.text()):
            if time.monotonic() > end:
                raise AssertionError(f"never saw {wanted!r}; the screen is\n{self.text()}")
            self.read(0.1)

    def leave(self, seconds=20):
        """Waits for the program's end; returns its status. The terminal must be as it was."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                if termios.tcgetattr(self.slave) != self.before:
                    raise AssertionError("it left the terminal in another state")
                return status
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("it does not end")

