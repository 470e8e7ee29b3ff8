#!/usr/bin/python3
"""Prints location id and time of every event, as python3-otf2 (libotf2 with its clock correction) sees them.

    print_times.py ANCHOR
"""
import sys

import otf2

with otf2.reader.open(sys.argv[1]) as trace:
    locations = {location: location._ref for location in trace.definitions.locations}
    for location, event in trace.events:
        print(locations[location], event.time)
