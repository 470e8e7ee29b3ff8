#!/usr/bin/python3
"""Counts the violations of the clock condition in an OTF2 archive.

    check_clock_condition.py ARCHIVE.otf2 [--min-latency TICKS] [--list N] [--after CORRECTED.otf2]

An independent judge of corrected traces: it reads what otf2-print prints and shares no code with the program. The
clock condition: what is received is received no earlier than it was sent, plus the minimum latency.

Messages. Those of one sender, receiver, communicator and tag match in the order of the sends and the order in which
the receives were posted: where the request was recorded, or where the call of a blocking one was entered. Left out:
cancelled and unfinished requests. Where numbers or lengths of sends and receives disagree, or a request was not
recorded, records are missing, and only this is checked:

    receives are missing     a receive got the message of the first send that it can have got, or of a later one: not
                             before that send (an "implied order"; a message if there is only one send that it can be)
    sends are missing        a send went to the last receive that it can have gone to, or to an earlier one: before that
    both                     pairs of equal length that every longest common sequence of lengths has

Threads that send, or that receive, on the same channel need not be served in the order of their calls. If that order is violated in any such channel, the
k-th send comes before the k-th completed receive (counted from the last ones where sends are missing); also where records disagree.

Lengths do not count if receives seem to be recorded with the lengths of their buffers.

Collectives. The k-th operation on a communicator is the k-th of each member, blocking and non-blocking ones counted
apart. Each member has a begin and an end. Which begins must precede which ends of *other* members:

    Bcast, Scatter(v)        the root's begin, every end
    Reduce, Gather(v)        every begin, the root's end
    Scan, Exscan             the begins of all lower ranks, each end
    Alltoallv, Alltoallw     none: the record does not tell who exchanged data with whom
    Barrier, all others      every begin, every end

A member that sent (received) no bytes constrains (is constrained by) nobody, except in a Barrier. Instances that
some member does not have, or that members have as different operations, are counted and left out; operations on
handles (creating communicators, windows, ...) constrain nobody. On an inter-communicator, those of one group constrain those of the other one.

Synchronous sends. The end of MPI_Ssend, the completion of an MPI_Issend: not before the call that posts its receive (MPI_Recv, MPI_Sendrecv,
MPI_Irecv, MPI_Start) was entered.

Windows. The k-th fence of a member is the k-th of all; it is a barrier if any of them has accessed the window since its fence before, not under a
lock nor between start and complete; other fences may have been asserted to be none, and are left out. The k-th epoch of two processes is the
k-th for both: MPI_Win_complete is left after MPI_Win_post was entered, MPI_Win_wait is left after MPI_Win_complete was entered.

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
# After these in a region, the region is not that of a call which receives.
OTHER_COMMUNICATION = {
    "MPI_RECV",
    "MPI_IRECV",
    "MPI_IRECV_REQUEST",
    "MPI_REQUEST_CANCELLED",
    "MPI_COLLECTIVE_BEGIN",
    "MPI_COLLECTIVE_END",
    "NON_BLOCKING_COLLECTIVE_REQUEST",
    "NON_BLOCKING_COLLECTIVE_COMPLETE",
}
# Cells of a table; two lists of lengths that need a larger one are left out.
LARGEST_TABLE = 10_000_000
POSTS = {"MPI_RECV", "MPI_SENDRECV", "MPI_SENDRECV_REPLACE", "MPI_IRECV", "MPI_START", "MPI_STARTALL"}
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
    groups: dict = field(default_factory=dict)  # number -> locations
    windows: dict = field(default_factory=dict)  # number -> number of the communicator


@dataclass
class Call:
    """A region that a location is in."""

    position: int
    name: str
    enter: int
    sends_only: bool = True  # so far
    sent: object = None  # the synchronous send in it
    groups: list = field(default_factory=list)  # (window, group) of the epochs that it is a step of


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


def reference(field, text):
    """The number of the definition that a field of another one names."""
    match = re.search(rf"{field}: {NAME} <(\d+)>", text)
    if match is None:
        raise otf2_text.Unreadable(f"no {field} in {text}")
    return int(match[1])


def read_definitions(anchor):
    found = Definitions()
    groups, self_groups, comms = {}, set(), []
    for line in otf2_text.run("-G", "--silent", "--", anchor):
        match = re.match(r"(LOCATION|GROUP|COMM|INTER_COMM|RMA_WIN) +(\d+)  (.*)$", line)
        if not match:
            continue
        kind, number, text = match[1], int(match[2]), match[3]
        if kind == "RMA_WIN":
            found.windows[number] = reference("Communicator", text)
        elif kind == "LOCATION":
            found.process_of[number] = reference("Group", text)
        elif kind == "GROUP" and "Type: COMM_SELF" in text:
            self_groups.add(number)
        elif kind == "GROUP" and "Type: COMM_GROUP" in text:
            groups[number] = [int(m) for m in re.findall(rf"\d+ \({NAME} <(\d+)>\)", text)]
        elif kind == "GROUP" and "Type: COMM_LOCATIONS" in text:
            # EZTrace gives this group and the world's group one number; the latter, which follows, counts.
            members = text.split("Member", 1)[1]
            groups[number] = [int(m) for m in re.findall(rf"{NAME} <(\d+)>", members)]
        elif kind in ("COMM", "INTER_COMM"):
            comms.append((number, [int(g) for g in re.findall(rf"Group(?: [AB])?: {NAME} <(\d+)>", text)]))
    found.groups = groups
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
        self.sends = defaultdict(list)  # key -> [(length, time)]
        self.threads = defaultdict(set)  # key, end -> locations
        self.unplaced_times = defaultdict(list)  # key -> [time]
        self.receives = defaultdict(list)  # key -> [(posting position, length, time)]
        self.unplaced = defaultdict(list)  # key -> [length], of receives whose request was not recorded
        self.members = defaultdict(lambda: defaultdict(list))  # (comm, blocking?) -> location -> [(position, Member)]
        self.backward = 0
        self.cancelled = 0
        self.events = 0
        posted = defaultdict(dict)  # process -> request -> position of the posting
        begun = defaultdict(list)  # location -> stack of begin times
        calls = defaultdict(list)  # location -> stack of Call
        self.synchronous = {}  # (key, number of the send) -> when it was over
        self.fences = defaultdict(lambda: defaultdict(list))  # window -> location -> [(begin, end, accessed)]
        self.steps = defaultdict(list)  # (call, window, process, other process) -> [(enter, leave)]
        open_sends = defaultdict(dict)  # process -> request -> synchronous send
        fence_begun, accesses, locked, epochs = {}, Counter(), Counter(), Counter()
        requested = defaultdict(dict)  # process -> request -> (position, time)
        last = {}
        for position, event in enumerate(otf2_text.events(anchor)):
            self.events += 1
            if event.time < last.get(event.location, 0):
                self.backward += 1
            last[event.location] = event.time
            process = self.definitions.process_of.get(event.location)
            stack = calls[event.location]
            if event.kind == "ENTER":
                region = re.match(r'Region: "(.*?)"', event.text)
                name = (region[1] if region else "").upper().rstrip("_")
                stack.append(Call(position, name[1:] if name.startswith("PMPI_") else name, event.time))
            elif event.kind == "LEAVE" and stack:
                call = stack.pop()
                if call.sent and call.name == "MPI_SSEND":
                    self.synchronous[call.sent] = event.time
                for window, group in call.groups:
                    for other in self.definitions.groups.get(group, []):
                        key = call.name, window, process, self.definitions.process_of[other]
                        self.steps[key].append((call.enter, event.time))
            inside = stack[-1] if stack else Call(position, "", event.time)
            if event.kind == "MPI_RECV":
                entered = inside.enter if inside.name in POSTS and inside.sends_only else None
                self.message(
                    event, inside.position if stack and inside.sends_only else position, process, posted, entered
                )
            if event.kind in OTHER_COMMUNICATION:
                for call in stack:
                    call.sends_only = False
            if event.kind in ("MPI_SEND", "MPI_ISEND", "MPI_IRECV"):
                self.message(event, position, process, posted)
            elif event.kind == "MPI_IRECV_REQUEST":
                entered = inside.enter if inside.name in POSTS else event.time
                posted[process][otf2_text.numbers(event.text)["Request"]] = position, entered
            elif event.kind == "MPI_REQUEST_CANCELLED":
                if posted[process].pop(otf2_text.numbers(event.text)["Request"], None) is not None:
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
            elif event.kind == "MPI_ISEND_COMPLETE":
                sent = open_sends[process].pop(otf2_text.numbers(event.text)["Request"], None)
                if sent:
                    self.synchronous[sent] = event.time
            elif event.kind.startswith("RMA_"):
                fields = otf2_text.numbers(event.text)
                window = event.location, fields.get("Window")
                if event.kind == "RMA_COLLECTIVE_BEGIN":
                    fence_begun[event.location] = event.time
                elif event.kind == "RMA_COLLECTIVE_END" and fields["Operation"] == "BARRIER":
                    fence = fence_begun.pop(event.location, event.time), event.time, accesses.pop(window, 0) > 0
                    self.fences[int(fields["Window"])][event.location].append(fence)
                elif event.kind == "RMA_GROUP_SYNC":
                    inside.groups.append((fields["Window"], int(fields["Group"])))
                    epochs[window] = inside.name in ("MPI_WIN_START", "MPI_WIN_POST")
                elif event.kind in ("RMA_REQUEST_LOCK", "RMA_ACQUIRE_LOCK"):
                    locked[window] = 1
                elif event.kind == "RMA_RELEASE_LOCK":
                    locked[window] = 0
                elif event.kind in ("RMA_PUT", "RMA_GET", "RMA_ATOMIC") and not locked[window] and not epochs[window]:
                    accesses[window] += 1
            if event.kind in ("MPI_SEND", "MPI_ISEND") and inside.name in ("MPI_SSEND", "MPI_ISSEND"):
                inside.sent = self.last_sent
                if event.kind == "MPI_ISEND":
                    open_sends[process][otf2_text.numbers(event.text)["Request"]] = self.last_sent

    def message(self, event, position, process, posted, entered=None):
        fields = otf2_text.numbers(event.text)
        comm = self.definitions.comms[int(fields["Communicator"])]
        rank = fields["Receiver"] if "Receiver" in fields else fields["Sender"]
        peer = self.definitions.process_of[comm.peer(event.location, int(rank))]
        length = int(fields["Length"])
        if "Receiver" in fields:
            key = process, peer, comm.number, fields["Tag"]
            self.last_sent = key, len(self.sends[key])
            self.sends[key].append((length, event.time))
            self.threads[key, "send"].add(event.location)
            return
        key = peer, process, comm.number, fields["Tag"]
        self.threads[key, "receive"].add(event.location)
        if event.kind == "MPI_IRECV":
            position, entered = posted[process].pop(fields["Request"], (None, None))
            if position is None:
                self.unplaced[key].append(length)
                self.unplaced_times[key].append(event.time)
                return
        self.receives[key].append((position, length, event.time, entered))

    def collective(self, event, position, begin, blocking):
        fields = otf2_text.numbers(event.text)
        member = Member(
            event.location,
            begin,
            event.time,
            fields["Operation"],
            fields["Root"],
            int(fields["Sent"]),
            int(fields["Received"]),
        )
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


def earliest(few, many):
    """The first places in `many` where the elements of `few` are found in this order; None if they are not."""
    places, at = [], 0
    for wanted in few:
        while at < len(many) and many[at] != wanted:
            at += 1
        if at == len(many):
            return None
        places.append(at)
        at += 1
    return places


def latest(few, many):
    places = earliest(few[::-1], many[::-1])
    return places and [len(many) - 1 - place for place in reversed(places)]


def in_all_longest(a, b):
    """The pairs of places (i, j) with a[i] == b[j] that every longest common subsequence has, and its length.

    None and 0 if that would take too long.
    """
    if (len(a) + 1) * (len(b) + 1) > LARGEST_TABLE:
        return None, 0
    rest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]  # [i][j]: longest of a[i:] and b[j:]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            rest[i][j] = rest[i + 1][j + 1] + 1 if a[i] == b[j] else max(rest[i + 1][j], rest[i][j + 1])
    length = rest[0][0]
    at_rank = defaultdict(list)
    done = [0] * (len(b) + 1)  # [j]: longest of a[:i] and b[:j]
    for i in range(len(a)):
        following = [0] * (len(b) + 1)
        for j in range(len(b)):
            following[j + 1] = done[j] + 1 if a[i] == b[j] else max(following[j], done[j + 1])
            if a[i] == b[j] and done[j] + 1 + rest[i + 1][j + 1] == length:
                at_rank[done[j]].append((i, j))
        done = following
    return [pairs[0] for pairs in at_rank.values() if len(pairs) == 1], length


def alone(a, b, elsewhere):
    """The pairs of places of what occurs once in `a`, once in `b`, and not `elsewhere`; none if they are not in order."""
    in_a, in_b = Counter(a), Counter(b)
    pairs = [(i, b.index(x)) for i, x in enumerate(a) if in_a[x] == in_b[x] == 1 and x not in elsewhere]
    return pairs if pairs == sorted(pairs, key=lambda pair: pair[1]) else []


def align(sends, receives, unplaced):
    """What is known of a channel, by the lengths of its records: places of messages and of implied orders."""
    known = len(receives) + len(unplaced)
    first = earliest(receives, sends) if len(sends) >= known else None
    if first is not None:
        last = latest(receives, sends)
        pairs = [(i, j, i == last[j]) for j, i in enumerate(first)]
    elif unplaced:
        return alone(sends, receives, unplaced), []
    elif known >= len(sends) and earliest(sends, receives) is not None:
        first = earliest(sends, receives)
        pairs = [(i, j, first[i] == j) for i, j in enumerate(latest(sends, receives))]
    else:
        return in_all_longest(sends, receives)[0] or [], []
    return [(i, j) for i, j, sure in pairs if sure], [(i, j) for i, j, sure in pairs if not sure]


def records_buffers(channels):
    """Whether receives are recorded with the lengths of their buffers: most lengths disagree, and all messages fit."""
    agree = disagree = equal = too_long = 0
    for sends, receives, unplaced in channels:
        if unplaced or not sends or not receives:
            continue
        if sends == receives:
            agree += len(sends)
            continue
        fewer = min(len(sends), len(receives))
        whole = earliest(sends, receives) is not None or earliest(receives, sends) is not None
        common = fewer if whole else in_all_longest(sends, receives)[1]
        agree += common
        disagree += fewer - common
        if len(sends) == len(receives):
            equal += len(sends)
            too_long += sum(sent > received for sent, received in zip(sends, receives))
    return disagree > agree and equal >= 16 and not too_long


def agree(trace, key):
    """Whether a channel has receives for all sends, with the same lengths."""
    sent, received = [one[0] for one in trace.sends[key]], [one[1] for one in trace.receives[key]]
    return not trace.unplaced[key] and sent == received


def wrong_order(trace, key, latency):
    """Whether threads that share a channel have received a message before it was sent, in the order of their calls."""
    pairs = zip(trace.sends[key], trace.receives[key])
    return agree(trace, key) and any(receive[2] < send[1] + latency for send, receive in pairs)


def of_threads(trace, key, in_order):
    """Of a channel that threads share: pairs of times that hold, and whether they are messages."""
    sends = [time for _, time in trace.sends[key]]
    called = [one[2] for one in trace.receives[key]] + trace.unplaced_times[key]
    agrees = agree(trace, key)
    if agrees and in_order:
        return [(send, receive, True) for send, receive in zip(sends, called)]
    # A message is what was called and complete as the k-th, after the same k - 1 others.
    order = sorted(range(len(called)), key=lambda place: called[place])
    sure, largest = [], -1
    for k, place in enumerate(order):
        sure.append(agrees and place == k and largest < k)
        largest = max(largest, place)
    completed = sorted(called)[max(0, len(called) - len(sends)) :]
    return list(zip(sends, completed, sure))


def check_messages(trace, result):
    channels = {}
    for key in sorted(set(trace.sends) | set(trace.receives) | set(trace.unplaced)):
        trace.receives[key].sort()
        lengths = [one[0] for one in trace.sends[key]], [one[1] for one in trace.receives[key]], trace.unplaced[key]
        channels[key] = lengths
    shared = {key for (key, _), threads in trace.threads.items() if len(threads) > 1 and key[0] != key[1]}
    in_order = not any(wrong_order(trace, key, result.latency) for key in sorted(shared))
    buffers = records_buffers(lengths for key, lengths in channels.items() if key[0] != key[1] and key not in shared)
    for key, (sends, receives, unplaced) in channels.items():
        if key in shared and sends and receives + unplaced:
            for k, (send, receive, is_message) in enumerate(of_threads(trace, key, in_order)):
                name = (
                    f"{k + 1} of process {key[0]} to {key[1]}, communicator {key[2]}, tag {key[3]}, of several threads"
                )
                result.pair("message" if is_message else "implied order", name, send, receive)
            result.left_out["unmatched sends or receives"] += abs(len(sends) - len(receives) - len(unplaced))
            continue
        missing = sends != receives or bool(unplaced)
        if missing and buffers:
            sends, receives, unplaced = [0] * len(sends), [0] * len(receives), [0] * len(unplaced)
        messages, implied = align(sends, receives, unplaced)
        result.left_out["unmatched sends or receives"] += len(sends) + len(receives) + len(unplaced) - 2 * len(messages)
        for kind, pairs in ("message", messages), ("implied order", implied):
            for i, j in pairs:
                name = f"{j + 1} of process {key[0]} to {key[1]}, communicator {key[2]}, tag {key[3]}"
                result.pair(kind, name, trace.sends[key][i][1], trace.receives[key][j][2])
                over, entered = trace.synchronous.get((key, i)), trace.receives[key][j][3]
                if kind == "message" and over is not None and entered is not None and key[0] != key[1]:
                    result.pair("synchronous send", name, entered, over)


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
            result.pair(kind, f"{name}, rank {rank}", max(begins), receiver.end)


def check_collectives(trace, result):
    trace.one_number_per_comm()
    for (number, blocking), at in sorted(trace.members.items()):
        comm = trace.definitions.comms[number]
        lists = [
            [member for _, member in sorted(at.get(location, []), key=lambda pair: pair[0])]
            for location in (comm.members or [])
        ]
        if comm.remote is not None:
            check_between_groups(comm, at, result)
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
                name = f"{k + 1} on communicator {number}"
                check_instance(members, result, name if blocking else "(non-blocking) " + name)


def check_between_groups(comm, at, result):
    """Collective operations of an inter-communicator: who sends anything constrains who receives anything in the other group."""
    groups = [[[member for _, member in sorted(at.get(location, []), key=lambda pair: pair[0])] for location in group]
              for group in (comm.members, comm.remote)]  # fmt: skip
    for k in range(min(len(own) for group in groups for own in group)):
        for here, there in groups, groups[::-1]:
            everybody = there[0][k].op == "BARRIER"
            begins = [own[k].begin for own in there if own[k].sent > 0 or everybody]
            for _rank, own in enumerate(here):
                if begins and (own[k].received > 0 or everybody):
                    name = f"{k + 1} on inter-communicator {comm.number}, location {own[k].location}"
                    result.pair(own[k].op.lower(), name, max(begins), own[k].end)


def check_windows(trace, result):
    for window, at in sorted(trace.fences.items()):
        members = trace.definitions.comms[trace.definitions.windows[window]].members or []
        lists = [at.get(location, []) for location in members]
        for k in range(min(map(len, lists), default=0)):
            fences = [own[k] for own in lists]
            if not any(accessed for _, _, accessed in fences):
                result.left_out["fences that may have been asserted not to synchronise"] += 1
                continue
            for rank, (_, end, _) in enumerate(fences):
                begins = [begin for other, (begin, _, _) in enumerate(fences) if other != rank]
                if begins:
                    result.pair("fence", f"{k + 1} of window {window}, rank {rank}", max(begins), end)
    for (call, window, own, other), steps in sorted(trace.steps.items()):
        for first, second in ("MPI_WIN_POST", "MPI_WIN_COMPLETE"), ("MPI_WIN_COMPLETE", "MPI_WIN_WAIT"):
            ends = trace.steps.get((second, window, other, own), [])
            if call == first and own != other and len(ends) == len(steps):
                for k, (step, end) in enumerate(zip(steps, ends)):
                    name = f"{k + 1} of window {window}, process {own} to {other}"
                    result.pair(second.lower(), name, step[0], end[1])


def check(anchor, latency):
    """Reads the archive and checks all of it."""
    trace = Trace(anchor)
    result = Result(latency)
    check_messages(trace, result)
    check_collectives(trace, result)
    check_windows(trace, result)
    if trace.backward:
        result.violations["time goes backward in a location"] = trace.backward
    return trace, result


def show_pair(label, sent, received):
    print(f"    {label} sent {sent}, received {received}: {received - sent:+} ticks")


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
        print(f"check_clock_condition.py: {error}", file=sys.stderr)
        return 2
    print(f"{trace.events} events, {trace.cancelled} cancelled receives")
    for kind in sorted(set(result.checked) | set(result.violations)):
        print(f"{kind:<22} {result.violations[kind]:7} violations of {result.checked[kind]:7}")
    for reason, count in sorted(result.left_out.items()):
        if count:
            print(f"left out: {count} {reason}")
    for name in result.worst(arguments.list):
        print(name)
        show_pair("before:" if after else "", *result.pairs[name])
        if after and name in after.pairs:
            show_pair("after: ", *after.pairs[name])
    total = sum(result.violations.values())
    print(f"total violations: {total}")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
