#!/usr/bin/python3
"""Prints a native trace.     native_print.py NAME.clct

Written from docs/formats.md alone, it shares nothing with the program under test. One line each:

    clock RESOLUTION OFFSET LENGTH REALTIME       (- if not known)
    location ID KIND GROUP EVENTS NAME
    process LOCATION
    communicator ID GLOBAL_RANKS MEMBERS NAME
    region ID NAME
    offset LOCATION TIME OFFSET
    event LOCATION TIME TYPE FIELDS...

Exit status: 0 printed, 2 the trace cannot be read.
"""

import struct
import sys
import zlib
from pathlib import Path


class Bytes:
    """Takes values off the front of a byte string."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise ValueError("the bytes end too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self):
        return self.take(1)[0]

    def fixed(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def leb(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def end(self):
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes are left over")

    # The encoding of definitions.

    def number(self):
        first = self.byte()
        return first if first < 251 else self.fixed("HIQ"[first - 251])[0]

    def text(self):
        return self.take(self.number()).decode()

    def option(self, read):
        return read() if self.byte() else None

    def list(self, read):
        return [read() for _ in range(self.number())]


def checked(data, checksum, what):
    if zlib.crc32(data) != checksum:
        raise ValueError("wrong checksum of " + what)


def definitions(path):
    data = path.read_bytes()
    whole = Bytes(data)
    magic, version, length = whole.fixed("8sIQ")
    assert magic == b"CLCDEFIN" and version in (1, 2, 3, 4, 5), "not a definition file of version 1 to 5"
    d = Bytes(whole.take(length))
    checked(data[:-4], whole.fixed("I")[0], "definitions")
    whole.end()
    d.text(), d.text()  # creator, description
    clock = d.number(), d.number(), d.number(), d.option(d.number)
    print("clock", *("-" if value is None else value for value in clock))

    def kind():
        variant = d.number()
        return 256 + d.byte() if variant == 3 else variant

    for number, name, kind_, group, events in d.list(lambda: (d.number(), d.text(), kind(), d.number(), d.number())):
        print("location", number, kind_, group, events, name)
    d.list(lambda: (d.number(), d.text(), d.byte(), d.option(d.number), d.option(d.number)))  # groups
    d.list(lambda: (d.number(), d.text(), d.text(), d.option(d.number)))  # system tree
    for process in d.list(d.number):
        print("process", process)

    def members():
        variant = d.number()
        lists = [d.list(d.number) for _ in range({0: 1, 2: 2}.get(variant, 0))]
        return f"{variant}{lists}"

    for number, name, who, flag in d.list(lambda: (d.number(), d.text(), members(), d.byte())):
        print("communicator", number, flag, who.replace(" ", ""), name)
    for number, name in d.list(lambda: (d.number(), d.text())):
        print("region", number, name)
    if version > 1:
        for number, name, comm in d.list(lambda: (d.number(), d.text(), d.number())):
            print("window", number, comm, name)
        for number, ranks in d.list(lambda: (d.number(), d.list(d.number))):
            print("group", number, *ranks)
    if version > 2:
        for number in d.list(d.number):
            print("thread_barrier", number)
    kinds = ["callsite", "stream_reference"] if version > 3 else []
    kinds += ["event_reference"] if version > 4 else []
    for what in kinds:
        for number in d.list(d.number):
            print(what, number)
    d.end()
    return clock[0]


MESSAGE = "nnnn"
COLLECTIVE = "bnnnn"
SINCE_2 = {37: "", 38: "bnnnnn", 39: "nnn", 40: "bnnn", 41: "bnnn", 42: "bnnn", 43: "bnnn", 46: "nnnn", 47: "nnnn", 48: "bnnnnn"}  # fmt: skip
SINCE_3 = {53: "nn", 54: "n", 55: "n", 56: "n", 57: "nnn", 58: "nnn", 59: "nnn", 60: "nnn", 61: "nnn", 62: "nn", 63: "nn", 64: "nn", 65: "nn"}  # fmt: skip
SINCE_4 = {1: "nn", 2: "nn", 34: "nn", 49: "nn"}
SINCE_5 = {3: "nbnn", 4: "nbnn"}
FIELDS = {12: "n", 13: "n", 14: MESSAGE, 15: MESSAGE + "n", 16: "n", 17: "n", 18: MESSAGE, 19: MESSAGE + "n",
          20: "n", 21: "n", 22: "", 23: COLLECTIVE, 85: "n", 86: COLLECTIVE + "n"}  # fmt: skip


def event_file(path, resolution):
    data = path.read_bytes()
    header = Bytes(data[:64])
    magic, version, flags, location, ticks, count, end, offsets, offset_sum, reserved = header.fixed("8sIIQQQQIII")
    assert (magic, flags, reserved) == (b"CLCEVENT", 0, 0) and version in (1, 2, 3, 4, 5), (
        "not an event file of version 1 to 5"
    )
    known = FIELDS | (SINCE_2 if version > 1 else {}) | (SINCE_3 if version > 2 else {})
    known |= (SINCE_4 if version > 3 else {}) | (SINCE_5 if version > 4 else {})
    assert (str(location), ticks) == (path.stem, resolution), "of another location or trace"
    checked(data[:60], header.fixed("I")[0], "a header")
    checked(data[end:], offset_sum, "clock offsets")
    rest = Bytes(data[end:])
    for _ in range(offsets):
        time, offset, _deviation = rest.fixed("Qqd")
        print("offset", location, time, offset)
    rest.end()
    blocks, seen, last = Bytes(data[64:end]), 0, 0
    while blocks.at < len(blocks.data):
        start = blocks.at
        length, events = blocks.fixed("II")
        block = Bytes(blocks.take(length))
        checked(blocks.data[start : blocks.at], blocks.fixed("I")[0], "a block")
        time = 0
        for _ in range(events):
            time += block.leb()
            assert time >= last, "time runs backwards"
            last = time
            kind = block.byte()
            if kind == 10:
                fields = [(time + block.leb()) % 2**64]
            else:
                fields = [block.leb() if field == "n" else block.byte() for field in known.get(kind, "")]
            print("event", location, time, kind, *fields)
        block.end()
        seen += events
    assert seen == count, f"{seen} events instead of {count}"


def main():
    try:
        trace = Path(sys.argv[1])
        resolution = definitions(trace / "definitions.clcd")
        for path in sorted((trace / "events").glob("*.clce"), key=lambda path: int(path.stem)):
            event_file(path, resolution)
    except (OSError, ValueError, AssertionError, IndexError, struct.error) as error:
        print(f"native_print.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
