#!/usr/bin/python3
"""Lets libotf2 itself write an archive that is hard to copy:       libotf2_archive.py OUTDIR

Needs Debian's python3-otf2. Chunks of 256 KiB, of which the event, snapshot and definition files fill several; shared timestamps, events at
time 0, lists of up to 20 attributes, records with arrays, buffer flushes, snapshots, markers, id tables, and 0, 1, 2, 3 clock offsets.
"""

import random
import sys

import _otf2
import otf2
from otf2 import enums
from otf2 import events as ev

LOCATIONS = 4
EVENTS = 22000
REGION_TABLE = 3


def times(random_numbers, start):
    """Steps of all sizes; often none, so that events share a timestamp."""
    now = start
    while True:
        yield now
        if random_numbers.random() < 0.6:
            now += random_numbers.randrange(1, 1 << random_numbers.randrange(1, 24))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    writer = otf2.writer.Writer(
        sys.argv[1], chunk_size_events=1 << 18, chunk_size_definitions=1 << 18, timer_resolution=10**9
    )
    handle, defs = writer._handle, writer.definitions
    root = defs.system_tree_node("machine", class_name="machine")
    node = defs.system_tree_node("node 0", class_name="node", parent=root)
    locations = []
    for rank in range(LOCATIONS):
        group = defs.location_group(
            f"Process {rank}", location_group_type=enums.LocationGroupType.PROCESS, system_tree_parent=node
        )
        locations.append(defs.location("Thread", type=enums.LocationType.CPU_THREAD, group=group))
    defs.groups.create(
        "", group_type=enums.GroupType.COMM_LOCATIONS, paradigm=enums.Paradigm.MPI, members=tuple(locations)
    )
    world_group = defs.groups.create(
        "", group_type=enums.GroupType.COMM_GROUP, paradigm=enums.Paradigm.MPI, members=tuple(range(LOCATIONS))
    )
    world = defs.comm("MPI_COMM_WORLD", group=world_group)
    # Enough regions for several chunks of definitions.
    regions = [defs.region(f"region {number} {'x' * (number % 60)}") for number in range(6000)]
    attributes = [defs.attribute(f"attribute {number}", "", enums.Type.UINT64) for number in range(20)]
    parameter = defs.parameter("parameter", enums.ParameterType.UINT64)
    member = defs.metric_member("value", "", enums.MetricType.OTHER, enums.MetricMode.ABSOLUTE_POINT, enums.Type.UINT64)
    metric = defs.metric_class([member] * 30, enums.MetricOccurrence.ASYNCHRONOUS)
    texts = [f"argument {number}" for number in range(80)]

    _otf2.Archive_SetNumberOfSnapshots(handle, 1)
    _otf2.Archive_OpenSnapFiles(handle)
    for rank, location in enumerate(locations):
        numbers = random.Random(rank)
        out = writer.event_writer_from_location(location)
        clock = times(numbers, 0 if rank == 0 else 1 << (10 * rank))

        def number(numbers=numbers):
            return numbers.getrandbits(numbers.randrange(1, 64))

        for index in range(EVENTS):
            time = next(clock) if index > 3 or rank > 0 else 0
            extra = None
            if index % 7 == 0:
                extra = {attribute: number() for attribute in attributes[: numbers.randrange(1, 21)]}
            region, peer = numbers.choice(regions), numbers.randrange(LOCATIONS)
            kind = index % 16
            if kind < 4:
                event = ev.Enter(time, region, attributes=extra)
            elif kind < 8:
                event = ev.Leave(time, region, attributes=extra)
            elif kind == 8:
                event = ev.MpiSend(time, peer, world, index, number(), attributes=extra)
            elif kind == 9:
                event = ev.MpiIrecvRequest(time, number(), attributes=extra)
            elif kind == 10:
                event = ev.MpiIrecv(time, peer, world, index, number(), number(), attributes=extra)
            elif kind == 11:
                event = ev.MpiCollectiveBegin(time, attributes=extra)
            elif kind == 12:
                event = ev.MpiCollectiveEnd(
                    time, enums.CollectiveOp.ALLREDUCE, world, 0xFFFFFFFF, number(), number(), attributes=extra
                )
            elif kind == 13:
                event = ev.Metric(time, metric, [number() for _ in range(30)], attributes=extra)
            elif kind == 14 and index % 32 == 14:
                event = ev.ProgramBegin(time, texts[0], texts[: numbers.randrange(80)], attributes=extra)
            elif kind == 14:
                event = ev.ParameterUnsignedInt(time, parameter, number(), attributes=extra)
            else:
                event = ev.BufferFlush(time, time + 1000, attributes=extra)
            out.write(event)

        snapshots = _otf2.Archive_GetSnapWriter(handle, location._ref)
        _otf2.SnapWriter_SnapshotStart(snapshots, None, 1000, 2)
        for index in range(20000):
            _otf2.SnapWriter_Enter(snapshots, None, 1000 + index // 3, index // 4, regions[index % 6000]._ref)
        _otf2.SnapWriter_SnapshotEnd(snapshots, None, 10000, 60)
        _otf2.Archive_CloseSnapWriter(handle, snapshots)

        local = out._def_handle
        if rank % 2 == 1:
            size = 60 if rank == 1 else 6000
            swapped = _otf2.IdMap_CreateFromUint64Array([number ^ 1 for number in range(size)], False)
            _otf2.DefWriter_WriteMappingTable(local, REGION_TABLE, swapped)
            _otf2.IdMap_Free(swapped)
        for offset in range(rank):
            _otf2.DefWriter_WriteClockOffset(local, offset * 10**6, 50 * offset - 10, 0.5)
    _otf2.Archive_CloseSnapFiles(handle)

    markers = _otf2.Archive_GetMarkerWriter(handle)
    _otf2.MarkerWriter_WriteDefMarker(markers, 0, "group", "category", 1)
    for time in (0, 300, 70000, 1 << 40):
        _otf2.MarkerWriter_WriteMarker(markers, time, 77, 0, 1, time % LOCATIONS, "text")
    _otf2.Archive_CloseMarkerWriter(handle, markers)
    writer.close()


main()
