#!/usr/bin/env python3
"""Writes options of trace.dat files, as `trace-cmd record -A` writes them about a guest and its host. The
events in the files are trace-cmd's. The options are generated, because a real pair needs a guest in which
trace-cmd runs. Also writes the files without events with which the fuzzer starts:

  dat_file.py FOLDER
"""
import struct
import sys

BUFFER, TRACECLOCK, CPUCOUNT, TRACEID, TIME_SHIFT, GUEST, TSC2NSEC = 3, 4, 8, 11, 12, 13, 14
INTERPOLATE = 1


def trace_id(n):
    return TRACEID, struct.pack("<Q", n)


def guest(name, number, tids):
    data = name.encode() + b"\0" + struct.pack("<QI", number, len(tids))
    return GUEST, data + b"".join(struct.pack("<Ii", cpu, tid) for cpu, tid in enumerate(tids))


def time_shift(peer, flags, cpus, scaling=1, fraction=0):
    """cpus: of each CPU its samples, (time, offset)."""
    data = struct.pack("<QII", peer, flags, len(cpus))
    for samples in cpus:
        n = len(samples)
        data += struct.pack(f"<I{n}Q{n}q{n}q", n, *(t for t, _ in samples), *(o for _, o in samples),
                            *[scaling] * n)
    return TIME_SHIFT, data + b"".join(struct.pack("<q", fraction) * len(s) for s in cpus)


def section(options):
    body = b"".join(struct.pack("<HI", number, len(data)) + data for number, data in options)
    body += struct.pack("<HIQ", 0, 8, 0)
    return struct.pack("<HHIQ", 0, 0, 0, len(body)) + body


def options_place(data):
    """Where the header of version 7 says where the options begin."""
    assert data[:12] == b"\x17\x08\x44tracing7\0" and data[12] == 0, "not a little-endian file of version 7"
    at = 12 + 6
    for _ in range(2):
        at = data.index(b"\0", at) + 1
    return at


def options_of(data):
    found = []
    at, = struct.unpack_from("<Q", data, options_place(data))
    while at:
        number, flags, _, _ = struct.unpack_from("<HHIQ", data, at)
        assert number == 0 and flags == 0
        at += 16
        while True:
            number, size = struct.unpack_from("<HI", data, at)
            value = data[at + 6:at + 6 + size]
            at += 6 + size
            if not number:
                at, = struct.unpack("<Q", value)
                break
            found.append((number, value))
    return found


def unnamed(number, data):
    """The option of a buffer instance as that of the main buffer."""
    if number == BUFFER:
        data = data[:8] + b"\0" + data[data.index(b"\0", 8) + 1:]
    return number, data


def rewrite(source, target, added, drop=(TRACEID, TIME_SHIFT, GUEST), edit=lambda *o: o):
    """Copies a file of version 7 with other options: a new section of all of them at its end."""
    with open(source, "rb") as f:
        data = bytearray(f.read())
    kept = [edit(number, value) for number, value in options_of(data) if number not in drop]
    struct.pack_into("<Q", data, options_place(data), len(data))
    with open(target, "wb") as f:
        f.write(data + section(kept + list(added)))


def empty_v7(options):
    begin = b"\x17\x08\x44tracing7\0" + struct.pack("<BBI", 0, 8, 4096) + b"none\0\0"
    return begin + struct.pack("<Q", len(begin) + 8) + section(options)


def empty_v6(options):
    parts = b"header_page\0" + struct.pack("<Q", 0) + b"header_event\0" + struct.pack("<Q", 0)
    parts += struct.pack("<IIIIQ", 0, 0, 0, 0, 0) + struct.pack("<I", 2) + b"options  \0"
    parts += b"".join(struct.pack("<HI", number, len(data)) + data for number, data in options)
    return b"\x17\x08\x44tracing6\0" + struct.pack("<BBI", 0, 8, 4096) + parts + struct.pack("<H", 0)


def main():
    host = [(TRACECLOCK, b"local [x86-tsc] mono\0"), trace_id(0x11), guest("web1", 0x22, [101, 102]),
            guest("web2", 0x33, [-1]), (TSC2NSEC, struct.pack("<IIQ", 1 << 20, 22, 0))]
    shift = time_shift(0x11, INTERPOLATE, [[(100, -5), (900, 7)], [(100, -6), (500, 0), (900, 9)]])
    buffer = BUFFER, struct.pack("<Q", 0) + b"\0mono\0" + struct.pack("<II", 4096, 0)
    for name, make, options in ("host.v7", empty_v7, host), ("host.v6", empty_v6, host), \
            ("guest.v7", empty_v7, [buffer, (CPUCOUNT, struct.pack("<I", 2)), trace_id(0x22), shift]), \
            ("guest.v6", empty_v6, [trace_id(0x22), shift]):
        with open(f"{sys.argv[1]}/{name}", "wb") as f:
            f.write(make(options))


if __name__ == "__main__":
    main()
