#!/usr/bin/python3
"""Do OTF2 archives differ in nothing but time?     compare_otf2.py IN.otf2 OUT.otf2...

Judged by otf2-print and by the Python bindings of libotf2 (Debian: otf2-tools, python3-otf2), which know nothing of
the program under test. Every OUT is meant to be a corrected IN, which is read once for all of them:

- the same locations, and in each the same events in the same order with the same fields and attributes;
- the same definitions, except ClockProperties; the same id mapping tables;
- no clock offsets left that would make a reader correct OUT a second time;
- times that do not decrease within a location of OUT, and lie within OUT's ClockProperties.

Where the bindings refuse IN (EZTrace writes group ids twice), otf2-print alone judges, and says so.
Exit status: 0 all the same, 1 different (the first differences are printed), 2 an archive cannot be read.
"""

import gc
import os
import re
import sys
from collections import defaultdict
from contextlib import contextmanager
from itertools import zip_longest

import otf2_text

# Written anew by whoever writes an archive; they say nothing about its contents.
ANCHOR_NOT_COMPARED = ("Version", "Trace identifier")
SHOWN = 5


class Differences(list):
    """What differs, in words; remembers how much more there was than it shows."""

    def add(self, where, one, other):
        self.append(f"{where}:\n  in:  {one}\n  out: {other}")


def compare_lists(differences, where, one, other):
    for position, (a, b) in enumerate(zip_longest(one, other), 1):
        if a != b:
            differences.add(f"{where}, entry {position} of {len(one)}/{len(other)}", a, b)
            return


def definitions(anchor):
    """The lines of otf2-print -G and -I that must not change, and (start, length) of the clock properties."""
    lines, span = [], None
    for line in otf2_text.run("-G", "--silent", "--", anchor):
        clock = re.match(r"CLOCK_PROPERTIES.*Global Offset: (\d+), Length: (\d+)", line)
        if clock:
            span = int(clock[1]), int(clock[2])
            line = re.sub(r"Global Offset.*", "...", line)  # the resolution has to stay
        lines.append(line)
    for line in otf2_text.run("-I", "--", anchor):
        if not line.startswith(ANCHOR_NOT_COMPARED):
            lines.append(line)
    return lines, span


def mappings(anchor):
    return [line for line in otf2_text.run("-M", "--silent", "--", anchor) if line.startswith("MAPPING_TABLE")]


def clock_offsets(anchor):
    """Location -> offsets in ticks."""
    offsets = defaultdict(list)
    for line in otf2_text.run("-C", "--silent", "--", anchor):
        match = re.match(r"CLOCK_OFFSET +(\d+) .*Offset: ([+-]?\d+)", line)
        if match:
            offsets[int(match[1])].append(int(match[2]))
    return offsets


def streams(anchor):
    """Location -> [(kind, fields)], and location -> [time]. The one field that is a time itself is left out."""
    contents, times = defaultdict(list), defaultdict(list)
    for event in otf2_text.events(anchor):
        text = re.sub(r"Stop Time: \d+", "Stop Time", event.text)
        contents[event.location].append(event.kind + " " + text)
        times[event.location].append(event.time)
    return contents, times


class Printed:
    """What otf2-print tells of an archive."""

    def __init__(self, anchor):
        self.definitions, self.span = definitions(anchor)
        self.mappings = mappings(anchor)
        self.clock_offsets = clock_offsets(anchor)
        self.contents, self.times = streams(anchor)


def by_otf2_print(one, other, differences):
    compare_lists(differences, "definitions", one.definitions, other.definitions)
    compare_lists(differences, "mapping tables", one.mappings, other.mappings)
    for location, offsets in other.clock_offsets.items():
        if any(offsets):
            differences.add(f"location {location}", "corrected times", f"has clock offsets {offsets[:4]}")
    compare_lists(differences, "locations with events", sorted(one.contents), sorted(other.contents))
    for location in sorted(set(one.contents) & set(other.contents)):
        compare_lists(differences, f"location {location}", one.contents[location], other.contents[location])
    span = other.span
    for location, series in sorted(other.times.items()):
        for position, (before, after) in enumerate(zip(series, series[1:]), 2):
            if after < before:
                differences.add(f"location {location}, event {position}", "time order", f"{before}, {after}")
                break
        if span and not (span[0] <= min(series) and max(series) <= span[0] + span[1]):
            differences.add(
                f"location {location}",
                f"within clock properties {span[0]} + {span[1]}",
                f"{min(series)} ... {max(series)}",
            )


@contextmanager
def silent_stderr():
    """The bindings print a stack trace of their own for every archive that they refuse."""
    sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def by_bindings(anchor):
    """Location number -> [(kind, fields)] as the Python bindings decode them."""
    import otf2

    found = defaultdict(list)
    # Events name the same few definitions again and again: each is kept with its text.
    texts = {}

    def text(value):
        if type(value) is int:
            return value
        known = texts.get(id(value))
        if known and known[0] is value:
            return known[1]
        said = repr(value)
        if isinstance(value, otf2.definitions._Definition):
            texts[id(value)] = value, said
        return said

    with silent_stderr(), otf2.reader.open(anchor) as trace:
        for location, event in trace.events:
            kind = type(event).__name__
            skipped = ("time", "_time", "stop_time", "_stop_time") if kind == "BufferFlush" else ("time", "_time")
            fields = tuple((name, text(value)) for name, value in vars(event).items() if name not in skipped)
            found[location._ref].append((kind, fields))
    return found


class Bound:
    """What the bindings tell of an archive, or why they refuse it: they raise whatever they like."""

    def __init__(self, anchor):
        self.found, self.error = {}, None
        try:
            self.found = by_bindings(anchor)
        except Exception as error:
            self.error = error


def compare(one, bound_one, anchor):
    """Whether an archive is the same as what was read of another; prints the verdict."""
    differences = Differences()
    by_otf2_print(one, Printed(anchor), differences)
    if bound_one.error:
        judges = "otf2-print alone (python3-otf2 refuses the input: {})".format(str(bound_one.error).split(":")[0])
    else:
        judges = "otf2-print and python3-otf2"
        other = Bound(anchor)
        if other.error:
            differences.add("python3-otf2", "reads the archive", f"refuses it: {other.error}")
        else:
            by_location, in_other = bound_one.found, other.found
            compare_lists(differences, "python3-otf2: locations", sorted(by_location), sorted(in_other))
            for location in sorted(set(by_location) & set(in_other)):
                where = f"python3-otf2: location {location}"
                compare_lists(differences, where, by_location[location], in_other[location])
    for difference in differences[:SHOWN]:
        print(difference)
    if differences:
        print(f"DIFFERENT: {anchor}: {len(differences)} places, judged by {judges}")
    else:
        count = sum(map(len, one.contents.values()))
        print(f"the same but for time: {count} events, judged by {judges}")
    return not differences


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    # Many small objects, none of them in cycles: looking for some takes a third of the time.
    gc.disable()
    try:
        import otf2  # noqa: F401
    except ImportError:
        print(
            "compare_otf2.py: the module otf2 is missing: run with /usr/bin/python3, Debian package python3-otf2",
            file=sys.stderr,
        )
        return 2
    try:
        one = Printed(sys.argv[1])
        bound_one = Bound(sys.argv[1])
        # All are judged, also after one that differs.
        same = [compare(one, bound_one, anchor) for anchor in sys.argv[2:]]
    except (otf2_text.Unreadable, OSError) as error:
        print(f"compare_otf2.py: {error}", file=sys.stderr)
        return 2
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
