#!/usr/bin/python3
"""Waiting times of an OTF2 archive, by the definitions of docs/analysis.md:       waiting_times.py ARCHIVE.otf2 [--delays]

Needs Debian's python3-otf2. An independent judge of `clc-replay analyze`: it shares no code with the program. Prints one line per kind:
kind, sum in ticks, number of region instances; after the kinds of waiting what is told beside them, and the waiting of threads. With --delays instead
what the waits are blamed on: region and ticks, the same for long-term costs, then what is propagated, unexplained, not examined. Threads are brought
together by their times, which have to be right. Collective operations on MPI_COMM_SELF and
others of one member wait for nobody. Every fence of a window counts as a barrier.
"""

import bisect
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

    def __init__(self, enter, region, location):
        self.enter, self.leave, self.waits, self.details = enter, None, [], []
        self.region, name, self.number = region, region.upper(), len(Operation.all)
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
    if len(sys.argv) != 2 and sys.argv[2:] != ["--delays"]:
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
                name = event.region.name
                is_mpi = name.upper().startswith(("MPI_", "PMPI_"))
                stack.append(Operation(time, name, own) if is_mpi else None)
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
                number += 1
                collectives[event.communicator].append((order, own, event, begin, operation(), time, number))
            elif isinstance(event, ev.RmaCollectiveBegin):
                begins[own, "window"] = operation()
            elif isinstance(event, ev.RmaCollectiveEnd) and event.collective_op == Op.BARRIER:
                number += 1
                fences[event.win].append((own, begins.pop((own, "window")), time, number))
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
                    released["held"] = operation().enter if operation() else time
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

    passings = []
    for passed in fences.values():
        by_process = defaultdict(list)
        for fence in passed:
            by_process[fence[0]].append(fence)
        for passing in zip(*by_process.values()):
            passings.append(passing)
            for own, op, end, _ in passing:
                others = [(other.enter, -rank) for rank, other, *_ in passing if rank != own]
                if others:
                    ready, cause = max(others)
                    op.wait(min(ready, end), "Wait at Fence", -cause)
    groups(epochs)
    for of_window in locks.values():
        contention(of_window)
    if len(sys.argv) == 3:
        together = []
        for parts in (parts for comm in done for parts in comm):
            takes = {own: event.collective_op == Op.BARRIER or event.size_received > 0 for own, event, *_ in parts}
            of_each = [(own, begin, op, ended) for own, _, begin, op, _, ended in parts]
            together.append((kind_of(parts[0][1].collective_op), takes, of_each))
        for passing in passings:
            of_each = [(own, op, op, ended) for own, op, _, ended in passing]
            together.append(("Wait at Fence", dict.fromkeys([own for own, *_ in passing], True), of_each))
        delays({ranks[location]: threads[location] for location in ranks}, messages, together)
        return
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
        of_process = [events for location, events in threads.items() if location.group == main_thread.group]
        if len(of_process) > 1:
            for what, ticks, number in of_threads(threads[main_thread], of_process):
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
        idle = workers + 1 - (len(passes[team.key]) if team.key else 0)
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
    """Of one window: a lock waits for the latest release of those acquired before by others that exclude it.
    Of several acquired at one time, the one that was held until the earliest time was the first."""
    for lock in locks:
        lock.setdefault("acquired", lock["op"].leave if lock["op"] else None)

    def began(lock):
        return lock["acquired"], lock["held"], lock["own"]

    for lock in locks:
        if lock["op"] is None:
            continue
        earlier = [
            (other["released"], -other["own"])
            for other in locks
            if other["own"] != lock["own"] and began(other) < began(lock)
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
    for rank, (_, _, begin, op, *_) in enumerate(parts):
        others = [parts[other][3].leave for other in range(len(parts)) if other != rank and takes[other]]
        if begin is not op or not (gives[rank] or takes[rank]) or not others:
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
    enters = [begin.enter for _, _, begin, *_ in parts]
    for rank, (_, event, _, op, end, _) in enumerate(parts):
        others = [(enters[other], -other) for other in range(len(parts)) if other != rank and gives[other]]
        root = event.root
        if not takes[rank] or not others:
            continue
        last, cause = max(others)
        cause = parts[-cause][0]
        if kind in ALL:
            op.wait(min(last, end), "Wait at Barrier" if barrier else "Wait at NxN", cause)
        elif kind in TO_ALL and rank != root and gives[root]:
            op.wait(min(enters[root], end), "Late Broadcast", parts[root][0])
        elif kind in TO_ONE and rank == root:
            op.wait(min(last, end), "Early Reduce", cause)
        elif kind in PREFIX:
            lower = [(enters[other], -other) for other in range(rank) if gives[other]]
            if lower:
                last, cause = max(lower)
                op.wait(min(last, end), "Early Scan", parts[-cause][0])


def kind_of(op):
    """What members of a collective operation wait for."""
    if op in ALL:
        return "Wait at Barrier" if op == Op.BARRIER else "Wait at NxN"
    kinds = {"Late Broadcast": TO_ALL, "Early Reduce": TO_ONE, "Early Scan": PREFIX}
    return next((kind for kind, ops in kinds.items() if op in ops), "")


class Spent:
    """Sums of disjoint intervals of time, in their order."""

    def __init__(self):
        self.begins, self.ends, self.sums = [], [], [0]

    def add(self, begin, end):
        if end > begin:
            self.begins.append(begin)
            self.ends.append(end)
            self.sums.append(self.sums[-1] + end - begin)

    def until(self, time):
        """The sum of what is before then."""
        at = bisect.bisect_left(self.begins, time)
        return self.sums[at] - (max(0, self.ends[at - 1] - time) if at else 0)

    def between(self, begin, end):
        return self.until(end) - self.until(begin) if end > begin else 0


def delays(main_threads, messages, together):
    """What all waits are blamed on. `together` are the collective operations: kind, who receives data, and of each process the
    operations in which it begins and ends, and the place of its end in the order of the trace."""
    spent, waited = defaultdict(lambda: defaultdict(Spent)), defaultdict(lambda: defaultdict(Spent))
    begins, initialised = {}, {}
    for process, events in main_threads.items():
        events = [event for event in events if isinstance(event, (ev.Enter, ev.Leave))]
        path, now = [], events[0].time if events else 0
        begins[process] = now
        for event in events:
            spent[process][path[-1][0] if path else ""].add(now, event.time)
            now = event.time
            if isinstance(event, ev.Enter):
                path.append((event.region.name, now))
            else:
                name, entered = path.pop()
                if name.lower().removeprefix("p").rstrip("_") in ("mpi_init", "mpi_init_thread"):
                    initialised[process] = entered, now
    if initialised:
        all_in = max(min(left for _, left in initialised.values()), max(entered for entered, _ in initialised.values()))
        begins.update((process, min(all_in, left)) for process, (_, left) in initialised.items())
    for op in Operation.all:
        waited[op.location][op.region].add(op.enter, op.waited()[0])

    # The operation of another process that each one waits for.
    sent, posted, taken = defaultdict(list), defaultdict(list), defaultdict(list)
    for send, receive in messages:
        sent[receive["op"], send["own"]].append(send["op"])
        posted[send["end"], receive["own"]].append(receive["post"])
    for kind, _, parts in together:
        for _, _, op, ended in parts:
            taken[op, kind].append((ended, {own: begin for own, begin, *_ in parts}))
    sources = {}
    for op in Operation.all:
        _, kind, cause = op.waited()
        if kind == "Late Sender":
            sources[op] = max(sent[op, cause], key=lambda other: other.number, default=None)
        elif kind == "Late Receiver":
            sources[op] = max(posted[op, cause], key=lambda other: other.number, default=None)
        elif kind and kind not in ("Late Post", "Early Wait", "Lock Contention"):
            ends = [(ended, begin) for ended, begin in taken[op, kind] if cause in begin]
            sources[op] = max(ends, key=lambda end: end[0])[1][cause]

    # Who was synchronised with whom: in which operation, and since when its time counts.
    def since(op, left):
        return op.number, min(max(left, op.enter), op.leave)

    met, common = defaultdict(list), defaultdict(list)
    for op, source in sources.items():
        _, kind, cause = op.waited()
        if source is not None and kind in ("Late Sender", "Late Receiver", "Late Broadcast", "Early Reduce"):
            met[op.location, cause].append(since(op, source.leave))
            met[cause, op.location].append(since(source, op.leave))
    for what, takes, parts in together:
        if not what.startswith("Wait at") or len(parts) < 2:
            continue
        counts = {}
        for own, _, op, _ in parts:
            first = min((other.leave for who, _, other, _ in parts if who != own and takes[who]), default=op.leave)
            until, kind, _ = op.waited()
            counts[own] = since(op, max(first, until if kind.startswith("Wait at") else first))
        for own, _, op, ended in parts:
            common[own].append((op.number, ended, counts))
    for points in met.values():
        points.sort()
    for points in common.values():
        points.sort(key=lambda point: point[:2])

    def last(pair, number):
        points = met.get(pair, [])
        at = bisect.bisect_left(points, (number,))
        return points[at - 1] if at else (-1, begins[pair[0]])

    blamed, others = defaultdict(int), defaultdict(int)
    divided = {}
    for op in Operation.all:
        until, kind, cause = op.waited()
        wait, source = until - op.enter, sources.get(op)
        if not kind:
            continue
        if source is None:
            others["not examined"] += wait
            continue
        own, other = last((op.location, cause), op.number), last((cause, op.location), source.number)
        points = common.get(op.location, [])
        at = bisect.bisect_left(points, op.number, key=lambda point: point[0])
        both = next((counts for *_, counts in reversed(points[:at]) if cause in counts), None)
        if both is not None:
            own, other = max(own, both[op.location]), max(other, both[cause])
            if both[cause][0] >= source.number:
                others["not examined"] += wait
                continue

        def took(process, begin, end):
            regions = spent[process].items()
            return {name: of.between(begin, end) - waited[process][name].between(begin, end) for name, of in regions}

        of_waiter, of_delayer = took(op.location, own[1], op.enter), took(cause, other[1], source.enter)
        more = {name: max(0, ticks - of_waiter.get(name, 0)) for name, ticks in of_delayer.items()}
        passed_on = sum(of.between(other[1], source.enter) for of in waited[cause].values())
        whole = sum(more.values()) + passed_on
        if whole and kind in ("Late Sender", "Late Receiver"):
            whole = max(whole, wait)
        rest = wait
        for name, ticks in more.items():
            if ticks:
                blamed[name] += wait * ticks // whole
                rest -= wait * ticks // whole
        if passed_on:
            others["propagated"] += wait * passed_on // whole
            rest -= wait * passed_on // whole
        others["unexplained"] += rest
        divided[op] = Divided(wait, more, passed_on, whole, source, other[1])
    for name, ticks in sorted(blamed.items()):
        if ticks:
            print(f"{name},{ticks}")
    for name, ticks in sorted(long_term(divided, sources).items()):
        if ticks:
            print(f"long-term {name},{ticks}")
    for name in ("propagated", "unexplained", "not examined"):
        print(f"{name},{others[name]}")


class Divided:
    """How a wait was divided: among `more` (by region) and the waiting of the other process from `begin` until it entered `source`."""

    def __init__(self, wait, more, passed_on, whole, source, begin):
        self.wait, self.more, self.passed_on, self.whole, self.source, self.begin = (
            wait,
            more,
            passed_on,
            whole,
            source,
            begin,
        )


def long_term(divided, sources):
    """What has its causes in waiting of a delayer, blamed on what that waiting was blamed on, by region."""
    costs, led_to = defaultdict(int), defaultdict(int)
    waits, open_waits, told = defaultdict(list), defaultdict(list), set()
    for op in Operation.all:
        until, kind, _ = op.waited()
        if kind:
            waits[op.location].append((op.enter, until, op))
    for op, wait in divided.items():
        open_waits[wait.source.location].append((wait.source.number, op))
    for process in open_waits:
        open_waits[process].sort(key=lambda entry: entry[0])
    rest = {process: list(own) for process, own in waits.items()}
    progress = True
    while progress:
        progress = False
        for process, own in rest.items():
            while own:
                op = own[-1][2]
                behind = open_waits[process]
                while behind and behind[-1][0] > op.number and behind[-1][1] in told:
                    behind.pop()
                if behind and behind[-1][0] > op.number:
                    break
                own.pop()
                progress = True
                told.add(op)
                if op not in divided:
                    continue
                # What others have waited because of it is divided as it was itself, and each tick of what the other process waited has led to the same.
                ticks, wait = led_to[op] >> 48, divided[op]
                if not wait.whole:
                    continue
                for name, part in wait.more.items():
                    costs[name] += ticks * part // wait.whole
                if not wait.passed_on:
                    continue
                passed_on = wait.wait * wait.passed_on // wait.whole + ticks * wait.passed_on // wait.whole
                per_tick = (passed_on << 48) // wait.passed_on
                of_other = waits[wait.source.location]
                for enter, until, other in of_other[
                    bisect.bisect_left(of_other, wait.begin, key=lambda entry: entry[1]) :
                ]:
                    if enter >= wait.source.enter:
                        break
                    led_to[other] += per_tick * max(0, min(until, wait.source.enter) - max(enter, wait.begin))
    return costs


if __name__ == "__main__":
    main()
