#!/usr/bin/python3
"""Prints location and time of every event of an OTF2 archive, as libotf2 corrects it by the recorded clock offsets.

    print_times.py ARCHIVE.otf2
    print_times.py --make DIRECTORY OFFSETS

The events of a location come in their order in the file. --make writes an archive with two locations to DIRECTORY,
which must not exist, whose first location has the clock offsets `time:offset,time:offset,...` and events around them.
"""

import argparse
import sys

import otf2
from otf2.enums import LocationType, Paradigm, RegionRole


def print_times(anchor):
    with otf2.reader.open(anchor) as trace:
        for location, event in trace.events:
            # The identifier in the file, which is the name of the event file; positions would do only for dense ones.
            print(location._ref, event.time)


def make(directory, offsets):
    pairs = [tuple(int(number) for number in pair.split(":")) for pair in offsets.split(",")]
    with otf2.writer.open(directory, timer_resolution=10**9) as trace:
        root = trace.definitions.system_tree_node("machine")
        region = trace.definitions.region(
            "work", source_file="", region_role=RegionRole.FUNCTION, paradigm=Paradigm.USER
        )
        for rank in range(2):
            # Two processes, since the locations of one process share its clock.
            group = trace.definitions.location_group(f"process {rank}", system_tree_parent=root)
            location = trace.definitions.location(f"thread {rank}", type=LocationType.CPU_THREAD, group=group)
            writer = trace.event_writer_from_location(location)
            times = sorted(
                {
                    max(0, time + distance)
                    for time, _ in pairs
                    for distance in (-1000003, -70001, -333, -2, -1, 0, 1, 2, 500, 999, 77777, 1000001)
                }
            )
            for time in times:
                writer.enter(time, region)
                writer.leave(time, region)
            if rank == 0:
                add_offsets(trace, location, pairs)


def add_offsets(trace, location, pairs):
    """Clock offsets have no place in the comfortable interface of the writer; the library's own function does it."""
    from _otf2 import Archive_GetDefWriter, DefWriter_WriteClockOffset

    writer = Archive_GetDefWriter(trace._handle, location._ref)
    for time, offset in pairs:
        DefWriter_WriteClockOffset(writer, time, offset, 0.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", metavar="DIRECTORY")
    parser.add_argument("what", metavar="ARCHIVE.otf2|OFFSETS")
    options = parser.parse_args()
    if options.make:
        make(options.make, options.what)
    else:
        print_times(options.what)
    sys.exit(0)
