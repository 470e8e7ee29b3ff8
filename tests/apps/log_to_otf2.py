#!/usr/bin/python3
"""Turns the logs of otf2_tracer.c into an OTF2 archive: log_to_otf2.py LOGDIR OUTDIR [PROGRAM-NAME]

Needs Debian's python3-otf2. One `<rank>.log` per process, text lines:

    WORLD rank size
    CLOCK_OFFSET time offset                    by the process's own clock, to process 0
    COMM local leader serial parent members...  (leader, serial) names it in all processes; members are world ranks
    time RECORD fields...                       in program order; communicators by their local number

The archive has what Score-P writes: one location per process, whose number is its rank; a communicator group per
distinct list of members; clock offsets as local definitions. ClockProperties spans the corrected times.
"""

import sys
from pathlib import Path

import _otf2
import otf2
from otf2 import enums
from otf2 import events as ev

NO_ROOT = 0xFFFFFFFF
P2P = {
    "MPI_SEND": ev.MpiSend,
    "MPI_RECV": ev.MpiRecv,
    "MPI_ISEND": ev.MpiIsend,
    "MPI_IRECV": ev.MpiIrecv,
}
BY_REQUEST = {
    "MPI_ISEND_COMPLETE": ev.MpiIsendComplete,
    "MPI_IRECV_REQUEST": ev.MpiIrecvRequest,
    "MPI_REQUEST_TEST": ev.MpiRequestTest,
    "MPI_REQUEST_CANCELLED": ev.MpiRequestCancelled,
    "NON_BLOCKING_COLLECTIVE_REQUEST": ev.NonBlockingCollectiveRequest,
}
COLLECTIVE = {
    "MPI_COLLECTIVE_END": ev.MpiCollectiveEnd,
    "NON_BLOCKING_COLLECTIVE_COMPLETE": ev.NonBlockingCollectiveComplete,
}


class Log:
    """One process's log."""

    def __init__(self, path):
        self.offsets, self.comms, self.records = [], {}, []
        with path.open() as file:
            for line in file:
                words = line.split()
                if words[0] == "WORLD":
                    self.rank, self.size = int(words[1]), int(words[2])
                elif words[0] == "CLOCK_OFFSET":
                    self.offsets.append((int(words[1]), int(words[2])))
                elif words[0] == "COMM":
                    local, leader, serial, parent, *members = map(int, words[1:])
                    self.comms[local] = ((leader, serial), parent, tuple(members))
                else:
                    self.records.append((int(words[0]), words[1], words[2:]))

    def corrected(self, time):
        """The global time of a local one, by the line through the two offsets."""
        if len(self.offsets) < 2:
            return time
        (t0, o0), (t1, o1) = self.offsets
        return time + o0 + round((o1 - o0) / (t1 - t0) * (time - t0))


def define_comms(logs, definitions, locations):
    """Defines every communicator once; returns the definition by (rank, local number)."""
    paradigm = enums.Paradigm.MPI
    definitions.groups.create(
        "", group_type=enums.GroupType.COMM_LOCATIONS, paradigm=paradigm, members=tuple(locations)
    )
    self_group = definitions.groups.create("", group_type=enums.GroupType.COMM_SELF, paradigm=paradigm, members=())
    groups, comms, of = {}, {}, {}
    # Parents come before their children in every log, so they are defined first.
    for log in logs:
        for local, (name, parent, members) in sorted(log.comms.items()):
            if local == 1:
                name, group, title = "self", self_group, "MPI_COMM_SELF"
            else:
                if members not in groups:
                    groups[members] = definitions.groups.create(
                        "", group_type=enums.GroupType.COMM_GROUP, paradigm=paradigm, members=members
                    )
                group, title = groups[members], "MPI_COMM_WORLD" if local == 0 else ""
            if name not in comms:
                above = of.get((log.rank, parent))
                # `create`, not a look-up: two communicators may have the same members and parent.
                comms[name] = definitions.comms.create(title, group=group, parent=above, _type=otf2.definitions.Comm)
            of[log.rank, local] = comms[name]
    return of


def event(definitions, comm_of, rank, regions, time, kind, words):
    """The OTF2 event of one line; None for a kind that the archive cannot say."""
    if kind in ("ENTER", "LEAVE"):
        region = regions.get(words[0])
        if region is None:
            region = regions[words[0]] = definitions.regions.create(
                words[0],
                words[0],
                "",
                region_role=enums.RegionRole.FUNCTION,
                paradigm=enums.Paradigm.MPI,
            )
        return ev.Enter(time, region) if kind == "ENTER" else ev.Leave(time, region)
    fields = list(map(int, words))
    if kind == "MPI_COLLECTIVE_BEGIN":
        return ev.MpiCollectiveBegin(time)
    if kind in BY_REQUEST:
        return BY_REQUEST[kind](time, fields[0])
    if kind in ("COMM_CREATE", "COMM_DESTROY"):
        return (ev.CommCreate if kind == "COMM_CREATE" else ev.CommDestroy)(time, comm_of[rank, fields[0]])
    if kind in P2P:
        peer, comm, *rest = fields
        return P2P[kind](time, peer, comm_of[rank, comm], *rest)
    if kind in COLLECTIVE:
        op, comm, root, *rest = fields
        root = NO_ROOT if root < 0 else root
        return COLLECTIVE[kind](time, enums.CollectiveOp(op), comm_of[rank, comm], root, *rest)
    raise ValueError("unknown record " + kind)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    logs = sorted((Log(path) for path in Path(sys.argv[1]).glob("*.log")), key=lambda log: log.rank)
    if not logs or [log.rank for log in logs] != list(range(logs[0].size)):
        sys.exit("log_to_otf2.py: the logs of some processes are missing in " + sys.argv[1])
    writer = otf2.writer.Writer(
        sys.argv[2], chunk_size_events=256 * 1024, chunk_size_definitions=256 * 1024, timer_resolution=1_000_000_000
    )
    writer.creator = "otf2_tracer"
    definitions = writer.definitions
    machine = definitions.system_tree_node(sys.argv[3] if len(sys.argv) == 4 else "program", class_name="machine")
    node = definitions.system_tree_node("node", class_name="node", parent=machine)
    locations = []
    for log in logs:
        group = definitions.location_group(
            f"MPI Rank {log.rank}", enums.LocationGroupType.PROCESS, system_tree_parent=node
        )
        locations.append(definitions.location("Master thread", group=group))
    comm_of = define_comms(logs, definitions, locations)
    regions, times = {}, []
    for log, location in zip(logs, locations):
        events = writer.event_writer_from_location(location)
        for time, offset in log.offsets:
            _otf2.DefWriter_WriteClockOffset(events._def_handle, time, offset, 0.0)
        for time, kind, words in log.records:
            events.write(event(definitions, comm_of, log.rank, regions, time, kind, words))
            times.append(log.corrected(time))
    writer._first_timestamp, writer._last_timestamp = min(times), max(times)
    writer.close()


if __name__ == "__main__":
    main()
