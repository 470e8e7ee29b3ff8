#!/usr/bin/python3
"""Counts the violated orders between the threads of a process in an OTF2 archive.

    check_thread_orders.py ARCHIVE.otf2 [--list N]

An independent judge, as check_clock_condition.py is for messages: it reads what otf2-print prints and shares no code with the program.

    fork, join     ThreadFork not after each ThreadTeamBegin, each ThreadTeamEnd not after ThreadJoin. The main thread of a team is the one that begins it right after a
                   fork; the k-th time that another thread begins it belongs to the k-th time of the main thread
    barrier        no thread leaves it before another one has entered it. Regions with the role of a barrier of OpenMP; the k-th of a thread in its team is the k-th of all
    lock           a release not after the next acquisition, by the numbers in the records
    task           ThreadTaskCreate not after the first ThreadTaskSwitch to it at any location

Instances that not all threads of a team have, or with different numbers of barriers, are counted and left out.

Exit status: 0 no violation, 1 violations, 2 the archive cannot be read.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import otf2_text
from otf2_text import NAME


@dataclass
class Membership:
    """What a thread does in a team: one of the times that it is in it."""

    begin: int
    fork: int | None
    end: int | None = None
    join: int | None = None
    barriers: list = field(default_factory=list)  # (entered, left)


@dataclass
class Thread:
    """What is open at a location."""

    forks: list = field(default_factory=list)  # (time, membership that followed, if any)
    forked: bool = False
    teams: list = field(default_factory=list)  # (team, Membership)
    barriers: list = field(default_factory=list)  # when entered


class Orders:
    """Pairs that have been compared."""

    def __init__(self):
        self.checked, self.violations, self.left_out, self.pairs = Counter(), Counter(), Counter(), []

    def pair(self, kind, before, after, name):
        self.checked[kind] += 1
        if before > after:
            self.violations[kind] += 1
            self.pairs.append((before - after, f"{kind} {name}: {before} is after {after}"))


def definitions(anchor):
    """Names of regions that are barriers of threads, and the process of each location."""
    barriers, process_of = set(), {}
    for line in otf2_text.run("-G", "--silent", "--", anchor):
        match = re.match(r"(LOCATION|REGION) +(\d+)  (.*)$", line)
        if match and match[1] == "LOCATION":
            group = re.search(rf"Group: {NAME} <(\d+)>", match[3])
            if group is None:
                raise ValueError(f"a location without a group: {line}")
            process_of[int(match[2])] = int(group[1])
        elif (
            match
            and re.search(r"Paradigm: \"?OpenMP", match[3], re.IGNORECASE)
            and re.search(r"Role: (IMPLICIT_)?BARRIER", match[3])
        ):
            barriers.add(int(match[2]))
    return barriers, process_of


def number(text, name):
    """The number of the definition that a field of an event names."""
    match = re.search(rf"{name}: {NAME} <(\d+)>", text)
    return int(match[1]) if match else None


def read(anchor, orders):
    barriers, process_of = definitions(anchor)
    threads = defaultdict(Thread)
    teams = defaultdict(lambda: defaultdict(list))  # (process, team) -> location -> [Membership]
    acquired, released = defaultdict(dict), defaultdict(dict)  # (process, model, lock) -> number -> time
    created, switched = {}, defaultdict(dict)  # (process, team, creator, number) -> time; -> location -> time
    for event in otf2_text.events(anchor):
        here, time, process = threads[event.location], event.time, process_of.get(event.location)
        fields = otf2_text.numbers(event.text) if event.kind.startswith("THREAD_") else {}
        if event.kind.startswith("THREAD_"):
            forked, here.forked = here.forked, False
        if event.kind == "THREAD_FORK":
            here.forks.append([time, None])
            here.forked = True
        elif event.kind == "THREAD_JOIN" and here.forks:
            membership = here.forks.pop()[1]
            if membership:
                membership.join = time
        elif event.kind == "THREAD_TEAM_BEGIN":
            membership = Membership(time, here.forks[-1][0] if forked else None)
            if forked:
                here.forks[-1][1] = membership
            team = number(event.text, "Thread Team")
            teams[process, team][event.location].append(membership)
            here.teams.append((team, membership))
        elif event.kind == "THREAD_TEAM_END" and here.teams:
            here.teams.pop()[1].end = time
        elif event.kind == "ENTER" and number(event.text, "Region") in barriers:
            here.barriers.append(time)
        elif event.kind == "LEAVE" and number(event.text, "Region") in barriers and here.barriers:
            entered = here.barriers.pop()
            if here.teams:
                here.teams[-1][1].barriers.append((entered, time))
        elif event.kind in ("THREAD_ACQUIRE_LOCK", "THREAD_RELEASE_LOCK"):
            of = acquired if event.kind == "THREAD_ACQUIRE_LOCK" else released
            order = int(fields["Acquisition Order"])
            of[process, fields["Model"], fields["Lock"]][order] = time
        elif event.kind in ("THREAD_TASK_CREATE", "THREAD_TASK_SWITCH"):
            team = number(event.text, "Thread Team")
            task = process, team, fields["Creating Thread"], fields["Generation Number"]
            if event.kind == "THREAD_TASK_CREATE":
                created[task] = time
            else:
                switched[task].setdefault(event.location, time)
    return teams, acquired, released, created, switched


def check(anchor):
    orders = Orders()
    teams, acquired, released, created, switched = read(anchor, orders)
    for (_, team), at in teams.items():
        masters = [location for location, list in at.items() if all(one.fork is not None for one in list)]
        counts = {len(list) for list in at.values()}
        if len(masters) != 1 or len(counts) != 1:
            orders.left_out["times that threads were in teams"] += sum(len(list) for list in at.values())
            continue
        for k, main in enumerate(at[masters[0]]):
            name = f"{k} of team {team}"
            members = [list[k] for list in at.values()]
            for one in members:
                orders.pair("fork", main.fork, one.begin, name)
                if one.end is not None and main.join is not None:
                    orders.pair("join", one.end, main.join, name)
            if len({len(one.barriers) for one in members}) != 1:
                orders.left_out["barriers"] += sum(len(one.barriers) for one in members)
                continue
            for passes in zip(*(one.barriers for one in members)):
                if len(passes) > 1:
                    last, first = max(entered for entered, _ in passes), min(left for _, left in passes)
                    orders.pair("barrier", last, first, name)
    for lock, of in acquired.items():
        numbers = sorted(of)
        for one, following in zip(numbers, numbers[1:]):
            if one in released[lock]:
                orders.pair("lock", released[lock][one], of[following], f"{one} of {lock}")
    for task, time in created.items():
        for location, start in switched[task].items():
            orders.pair("task", time, start, f"{task} at {location}")
    return orders


def main():
    parser = argparse.ArgumentParser(description="Counts the violated orders between threads in an OTF2 archive.")
    parser.add_argument("archive", help="the anchor file (*.otf2)")
    parser.add_argument("--list", type=int, default=3, metavar="N", help="show the worst N violations (default: 3)")
    arguments = parser.parse_args()
    try:
        orders = check(arguments.archive)
    except (otf2_text.Unreadable, OSError) as error:
        print(f"check_thread_orders.py: {error}", file=sys.stderr)
        return 2
    for kind, checked in sorted(orders.checked.items()):
        print(f"{kind:<8} {orders.violations[kind]:7} violations of {checked:7}")
    for what, count in orders.left_out.items():
        print(f"left out: {count} {what}")
    for _, text in sorted(orders.pairs, reverse=True)[: arguments.list]:
        print(text)
    total = sum(orders.violations.values())
    print(f"total violations: {total}")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
