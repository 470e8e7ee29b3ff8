"""How to pair messages to round trips for a line through two clocks: consecutive ones, or the quickest of a window?

    scripts/round_trips          the table of docs/clocks.md (needs python3-otf2)

Clocks are straight lines, so all that is left is the error of the line: root mean square over the sends of a pair, then over the
pairs. The slowest tenth of the round trips is dropped. `weighted` is as `--presync regression` weighs them: by how much longer they
took than the quick ones.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from . import page
from .runner import alone, scratch

USUAL = "--ranks 8 --ranks-per-node 1 --events 20k --compute 1ms --measurements 0 --seed 7"
SCENARIOS = {
    "halo1d": "--pattern halo1d --imbalance 0",
    "halo1d, imbalance 0.1": "--pattern halo1d --imbalance 0.1",
    "halo1d, imbalance 0.5": "--pattern halo1d --imbalance 0.5",
    "random, imbalance 0.1": "--pattern random --imbalance 0.1",
    "butterfly, imbalance 0.1": "--pattern butterfly --imbalance 0.1",
    "master-worker, imbalance 0.1": "--pattern master-worker --imbalance 0.1",
}
SENDS, RECEIVES = ("MpiSend", "MpiIsend"), ("MpiRecv", "MpiIrecv")


# Sent and received, of a message; by sender and receiver, of all messages of a trace, in order.
Times = tuple[int, int]
Messages = dict[tuple[int, int], list[Times]]


class Sample(NamedTuple):
    """A point of a line: an offset of two clocks at a time."""

    time: float
    offset: float
    weight: float = 1.0
    # Half the round trip that it is from.
    half: float = 0.0


def messages(trace: Path) -> Messages:
    import otf2

    ends: dict[tuple[int, int, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    with otf2.reader.open(str(trace / "traces.otf2")) as reader:
        for location, event in reader.events:
            number = re.search(r"\d+", location.group.name)
            assert number, location.group.name
            rank, kind = int(number.group()), type(event).__name__
            if kind in SENDS:
                ends[rank, event.receiver, event.msg_tag][0].append(event.time)
            elif kind in RECEIVES:
                ends[event.sender, rank, event.msg_tag][1].append(event.time)
    pairs: Messages = defaultdict(list)
    for (sender, receiver, _), (sent, received) in ends.items():
        assert len(sent) == len(received)
        pairs[sender, receiver] += zip(sent, received)
    return {pair: sorted(times) for pair, times in pairs.items()}


def line(samples: Sequence[Sample]) -> tuple[float, float]:
    """Intercept and slope of the least-squares line."""
    total = sum(s.weight for s in samples)
    time, value = (sum(s.weight * s[k] for s in samples) / total for k in (0, 1))
    spread = sum(s.weight * (s.time - time) ** 2 for s in samples)
    slope = sum(s.weight * (s.time - time) * (s.offset - value) for s in samples) / spread
    return value - slope * time, slope


def consecutive(there: Sequence[Times], back: Sequence[Times]) -> list[Sample]:
    """Each message with the next one that was sent back after it had arrived."""
    trips, k = [], 0
    for sent, received in there:
        while k < len(back) and back[k][0] < received:
            k += 1
        if k < len(back):
            answered, returned = back[k]
            offset, half = (
                ((received - sent) + (answered - returned)) / 2,
                ((returned - sent) - (answered - received)) / 2,
            )
            trips.append(Sample((sent + returned) / 2, offset, 1.0, half))
            k += 1
    return trips


def windows(there: Sequence[Times], back: Sequence[Times], messages_each: int) -> list[Sample]:
    """The quickest message of either direction in windows that have `messages_each` of them on average."""
    first = min(there[0][0], back[0][1])
    width = (max(there[-1][0], back[-1][1]) - first) / max(1, min(len(there), len(back)) // messages_each) + 1
    quickest: dict[int, list[float]] = defaultdict(lambda: [math.inf, math.inf])
    for side, times in enumerate((there, [(received, sent) for sent, received in back])):
        for own, other in times:
            window = quickest[int((own - first) // width)]
            window[side] = min(window[side], other - own if side == 0 else own - other)
    complete = ((first + (k + 0.5) * width, *both) for k, both in quickest.items() if math.inf not in both)
    return [Sample(time, (f - g) / 2, 1.0, (f + g) / 2) for time, f, g in complete]


def weighted(trips: Sequence[Sample]) -> list[Sample]:
    halves = sorted(trip.half for trip in trips)
    quick = halves[len(halves) // 10]
    return [trip._replace(weight=1 / ((0.02 * quick) ** 2 + max(0, trip.half - quick) ** 2)) for trip in trips]


def confident(trips: Iterable[Sample]) -> list[Sample]:
    ordered = sorted(trips, key=lambda trip: trip.half)
    return ordered[: max(3, math.ceil(0.9 * len(ordered)))]


def methods(there: Sequence[Times], back: Sequence[Times]) -> Iterator[tuple[str, list[Sample]]]:
    """The ways to pair messages, each also with weights."""
    pairings = {"consecutive": consecutive(there, back)}
    pairings |= {f"windows of {count}": windows(there, back, count) for count in (1, 2, 8)}
    for name, trips in pairings.items():
        yield name, trips
        yield f"{name}, weighted", weighted(trips)


def errors(arguments: str, directory: Path) -> dict[str, float]:
    """Root mean square over the pairs, by method."""
    traces = []
    for clock in ("linear", "perfect"):
        trace = directory / clock
        alone("simulate", trace, "-q", "--force", "--clock", clock, *USUAL.split(), *arguments.split())
        traces.append(messages(trace))
    seen, true = traces
    squares: dict[str, list[float]] = defaultdict(list)
    for a, b in (pair for pair in seen if pair[0] < pair[1] and pair[::-1] in seen):
        there, back = seen[a, b], seen[b, a]
        of_b = [Sample(t, r - t) for (_, r), (_, t) in zip(there, true[a, b])]
        intercept, slope = line(of_b + [Sample(t, s - t) for (s, _), (t, _) in zip(back, true[b, a])])
        truth = [(s, intercept + slope * t - (s - t)) for (s, _), (t, _) in zip(there, true[a, b])]
        for name, samples in methods(there, back):
            height, rise = line(confident(samples))
            squares[name].append(sum((height + rise * t - off) ** 2 for t, off in truth) / len(truth))
    return {name: math.sqrt(sum(values) / len(values)) for name, values in squares.items()}


def main() -> int:
    columns: list[str] = []
    for name, arguments in SCENARIOS.items():
        with scratch() as directory:
            found = errors(arguments, directory)
        if not columns:
            columns = list(found)
            print(page.heading(("scenario", *columns), 1))
        print(page.row((name, *(f"{found[column] / 1e3:.3g} us" for column in columns))), flush=True)
    return 0
