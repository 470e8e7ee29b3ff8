#!/usr/bin/python3
"""Waiting times of an OTF2 archive, by the definitions of docs/analysis.md:       waiting_times.py ARCHIVE.otf2

Needs Debian's python3-otf2. An independent judge of `clc-replay analyze`: it shares no code with the program. Prints one line per kind:
kind, sum in ticks, number of region instances. Collective operations on MPI_COMM_SELF and others of one member wait for nobody.
"""

import sys
from collections import defaultdict

import otf2
from otf2 import events as ev
from otf2.enums import CollectiveOp as Op

TO_ALL, TO_ONE = {Op.BCAST, Op.SCATTER, Op.SCATTERV}, {Op.REDUCE, Op.GATHER, Op.GATHERV}
PREFIX = {Op.SCAN, Op.EXSCAN}
ALL = {Op.BARRIER, Op.ALLREDUCE, Op.ALLGATHER, Op.ALLGATHERV, Op.ALLTOALL, Op.REDUCE_SCATTER, Op.REDUCE_SCATTER_BLOCK}
ORDER = ["Late Sender", "Late Receiver", "Wait at NxN", "Wait at Barrier", "Late Broadcast", "Early Reduce", "Early Scan"]


class Operation:
    """An instance of a region of MPI."""

    all = []

    def __init__(self, enter):
        self.enter, self.leave, self.waits = enter, None, []
        self.receives = False
        Operation.all.append(self)


def members_of(comm):
    return list(comm.group.members)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    stacks = defaultdict(list)
    sends, receives = defaultdict(list), defaultdict(list)
    posted, isends = {}, {}
    begins, collectives, number = {}, defaultdict(list), 0
    with otf2.reader.open(sys.argv[1]) as trace:
        ranks = {}
        for group in trace.definitions.groups:
            if group.group_type == otf2.enums.GroupType.COMM_LOCATIONS and group.paradigm == otf2.enums.Paradigm.MPI:
                ranks = {location: rank for rank, location in enumerate(group.members)}
        for location, event in trace.events:
            if location not in ranks:
                continue
            own, stack, time = ranks[location], stacks[location], event.time

            def operation():
                return next((op for op in reversed(stack) if op is not None), None)

            def peer(number):
                member = members_of(event.communicator)[number]
                return ranks[member] if member in ranks else member

            if isinstance(event, ev.Enter):
                stack.append(Operation(time) if event.region.name.upper().startswith(("MPI_", "PMPI_")) else None)
            elif isinstance(event, ev.Leave):
                ended = stack.pop()
                if ended is not None:
                    ended.leave = time
            elif isinstance(event, (ev.MpiSend, ev.MpiIsend)):
                key = (own, peer(event.receiver), event.communicator, event.msg_tag)
                record = {"op": operation(), "end": operation()}
                if isinstance(event, ev.MpiIsend):
                    record["end"] = None
                    isends[own, event.request_id] = record
                sends[key].append(record)
            elif isinstance(event, ev.MpiIsendComplete):
                isends.pop((own, event.request_id), {})["end"] = operation()
            elif isinstance(event, ev.MpiIrecvRequest):
                number += 1
                posted[own, event.request_id] = (number, operation())
            elif isinstance(event, (ev.MpiRecv, ev.MpiIrecv)):
                key = (peer(event.sender), own, event.communicator, event.msg_tag)
                number += 1
                order, post = number, operation()
                if isinstance(event, ev.MpiIrecv):
                    order, post = posted.pop((own, event.request_id), (order, post))
                receives[key].append((order, {"op": operation(), "time": time, "post": post}))
            elif isinstance(event, ev.MpiCollectiveBegin):
                number += 1
                begins[own] = (number, operation())
            elif isinstance(event, ev.NonBlockingCollectiveRequest):
                number += 1
                begins[own, event.request_id] = (number, operation())
            elif isinstance(event, (ev.MpiCollectiveEnd, ev.NonBlockingCollectiveComplete)):
                request = getattr(event, "request_id", None)
                order, begin = begins.pop(own if request is None else (own, request))
                collectives[event.communicator].append((order, own, event, begin, operation(), time))

    # Messages: the k-th send belongs to the receive that was posted as the k-th.
    messages = []
    for key, records in sends.items():
        if key[0] == key[1]:
            continue
        arrived = [record for _, record in sorted(receives[key], key=lambda entry: entry[0])]
        messages.extend(zip(records, arrived))
    for send, receive in messages:
        op = receive["op"]
        op.waits.append((min(send["op"].enter, receive["time"]), "Late Sender"))
        op.receives = True
    for send, receive in messages:
        op, post = send["end"], receive["post"].enter
        # What receives as well waits for that.
        if op is not None and not op.receives and op.enter < post < op.leave:
            op.waits.append((post, "Late Receiver"))

    for comm, records in collectives.items():
        by_member = defaultdict(list)
        # In the order in which they began.
        for _, *record in sorted(records, key=lambda record: record[0]):
            by_member[record[0]].append(record)
        members = [ranks.get(member, member) for member in members_of(comm)]
        for parts in zip(*(by_member[member] for member in members)):
            if len(parts) > 1:
                instance(parts)

    sums, counts = defaultdict(int), defaultdict(int)
    for op in Operation.all:
        until, kind = max(((until, -ORDER.index(kind)) for until, kind in op.waits), default=(op.enter, 0))
        if until > op.enter:
            sums[ORDER[-kind]] += until - op.enter
            counts[ORDER[-kind]] += 1
    for kind in ORDER:
        print("%s,%d,%d" % (kind, sums[kind], counts[kind]))


def instance(parts):
    """One instance of a collective operation; `parts` in the order of the ranks in the communicator."""
    kind = parts[0][1].collective_op
    barrier = kind == Op.BARRIER
    gives = [barrier or event.size_sent > 0 for _, event, *_ in parts]
    takes = [barrier or event.size_received > 0 for _, event, *_ in parts]
    enters = [begin.enter for _, _, begin, _, _ in parts]
    for rank, (_, event, _, op, end) in enumerate(parts):
        others = [enters[other] for other in range(len(parts)) if other != rank and gives[other]]
        root = event.root
        if not takes[rank] or not others:
            continue
        if kind in ALL:
            op.waits.append((min(max(others), end), "Wait at Barrier" if barrier else "Wait at NxN"))
        elif kind in TO_ALL and rank != root and gives[root]:
            op.waits.append((min(enters[root], end), "Late Broadcast"))
        elif kind in TO_ONE and rank == root:
            op.waits.append((min(max(others), end), "Early Reduce"))
        elif kind in PREFIX:
            lower = [enters[other] for other in range(rank) if gives[other]]
            if lower:
                op.waits.append((min(max(lower), end), "Early Scan"))


if __name__ == "__main__":
    main()
