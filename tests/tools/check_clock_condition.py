#!/usr/bin/python3
"""Counts the violations of the clock condition in an OTF2 archive.

    check_clock_condition.py ARCHIVE.otf2 [--min-latency TICKS] [--list N] [--after CORRECTED.otf2]

An independent judge of corrected traces: it reads what otf2-print prints and shares no code with the program. The
clock condition: what is received is received no earlier than it was sent, plus the minimum latency.

Messages. Those of one sender, receiver, communicator and tag match in the order of the sends and the order in which
the receives were posted. Left out: cancelled and unfinished requests; and where the numbers of sends and receives of
a pair differ and the receiver has requests whose end is unknown, all of that pair, since any of them may have taken
any message.

Collectives. The k-th operation on a communicator is the k-th of each member, blocking and non-blocking ones counted
apart. Each member has a begin and an end. Which begins must precede which ends of *other* members:

    Bcast, Scatter(v)        the root's begin, every end
    Reduce, Gather(v)        every begin, the root's end
    Scan, Exscan             the begins of all lower ranks, each end
    Alltoallv, Alltoallw     none: the record does not tell who exchanged data with whom
    Barrier, all others      every begin, every end

A member that sent (received) no bytes constrains (is constrained by) nobody, except in a Barrier. Instances that
some member does not have, or that members have as different operations, are counted and left out; operations on
handles (creating communicators, windows, ...) constrain nobody.

With --after, the worst violations are shown beside the same pairs in a second archive, and nothing is counted there.

Exit status: 0 no violation, 1 violations, 2 the archive cannot be read.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import otf2_text
from otf2_text import NAME

ROOT_SENDS = {"BCAST", "SCATTER", "SCATTERV"}
ROOT_RECEIVES = {"REDUCE", "GATHER", "GATHERV"}
PREFIX = {"SCAN", "EXSCAN"}
UNKNOWN_PAIRS = {"ALLTOALLV", "ALLTOALLW"}
EVERYBODY = {"BARRIER", "ALLGATHER", "ALLGATHERV", "ALLTOALL", "ALLREDUCE", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"}
KINDS = ROOT_SENDS | ROOT_RECEIVES | PREFIX | EVERYBODY


@dataclass
class Comm:
    """A communicator. `members`: locations by rank, None for MPI_COMM_SELF; `remote`: the other group, if any."""

    number: int
    members: list | None
    remote: list | None = None

    def peer(self, own_location, rank):
        """The location that a process knows under this rank."""
        if self.members is None:
            return own_location
        group = self.members
        if self.remote is not None and own_location in self.members:
            group = self.remote
        return group[rank]


@dataclass
class Definitions:
    process_of: dict = field(default_factory=dict)  # location -> location group
    comms: dict = field(default_factory=dict)  # number -> Comm


@dataclass
class Member:
    """One process's part in one instance of a collective operation."""

    location: int
    begin: int
    end: int
    op: str
    root: str
    sent: int
    received: int


def read_definitions(anchor):
    found = Definitions()
    groups, self_groups, comms = {}, set(), []
    for line in otf2_text.run("-G", "--silent", "--", anchor):
        match = re.match(r"(LOCATION|GROUP|COMM|INTER_COMM) +(\d+)  (.*)$", line)
        if not match:
            continue
        kind, number, text = match[1], int(match[2]), match[3]
        if kind == "LOCATION":
            found.process_of[number] = int(re.search(r"Group: %s <(\d+)>" % NAME, text)[1])
        elif kind == "GROUP" and "Type: COMM_SELF" in text:
            self_groups.add(number)
        elif kind == "GROUP" and "Type: COMM_GROUP" in text:
            groups[number] = [int(m) for m in re.findall(r"\d+ \(%s <(\d+)>\)" % NAME, text)]
        elif kind == "GROUP" and "Type: COMM_LOCATIONS" in text:
            # EZTrace gives this group and the world's group one number; the latter, which follows, counts.
            members = text.split("Member", 1)[1]
            groups[number] = [int(m) for m in re.findall(r"%s <(\d+)>" % NAME, members)]
        elif kind in ("COMM", "INTER_COMM"):
            comms.append((number, [int(g) for g in re.findall(r"Group(?: [AB])?: %s <(\d+)>" % NAME, text)]))
    for number, parts in comms:
        if parts[0] in self_groups:
            found.comms[number] = Comm(number, None)
        else:
            lists = [groups.get(part, []) for part in parts]
            found.comms[number] = Comm(number, *lists)
    return found


class Trace:
    """Sends and receives by (sender, receiver, communicator, tag); collectives by communicator and process."""

    def __init__(self, anchor):
        self.definitions = read_definitions(anchor)
        self.sends = defaultdict(list)  # key -> [time]
        self.receives = defaultdict(list)  # key -> [(posting position, time)]
        self.unfinished = Counter()  # receiving process -> requests whose end is unknown
        self.members = defaultdict(lambda: defaultdict(list))  # (comm, blocking?) -> location -> [(position, Member)]
        self.backward = 0
        self.cancelled = 0
        self.events = 0
        posted = defaultdict(dict)  # process -> request -> position of the posting
        begun = defaultdict(list)  # location -> stack of begin times
        requested = defaultdict(dict)  # process -> request -> (position, time)
        last = {}
        for position, event in enumerate(otf2_text.events(anchor)):
            self.events += 1
            if event.time < last.get(event.location, 0):
                self.backward += 1
            last[event.location] = event.time
            process = self.definitions.process_of.get(event.location)
            if event.kind in ("MPI_SEND", "MPI_ISEND", "MPI_RECV", "MPI_IRECV"):
                self.message(event, position, process, posted)
            elif event.kind == "MPI_IRECV_REQUEST":
                posted[process][otf2_text.numbers(event.text)["Request"]] = position
                self.unfinished[process] += 1
            elif event.kind == "MPI_REQUEST_CANCELLED":
                if posted[process].pop(otf2_text.numbers(event.text)["Request"], None) is not None:
                    self.unfinished[process] -= 1
                    self.cancelled += 1
            elif event.kind == "MPI_COLLECTIVE_BEGIN":
                begun[event.location].append(event.time)
            elif event.kind == "MPI_COLLECTIVE_END":
                if begun[event.location]:
                    self.collective(event, position, begun[event.location].pop(), True)
            elif event.kind == "NON_BLOCKING_COLLECTIVE_REQUEST":
                requested[process][otf2_text.numbers(event.text)["Request"]] = (position, event.time)
            elif event.kind == "NON_BLOCKING_COLLECTIVE_COMPLETE":
                start = requested[process].pop(otf2_text.numbers(event.text)["Request"], None)
                if start:
                    self.collective(event, start[0], start[1], False)

    def message(self, event, position, process, posted):
        fields = otf2_text.numbers(event.text)
        comm = self.definitions.comms[int(fields["Communicator"])]
        rank = fields.get("Receiver", fields.get("Sender"))
        peer = self.definitions.process_of[comm.peer(event.location, int(rank))]
        if "Receiver" in fields:
            self.sends[process, peer, comm.number, fields["Tag"]].append(event.time)
            return
        if event.kind == "MPI_IRECV":
            start = posted[process].pop(fields["Request"], None)
            if start is not None:
                position = start
                self.unfinished[process] -= 1
        self.receives[peer, process, comm.number, fields["Tag"]].append((position, event.time))

    def collective(self, event, position, begin, blocking):
        fields = otf2_text.numbers(event.text)
        member = Member(event.location, begin, event.time, fields["Operation"], fields["Root"], int(fields["Sent"]),
                        int(fields["Received"]))
        if member.op in KINDS | UNKNOWN_PAIRS:
            self.members[int(fields["Communicator"]), blocking][event.location].append((position, member))

    def one_number_per_comm(self):
        """Merges communicators that processes know by different numbers (EZTrace): the same members, used apart.

        The j-th number that a member uses for this list of members stands for the same communicator as the j-th of
        each other member. Nothing happens where all members use the same numbers.
        """
        numbers = defaultdict(lambda: defaultdict(list))  # (members, blocking?) -> location -> [comm]
        for (number, blocking), at in self.members.items():
            members = self.definitions.comms[number].members
            if members:
                for location in at:
                    numbers[tuple(members), blocking][location].append(number)
        for (_, blocking), of in numbers.items():
            lists = [sorted(used) for used in of.values()]
            if all(one == lists[0] for one in lists) or len({len(one) for one in lists}) != 1:
                continue
            for location, used in of.items():
                for own, common in zip(sorted(used), lists[0]):
                    if own != common:
                        moved = self.members[own, blocking].pop(location)
                        self.members[common, blocking][location] = moved


@dataclass
class Result:
    latency: int
    checked: Counter = field(default_factory=Counter)
    violations: Counter = field(default_factory=Counter)
    left_out: Counter = field(default_factory=Counter)
    pairs: dict = field(default_factory=dict)  # name -> (time of the last thing sent, time received)

    def pair(self, kind, name, sent, received):
        self.checked[kind] += 1
        self.pairs[kind + " " + name] = sent, received
        if received < sent + self.latency:
            self.violations[kind] += 1

    def worst(self, count):
        """The names of the worst violations."""
        late = [name for name, (sent, received) in self.pairs.items() if received < sent + self.latency]
        return sorted(late, key=lambda name: self.pairs[name][1] - self.pairs[name][0])[:count]


def check_messages(trace, result):
    for key in sorted(set(trace.sends) | set(trace.receives)):
        sends, receives = trace.sends.get(key, []), sorted(trace.receives.get(key, []))
        unequal = abs(len(sends) - len(receives))
        if unequal and trace.unfinished[key[1]] > 0:
            result.left_out["messages of pairs with lost completions"] += max(len(sends), len(receives))
            continue
        result.left_out["unmatched sends or receives"] += unequal
        for k, (sent, (_, received)) in enumerate(zip(sends, receives), 1):
            result.pair("message", "%d of process %d to %d, communicator %d, tag %s" % (k, *key), sent, received)


def check_instance(members, result, name):
    """`members` by rank in the communicator."""
    op, root = members[0].op, members[0].root
    kind = op.lower()
    everybody = op == "BARRIER"
    for rank, receiver in enumerate(members):
        if not (receiver.received > 0 or everybody) or (op in ROOT_RECEIVES and str(rank) != root):
            continue
        begins = [
            sender.begin
            for other, sender in enumerate(members)
            if other != rank
            and (sender.sent > 0 or everybody)
            and not (op in ROOT_SENDS and str(other) != root)
            and not (op in PREFIX and other > rank)
        ]
        if begins:
            result.pair(kind, "%s, rank %d" % (name, rank), max(begins), receiver.end)


def check_collectives(trace, result):
    trace.one_number_per_comm()
    for (number, blocking), at in sorted(trace.members.items()):
        comm = trace.definitions.comms[number]
        lists = [[member for _, member in sorted(at.get(location, []), key=lambda pair: pair[0])]
                 for location in (comm.members or [])]
        if comm.remote is not None:
            result.left_out["collectives on inter-communicators"] += sum(map(len, at.values()))
            continue
        for k in range(max(map(len, lists), default=0)):
            members = [one[k] for one in lists if k < len(one)]
            if len(members) < len(lists):
                result.left_out["collectives that some member lacks"] += 1
            elif len({(member.op, member.root) for member in members}) > 1:
                result.left_out["collectives that differ between members"] += 1
            elif members[0].op in UNKNOWN_PAIRS:
                result.left_out["alltoallv and alltoallw"] += 1
            elif len(members) > 1:
                name = "%d on communicator %d" % (k + 1, number)
                check_instance(members, result, name if blocking else "(non-blocking) " + name)


def check(anchor, latency):
    """Reads the archive and checks all of it."""
    trace = Trace(anchor)
    result = Result(latency)
    check_messages(trace, result)
    check_collectives(trace, result)
    if trace.backward:
        result.violations["time goes backward in a location"] = trace.backward
    return trace, result


def show_pair(label, sent, received):
    print("    %s sent %d, received %d: %+d ticks" % (label, sent, received, received - sent))


def main():
    parser = argparse.ArgumentParser(description="Counts the violations of the clock condition in an OTF2 archive.")
    parser.add_argument("archive", help="the anchor file (*.otf2)")
    parser.add_argument("--min-latency", type=int, default=0, metavar="TICKS", help="default: 0")
    parser.add_argument("--list", type=int, default=3, metavar="N", help="show the worst N violations (default: 3)")
    parser.add_argument("--after", metavar="ARCHIVE", help="show the same pairs in this archive")
    arguments = parser.parse_args()
    try:
        trace, result = check(arguments.archive, arguments.min_latency)
        after = check(arguments.after, arguments.min_latency)[1] if arguments.after else None
    except (otf2_text.Unreadable, OSError) as error:
        print("check_clock_condition.py: %s" % error, file=sys.stderr)
        return 2
    print("%d events, %d cancelled receives" % (trace.events, trace.cancelled))
    for kind in sorted(set(result.checked) | set(result.violations)):
        print("%-22s %7d violations of %7d" % (kind, result.violations[kind], result.checked[kind]))
    for reason, count in sorted(result.left_out.items()):
        if count:
            print("left out: %d %s" % (count, reason))
    for name in result.worst(arguments.list):
        print(name)
        show_pair("before:" if after else "", *result.pairs[name])
        if after and name in after.pairs:
            show_pair("after: ", *after.pairs[name])
    total = sum(result.violations.values())
    print("total violations: %d" % total)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
