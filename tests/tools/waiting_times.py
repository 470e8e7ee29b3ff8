#!/usr/bin/python3
"""Waiting times of an OTF2 archive, by the definitions of docs/analysis.md:       waiting_times.py ARCHIVE.otf2

Needs Debian's python3-otf2. An independent judge of `clc-replay analyze`: it shares no code with the program. Prints one line per kind:
kind, sum in ticks, number of region instances; after the kinds of waiting what is told beside them, and the waiting of threads. Threads are brought
together by their times, which have to be right. Collective operations on MPI_COMM_SELF and
others of one member wait for nobody. Every fence of a window counts as a barrier.
"""

import sys
from collections import defaultdict
from typing import Any

import otf2
from otf2 import events as ev
from otf2.enums import CollectiveOp as Op
from otf2.enums import LockType, Paradigm, RegionRole

TO_ALL, TO_ONE = {Op.BCAST, Op.SCATTER, Op.SCATTERV}, {Op.REDUCE, Op.GATHER, Op.GATHERV}
PREFIX = {Op.SCAN, Op.EXSCAN}
ALL = {Op.BARRIER, Op.ALLREDUCE, Op.ALLGATHER, Op.ALLGATHERV, Op.ALLTOALL, Op.REDUCE_SCATTER, Op.REDUCE_SCATTER_BLOCK}
ORDER = ["Late Sender", "Late Receiver", "Wait at NxN", "Wait at Barrier", "Late Broadcast", "Early Reduce", "Early Scan",
         "Wait at Fence", "Late Post", "Early Wait", "Lock Contention"]  # fmt: skip
DETAILS = ["Wrong order: different", "Wrong order: same", "Late Complete", "Barrier Completion", "N-to-N Completion"]
THREADS = ["Wait at OpenMP Barrier", "Thread Lock Contention", "Idle Threads", "Limited Parallelism"]
SYNCHRONOUS = ("MPI_SSEND", "MPI_ISSEND")
EVERYBODY = 2**32 - 1


class Operation:
    """An instance of a region of MPI."""

    all = []

    def __init__(self, enter, name, location):
        self.enter, self.leave, self.waits, self.details = enter, None, [], []
        self.receives, self.late_sender, self.name, self.location = False, False, name, location
        Operation.all.append(self)

    def waited(self):
        """Until when, for what, and what was waited for."""
        until, kind, cause = max(
            self.waits, key=lambda w: (w[0], -ORDER.index(w[1]), -w[2]), default=(self.enter, "", None)
        )
        return (until, kind, cause) if until > self.enter else (self.enter, "", None)

    def wait(self, until, kind, cause=0):
        self.waits.append((until, kind, cause))


def members_of(comm):
    return list(comm.group.members)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    stacks = defaultdict(list)
    sends, receives = defaultdict(list), defaultdict(list)
    posted, isends = {}, {}
    begins: dict[Any, Any] = {}
    collectives, number = defaultdict(list), 0
    fences, epochs, started, accessed = defaultdict(list), defaultdict(list), {}, {}
    locks = defaultdict(list)
    open_locks: dict[Any, dict[str, Any]] = {}
    threads = defaultdict(list)
    with otf2.reader.open(sys.argv[1]) as trace:
        ranks = {}
        for group in trace.definitions.groups:
            if group.group_type == otf2.enums.GroupType.COMM_LOCATIONS and group.paradigm == otf2.enums.Paradigm.MPI:
                ranks = {location: rank for rank, location in enumerate(group.members)}
        for location, event in trace.events:
            threads[location].append(event)
            if location not in ranks:
                continue
            own, stack, time = ranks[location], stacks[location], event.time

            def operation(stack=stack):
                return next((op for op in reversed(stack) if op is not None), None)

            def peer(number, event=event):
                member = members_of(event.communicator)[number]
                return ranks.get(member, member)

            if isinstance(event, ev.Enter):
                name = event.region.name.upper()
                stack.append(Operation(time, name, own) if name.startswith(("MPI_", "PMPI_")) else None)
            elif isinstance(event, ev.Leave):
                ended = stack.pop()
                if ended is not None:
                    ended.leave = time
            elif isinstance(event, (ev.MpiSend, ev.MpiIsend)):
                key = (own, peer(event.receiver), event.communicator, event.msg_tag)
                record = {"op": operation(), "end": operation(), "own": own}
                record["synchronous"] = operation() is not None and operation().name.lstrip("P") in SYNCHRONOUS
                if isinstance(event, ev.MpiIsend):
                    record["end"] = None
                    isends[own, event.request_id] = record
                sends[key].append(record)
            elif isinstance(event, ev.MpiIsendComplete):
                isends.pop((own, event.request_id), {}).update(end=operation(), complete=time)
            elif isinstance(event, ev.MpiIrecvRequest):
                number += 1
                posted[own, event.request_id] = (number, operation())
            elif isinstance(event, (ev.MpiRecv, ev.MpiIrecv)):
                key = (peer(event.sender), own, event.communicator, event.msg_tag)
                number += 1
                order, post = number, operation()
                if isinstance(event, ev.MpiIrecv):
                    order, post = posted.pop((own, event.request_id), (order, post))
                receives[key].append(
                    (order, {"op": operation(), "time": time, "post": post, "own": own, "number": number})
                )
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
            elif isinstance(event, ev.RmaCollectiveBegin):
                begins[own, "window"] = operation()
            elif isinstance(event, ev.RmaCollectiveEnd) and event.collective_op == Op.BARRIER:
                fences[event.win].append((own, begins.pop((own, "window")), time))
            elif isinstance(event, ev.RmaGroupSync):
                op, step = operation(), operation().name.lstrip("P")
                others = [ranks.get(member, member) for member in event.group.members]
                if step == "MPI_WIN_START":
                    started[own, event.win] = op
                    accessed.pop((own, event.win), None)
                record = {"op": op, "start": None, "last": None}
                if step == "MPI_WIN_COMPLETE":
                    record["start"] = started.pop((own, event.win), op)
                    record["last"] = accessed.pop((own, event.win), record["start"])
                for other in others:
                    epochs[step, event.win, own, other].append(record)
            elif isinstance(event, (ev.RmaPut, ev.RmaGet, ev.RmaAtomic)):
                accessed[own, event.win] = operation()
            elif isinstance(event, ev.RmaRequestLock):
                open_locks[own, event.win, event.remote] = {
                    "op": operation(),
                    "own": own,
                    "exclusive": event.lock_type == LockType.EXCLUSIVE,
                }
            elif isinstance(event, ev.RmaAcquireLock):
                held = own, event.win, event.remote
                lock = open_locks.setdefault(held, {"own": own, "exclusive": event.lock_type == LockType.EXCLUSIVE})
                lock.update(op=operation(), acquired=time)
            elif isinstance(event, ev.RmaReleaseLock):
                released = open_locks.pop((own, event.win, event.remote), None)
                if released is not None:
                    released["released"], released["target"] = time, event.remote
                    locks[event.win].append(released)

    # Messages: the k-th send belongs to the receive that was posted as the k-th.
    messages = []
    for key, records in sends.items():
        if key[0] == key[1]:
            continue
        arrived = [record for _, record in sorted(receives[key], key=lambda entry: entry[0])]
        messages.extend(zip(records, arrived))
    for send, receive in messages:
        op = receive["op"]
        until = min(send["op"].enter, receive["time"])
        op.wait(until, "Late Sender", send["own"])
        op.receives = True
        op.late_sender |= until > op.enter
    for send, receive in messages:
        op, post = send["end"], receive["post"].enter
        if op is None:
            continue
        # What waits for what it receives waits for that; what sends and receives in one call takes as long as it receives.
        other = op.late_sender or (op.receives and op is send["op"])
        if send["synchronous"]:
            op.wait(min(post, send.get("complete", op.leave)), "Late Receiver", receive["own"])
        elif not other and op.enter < post < op.leave:
            op.wait(post, "Late Receiver", receive["own"])

    done = []
    for comm, ends in collectives.items():
        by_member = defaultdict(list)
        # In the order in which they began.
        for _, *end in sorted(ends, key=lambda end: end[0]):
            by_member[end[0]].append(end)
        members = [ranks.get(member, member) for member in members_of(comm)]
        done.append([parts for parts in zip(*(by_member[member] for member in members)) if len(parts) > 1])
        for parts in done[-1]:
            instance(parts)

    for passed in fences.values():
        by_process = defaultdict(list)
        for fence in passed:
            by_process[fence[0]].append(fence)
        for passing in zip(*by_process.values()):
            for own, op, end in passing:
                others = [(other.enter, -rank) for rank, other, _ in passing if rank != own]
                if others:
                    ready, cause = max(others)
                    op.wait(min(ready, end), "Wait at Fence", -cause)
    groups(epochs)
    for of_window in locks.values():
        contention(of_window)
    wrong_orders(messages)
    for comm in done:
        for parts in comm:
            completion(parts)

    sums, counts = defaultdict(int), defaultdict(int)
    for op in Operation.all:
        until, kind, _ = op.waited()
        for what, ticks in ([(kind, until - op.enter)] if kind else []) + op.details:
            sums[what] += ticks
            counts[what] += 1
    for main_thread in ranks:
        own = [events for location, events in threads.items() if location.group == main_thread.group]
        if len(own) > 1:
            for what, ticks, number in of_threads(threads[main_thread], own):
                sums[what] += ticks
                counts[what] += number
    for kind in ORDER + DETAILS + THREADS:
        print(f"{kind},{sums[kind]},{counts[kind]}")


class Team:
    """A parallel region of the main thread that is in no other one: when it lasts, and how many threads it has."""

    def __init__(self, fork):
        self.fork, self.join, self.key = fork, None, None


def is_barrier(region):
    roles = (RegionRole.BARRIER, RegionRole.IMPLICIT_BARRIER)
    return region.region_role in roles and region.paradigm == Paradigm.OPENMP


def of_threads(main_thread, all_threads):
    """Waiting of the threads of one process, as kind, ticks and number of waits."""
    teams, serial, path, now = [], defaultdict(int), [], main_thread[0].time
    sections, depth = [], 0
    for event in main_thread:
        if depth == 0:
            serial[tuple(path)] += event.time - now
        now = event.time
        if isinstance(event, ev.Enter):
            path.append(event.region.name)
        elif isinstance(event, ev.Leave):
            path.pop()
        elif isinstance(event, ev.ThreadFork):
            if depth == 0:
                teams.append(Team(event.time))
                sections.append(serial)
                serial = defaultdict(int)
            depth += 1
        elif isinstance(event, ev.ThreadJoin):
            depth -= 1
            if depth == 0:
                teams[-1].join = event.time
    sections.append(serial)

    workers = 0
    # The k-th time that a thread is in a team belongs to the k-th time of the others: the barriers of each.
    passes = defaultdict(list)
    for events in all_threads:
        inside, times, forked, regions = [], defaultdict(int), 0, iter(teams)
        workers += events is not main_thread and any(isinstance(event, ev.ThreadTeamBegin) for event in events)
        for event in events:
            if isinstance(event, ev.ThreadTeamBegin):
                key = event.thread_team, times[event.thread_team]
                times[event.thread_team] += 1
                inside.append([])
                passes[key].append(inside[-1])
                if events is main_thread and forked == 1 and len(inside) == 1:
                    next(regions).key = key
            elif isinstance(event, ev.ThreadTeamEnd):
                inside.pop()
            elif isinstance(event, (ev.ThreadFork, ev.ThreadJoin)):
                forked += 1 if isinstance(event, ev.ThreadFork) else -1
            elif inside and isinstance(event, ev.Enter) and is_barrier(event.region):
                inside[-1].append([event.time, None])
            elif inside and isinstance(event, ev.Leave) and is_barrier(event.region):
                inside[-1][-1][1] = event.time
    for barriers in passes.values():
        for passed in zip(*barriers):
            last = max(entered for entered, _ in passed)
            for entered, left in passed:
                if min(last, left) > entered:
                    yield THREADS[0], min(last, left) - entered, 1
    for team in teams:
        idle = workers + 1 - len(passes[team.key])
        if idle > 0 and team.join > team.fork:
            yield THREADS[3], idle * (team.join - team.fork), idle
    for section in sections if teams else []:
        for ticks in section.values():
            if ticks > 0 and workers > 0:
                yield THREADS[2], workers * ticks, workers

    locks = defaultdict(dict)
    for number, events in enumerate(all_threads):
        before = None
        for event in events:
            if isinstance(event, ev.ThreadAcquireLock):
                locks[event.model, event.lock_id][event.acquisition_order] = [number, before, event.time, None]
            elif isinstance(event, ev.ThreadReleaseLock):
                locks[event.model, event.lock_id][event.acquisition_order][3] = event.time
            before = event.time
    for held in locks.values():
        order = [held[number] for number in sorted(held)]
        for (holder, _, _, released), (number, asked, acquired, _) in zip(order, order[1:]):
            if holder != number and released is not None and asked is not None and min(released, acquired) > asked:
                yield THREADS[1], min(released, acquired) - asked, 1


def groups(epochs):
    """Post, start, complete and wait: the k-th of two processes is the k-th for both."""
    for (step, win, origin, target), records in epochs.items():
        if step == "MPI_WIN_COMPLETE":
            for own, post in zip(records, epochs["MPI_WIN_POST", win, target, origin]):
                ready, start, op = post["op"].enter, own["start"], own["op"]
                if start is not op and start.enter < ready < start.leave:
                    start.wait(ready, "Late Post", target)
                op.wait(min(ready, op.leave), "Late Post", target)
            for own, wait in zip(records, epochs["MPI_WIN_WAIT", win, target, origin]):
                op = wait["op"]
                op.wait(min(own["op"].enter, op.leave), "Early Wait", origin)
                op.lasts = getattr(op, "lasts", {})
                op.lasts[origin] = own["last"].leave
    for op in Operation.all:
        until, kind, cause = op.waited()
        if kind == "Early Wait":
            ticks = until - max(op.enter, op.lasts[cause])
            if ticks > 0:
                op.details.append(("Late Complete", ticks))


def contention(locks):
    """Of one window: a lock waits for the latest release of those acquired before by others that exclude it."""
    for lock in locks:
        lock.setdefault("acquired", lock["op"].leave if lock["op"] else None)
    for lock in locks:
        if lock["op"] is None:
            continue
        earlier = [
            (other["released"], -other["own"])
            for other in locks
            if other["own"] != lock["own"] and other["acquired"] < lock["acquired"]
            and (other["target"] == lock["target"] or EVERYBODY in (other["target"], lock["target"]))
            and (other["exclusive"] or lock["exclusive"])
        ]  # fmt: skip
        if earlier:
            released, cause = max(earlier)
            lock["op"].wait(min(released, lock["acquired"]), "Lock Contention", -cause)


def wrong_orders(messages):
    """A late sender whose message was sent after one that was received later, by another operation."""
    by_receiver = defaultdict(list)
    for send, receive in messages:
        by_receiver[receive["own"]].append(
            (receive["number"], receive["op"], send["op"].enter, send["own"], receive["time"])
        )
    for received in by_receiver.values():
        received.sort(key=lambda message: message[0])
        done = set()
        for at, (_, op, sent, source, time) in enumerate(received):
            until, kind, cause = op.waited()
            if kind != "Late Sender" or source != cause or min(sent, time) != until or op in done:
                continue
            done.add(op)
            for _, other, earlier, whose, _ in received[at + 1 :]:
                if other is not op and earlier < sent:
                    op.details.append((DETAILS[1 if whose == source else 0], until - op.enter))
                    break


def completion(parts):
    """What an N-to-N operation takes after the first of the others has left it."""
    kind = parts[0][1].collective_op
    if kind not in ALL:
        return
    gives = [kind == Op.BARRIER or event.size_sent > 0 for _, event, *_ in parts]
    takes = [kind == Op.BARRIER or event.size_received > 0 for _, event, *_ in parts]
    for rank, (_, _, begin, op, _) in enumerate(parts):
        others = [parts[other][3].leave for other in range(len(parts)) if other != rank and takes[other]]
        if begin is not op or not gives[rank] or not others:
            continue
        first = min(others)
        ticks = op.leave - max(first, op.waited()[0])
        if ticks > 0:
            op.details.append((DETAILS[3 if kind == Op.BARRIER else 4], ticks))


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
            op.wait(min(max(others), end), "Wait at Barrier" if barrier else "Wait at NxN")
        elif kind in TO_ALL and rank != root and gives[root]:
            op.wait(min(enters[root], end), "Late Broadcast")
        elif kind in TO_ONE and rank == root:
            op.wait(min(max(others), end), "Early Reduce")
        elif kind in PREFIX:
            lower = [enters[other] for other in range(rank) if gives[other]]
            if lower:
                op.wait(min(max(lower), end), "Early Scan")


if __name__ == "__main__":
    main()
