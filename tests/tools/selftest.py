#!/usr/bin/python3
"""Tests the two judges on archives whose answers are known: run it, it prints OK or what is wrong.

Each case is a handful of events of three processes on one communicator, written with python3-otf2.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import _otf2
import otf2
from otf2 import enums
from otf2.events import (
    Enter,
    Leave,
    MpiCollectiveBegin,
    MpiCollectiveEnd,
    MpiIrecv,
    MpiIrecvRequest,
    MpiIsend,
    MpiIsendComplete,
    MpiRecv,
    MpiRequestCancelled,
    MpiSend,
    NonBlockingCollectiveComplete,
    NonBlockingCollectiveRequest,
    RmaCollectiveBegin,
    RmaCollectiveEnd,
    RmaGroupSync,
    RmaPut,
)

HERE = Path(__file__).parent
NO_ROOT = 0xFFFFFFFF
OP = enums.CollectiveOp


def send(time, to, tag=0, length=8):
    return lambda comm, region: [MpiSend(time, to, comm, tag, length)]


def recv(time, source, tag=0, length=8):
    return lambda comm, region: [MpiRecv(time, source, comm, tag, length)]


def isend(time, to, request, tag=0):
    return lambda comm, region: [MpiIsend(time, to, comm, tag, 8, request), MpiIsendComplete(time, request)]


def post(time, request):
    return lambda comm, region: [MpiIrecvRequest(time, request)]


def irecv(time, source, request, tag=0):
    return lambda comm, region: [MpiIrecv(time, source, comm, tag, 8, request)]


def cancel(time, request):
    return lambda comm, region: [MpiRequestCancelled(time, request)]


def collective(begin, end, op, root=NO_ROOT, sent=8, received=8):
    return lambda comm, region: [
        MpiCollectiveBegin(begin),
        MpiCollectiveEnd(end, op, comm, root, sent, received),
    ]


def immediate(begin, end, op, root=NO_ROOT, sent=8, received=8):
    return lambda comm, region: [
        NonBlockingCollectiveRequest(begin, 5),
        NonBlockingCollectiveComplete(end, op, comm, root, sent, received, 5),
    ]


def enter(time):
    return lambda comm, region: [Enter(time, region)]


# What archives with `windows` define beside the rest: regions by name, a window, and for each process a group of it alone.
MORE = {}


def call(name, begin, end, *inside):
    """A call of MPI with events inside."""
    return lambda comm, region: [
        Enter(begin, MORE[name]),
        *(event for make in inside for event in make(comm, region)),
        Leave(end, MORE[name]),
    ]


def fence(begin, end):
    level = enums.RmaSyncLevel.PROCESS | enums.RmaSyncLevel.MEMORY
    return lambda comm, region: [
        RmaCollectiveBegin(begin),
        RmaCollectiveEnd(end, OP.BARRIER, level, MORE["window"], NO_ROOT, 0, 0),
    ]


def put(time):
    return lambda comm, region: [RmaPut(time, MORE["window"], 0, 8, 1)]


def step(name, begin, end, other):
    """A step of an epoch with one other process."""

    def sync(comm, region):
        return [RmaGroupSync(begin, enums.RmaSyncLevel.PROCESS, MORE["window"], MORE[other])]

    return call(name, begin, end, sync)


def write(folder, *processes, order=(0, 1, 2), region="main", offsets=(), windows=False):
    """An archive of three processes; `order` is the rank order of its one communicator."""
    writer = otf2.writer.Writer(str(folder), timer_resolution=10**9)
    definitions = writer.definitions
    node = definitions.system_tree_node("node")
    locations = [
        definitions.location(f"P{i}", group=definitions.location_group(f"P{i}", system_tree_parent=node))
        for i in range(3)
    ]
    mpi = enums.Paradigm.MPI
    kind = enums.GroupType
    definitions.groups.create("", group_type=kind.COMM_LOCATIONS, paradigm=mpi, members=tuple(locations))
    group = definitions.groups.create("", group_type=kind.COMM_GROUP, paradigm=mpi, members=tuple(order))
    comm = definitions.comms.create("world", group=group, parent=None, _type=otf2.definitions.Comm)
    main = definitions.region(region)
    if windows:
        for name in "MPI_Ssend", "MPI_Recv", "MPI_Win_post", "MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait":
            MORE[name] = definitions.region(name)
        MORE["window"] = definitions.rma_wins.create("w", comm=comm)
        for rank in range(3):
            MORE[rank] = definitions.groups.create("", group_type=kind.COMM_GROUP, paradigm=mpi, members=(rank,))
    for location, makers in zip(locations, processes):
        events = writer.event_writer_from_location(location)
        for time, offset in offsets:
            _otf2.DefWriter_WriteClockOffset(events._def_handle, time, offset, 0.0)
        for make in makers:
            for event in make(comm, main):
                events.write(event)
    writer.close()
    return str(folder / "traces.otf2")


class Case(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.made = 0

    def archive(self, *processes, **how):
        self.made += 1
        return write(self.folder / str(self.made), *processes, **how)

    def run_tool(self, tool, *arguments):
        done = subprocess.run([sys.executable, HERE / tool, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def violations(self, *processes, latency=0, **how):
        anchor = self.archive(*processes, **how)
        status, text = self.run_tool("check_clock_condition.py", anchor, "--min-latency", str(latency))
        total = int(text.split("total violations:")[1])
        self.assertEqual(status, 1 if total else 0, text)
        return total


class ClockCondition(Case):
    def test_a_message_may_arrive_when_it_is_sent_but_not_before(self):
        self.assertEqual(self.violations([send(10, 1)], [recv(10, 0)], []), 0)
        self.assertEqual(self.violations([send(10, 1)], [recv(9, 0)], []), 1)

    def test_minimum_latency_is_added(self):
        self.assertEqual(self.violations([send(10, 1)], [recv(14, 0)], [], latency=4), 0)
        self.assertEqual(self.violations([send(10, 1)], [recv(14, 0)], [], latency=5), 1)

    def test_receives_match_in_the_order_in_which_they_were_posted(self):
        # The second posted receive completes first. By completion order this would be a violation, or hide one.
        sends = [send(10, 1), send(30, 1)]
        self.assertEqual(self.violations(sends, [post(1, 7), post(2, 8), irecv(31, 0, 8), irecv(32, 0, 7)], []), 0)
        self.assertEqual(self.violations(sends, [post(1, 7), post(2, 8), irecv(20, 0, 8), irecv(32, 0, 7)], []), 1)

    def test_tags_are_matched_apart(self):
        self.assertEqual(self.violations([send(10, 1, 1), send(20, 1, 2)], [recv(20, 0, 2), recv(21, 0, 1)], []), 0)

    def test_a_cancelled_receive_takes_no_message(self):
        receives = [post(1, 7), post(2, 8), cancel(3, 7), irecv(11, 0, 8)]
        self.assertEqual(self.violations([isend(10, 1, 4)], receives, []), 0)

    def test_ranks_are_those_of_the_communicator(self):
        # Rank 0 is the last process: it sends to rank 2, the first process.
        self.assertEqual(self.violations([recv(9, 0)], [], [send(10, 2)], order=(2, 1, 0)), 1)

    def test_where_records_are_missing_only_what_the_order_implies_is_checked(self):
        receives = [post(1, 7), recv(5, 0)]  # either message may have gone to the request
        self.assertEqual(self.violations([send(4, 1), send(6, 1)], receives, []), 0)
        self.assertEqual(self.violations([send(6, 1), send(7, 1)], receives, []), 1)
        # One of two sends is missing: the other comes before the second receive.
        self.assertEqual(self.violations([send(10, 1)], [recv(5, 0), recv(10, 0)], []), 0)
        self.assertEqual(self.violations([send(10, 1)], [recv(5, 0), recv(9, 0)], []), 1)

    def test_lengths_tell_what_is_missing(self):
        sends = [send(time, 1, 0, 8 * time) for time in range(1, 6)]
        receives = [recv(time, 0, 0, 8 * time) for time in (2, 4)]
        self.assertEqual(self.violations(sends, receives, []), 0)
        self.assertEqual(self.violations(sends, [recv(2, 0, 0, 16), recv(3, 0, 0, 32)], []), 1)
        # Records are missing at both ends.
        self.assertEqual(self.violations(sends[1:], [recv(1, 0, 0, 8), *receives], []), 0)
        self.assertEqual(self.violations(sends[1:], [recv(1, 0, 0, 8), recv(1, 0, 0, 16)], []), 1)

    def test_a_receive_without_a_request_may_have_been_posted_at_any_time(self):
        self.assertEqual(self.violations([send(1, 1), send(9, 1)], [recv(5, 0), irecv(6, 0, 3)], []), 0)
        self.assertEqual(self.violations([send(6, 1), send(9, 1)], [recv(5, 0), irecv(6, 0, 3)], []), 1)

    def test_a_process_never_constrains_itself(self):
        short = collective(10, 11, OP.BARRIER, sent=0, received=0)
        early = collective(5, 15, OP.BARRIER, sent=0, received=0)
        # The first two end at 15 = 10 + 5; the third begins at 10, ends at 11: fine, the others began at 5.
        self.assertEqual(self.violations([early], [early], [short], latency=5), 0)

    def test_barrier_counts_without_bytes(self):
        a, b = (collective(t, t + 5, OP.BARRIER, sent=0, received=0) for t in (0, 10))
        self.assertEqual(self.violations([a], [a], [b]), 2)

    def test_broadcast_constrains_all_but_the_root(self):
        root = collective(10, 11, OP.BCAST, root=1, sent=24)
        late, early = (collective(0, t, OP.BCAST, root=1, sent=0) for t in (10, 9))
        self.assertEqual(self.violations([late], [root], [early]), 1)

    def test_reduction_constrains_only_the_root(self):
        root = collective(0, 9, OP.REDUCE, root=2)
        other, leaf = collective(1, 2, OP.REDUCE, root=2, received=0), collective(10, 11, OP.REDUCE, root=2, received=0)
        self.assertEqual(self.violations([other], [leaf], [root]), 1)
        self.assertEqual(self.violations([other], [other], [root]), 0)

    def test_members_without_bytes_do_not_count(self):
        silent = collective(10, 11, OP.ALLGATHERV, sent=0)
        deaf = collective(0, 5, OP.ALLGATHERV, received=0)
        self.assertEqual(self.violations([silent], [deaf], [collective(0, 5, OP.ALLGATHERV)]), 0)

    def test_scan_goes_up_in_rank_order(self):
        late, early = (collective(t, t + 1, OP.SCAN) for t in (10, 0))
        self.assertEqual(self.violations([early], [early], [late]), 0)
        self.assertEqual(self.violations([late], [early], [early]), 2)
        self.assertEqual(self.violations([late], [early], [early], order=(2, 1, 0)), 0)

    def test_alltoallv_says_nothing(self):
        late, early = (collective(t, t + 1, OP.ALLTOALLV) for t in (10, 0))
        self.assertEqual(self.violations([early], [early], [late]), 0)

    def test_handles_synchronise_nobody(self):
        late, early = (collective(t, t + 1, OP.CREATE_HANDLE) for t in (10, 0))
        self.assertEqual(self.violations([early], [early], [late]), 0)

    def test_non_blocking_collectives_count_apart(self):
        fine = [collective(0, 5, OP.ALLREDUCE)]
        late, early = (immediate(t, t + 1, OP.BARRIER) for t in (20, 10))
        self.assertEqual(self.violations(fine + [late], fine + [early], fine + [early]), 2)

    def test_incomplete_instances_are_left_out(self):
        one = collective(0, 1, OP.ALLREDUCE)
        self.assertEqual(self.violations([one, collective(100, 101, OP.ALLREDUCE)], [one], [one]), 0)

    def test_instances_are_counted_per_member(self):
        first, second = collective(0, 10, OP.ALLREDUCE), collective(20, 30, OP.ALLREDUCE)
        self.assertEqual(self.violations([first, second], [first, second], [first, second]), 0)
        hasty = collective(11, 12, OP.ALLREDUCE)
        self.assertEqual(self.violations([first, second], [first, second], [first, hasty]), 1)

    def test_a_synchronous_send_ends_after_its_receive_was_posted(self):
        receive = call("MPI_Recv", 20, 25, recv(24, 0))
        self.assertEqual(self.violations([call("MPI_Ssend", 10, 20, send(11, 1))], [receive], [], windows=True), 0)
        self.assertEqual(self.violations([call("MPI_Ssend", 10, 19, send(11, 1))], [receive], [], windows=True), 1)
        # An ordinary one may be over before.
        self.assertEqual(self.violations([send(11, 1)], [receive], [], windows=True), 0)

    def test_fences_that_end_accesses_are_barriers(self):
        self.assertEqual(self.violations([put(1), fence(5, 10)], [fence(9, 12)], [fence(10, 11)], windows=True), 0)
        self.assertEqual(self.violations([put(1), fence(5, 10)], [fence(9, 12)], [fence(11, 11)], windows=True), 1)
        # Nobody can tell what these two are.
        self.assertEqual(self.violations([fence(5, 10)], [fence(9, 12)], [fence(11, 11)], windows=True), 0)

    def test_epochs_of_groups(self):
        target = [step("MPI_Win_post", 10, 11, 1), step("MPI_Win_wait", 12, 30, 1)]
        origin = [step("MPI_Win_start", 5, 6, 0), step("MPI_Win_complete", 7, 10, 0)]
        self.assertEqual(self.violations(target, origin, [], windows=True), 0)
        origin[1] = step("MPI_Win_complete", 7, 9, 0)
        self.assertEqual(self.violations(target, origin, [], windows=True), 1)
        origin[1] = step("MPI_Win_complete", 31, 32, 0)
        self.assertEqual(self.violations(target, origin, [], windows=True), 1)

    def test_clock_offsets_are_applied(self):
        offsets = ((0, -100), (1000, 900))  # doubles time: t -> 2t - 100
        self.assertEqual(self.violations([send(100, 1)], [recv(104, 0)], [], latency=8, offsets=offsets), 0)
        self.assertEqual(self.violations([send(100, 1)], [recv(104, 0)], [], latency=9, offsets=offsets), 1)


class Comparison(Case):
    def verdict(self, one, other):
        status, text = self.run_tool("compare_otf2.py", one, other)
        return status, text

    def test_times_and_only_times_may_differ(self):
        one = self.archive([send(10, 1)], [recv(9, 0)], [enter(1)])
        self.assertEqual(self.verdict(one, self.archive([send(10, 1)], [recv(12, 0)], [enter(3)]))[0], 0)
        for other in (
            [[send(10, 1, tag=1)], [recv(9, 0)], [enter(1)]],
            [[send(10, 1)], [recv(9, 0)], []],
            [[send(10, 1)], [recv(9, 0)], [enter(1), enter(2)]],
            [[isend(10, 1, 4)], [recv(9, 0)], [enter(1)]],
        ):
            status, text = self.verdict(one, self.archive(*other))
            self.assertEqual(status, 1, text)

    def test_order_matters(self):
        one = self.archive([send(10, 1), send(11, 2)], [], [])
        other = self.archive([send(10, 2), send(11, 1)], [], [])
        self.assertEqual(self.verdict(one, other)[0], 1)

    def test_definitions_matter(self):
        one = self.archive([enter(1)], [], [])
        self.assertEqual(self.verdict(one, self.archive([enter(1)], [], [], region="niam"))[0], 1)
        self.assertEqual(self.verdict(one, self.archive([enter(1)], [], [], order=(1, 0, 2)))[0], 1)

    def test_offsets_must_not_be_left(self):
        one = self.archive([enter(1)], [], [], offsets=((0, 5), (10, 5)))
        self.assertEqual(self.verdict(one, one)[0], 1)
        self.assertEqual(self.verdict(one, self.archive([enter(6)], [], []))[0], 0)
        self.assertEqual(self.verdict(one, self.archive([enter(6)], [], [], offsets=((0, 0), (10, 0))))[0], 0)

    def test_unreadable(self):
        one = self.archive([enter(1)], [], [])
        self.assertEqual(self.verdict(one, str(self.folder / "nothing.otf2"))[0], 2)


if __name__ == "__main__":
    unittest.main()
