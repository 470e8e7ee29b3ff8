"""The table of results of docs/performance.md: what was measured beside its target. Targets are here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures import listed, mebibytes, run_time, short_duration, times
from .replayed import rates
from .session import Figures, forward_per_visit


@dataclass(frozen=True)
class Row:
    """Of the table of results: every target with whether it is met, or nothing if that is no question."""

    what: str
    measured: str
    targets: tuple[tuple[str, bool | None], ...] = ()

    def verdicts(self) -> str:
        said = {True: ": met", False: ": missed", None: ""}
        return "; ".join(target + said[met] for target, met in self.targets)

    def missed(self) -> bool:
        return any(met is False for _, met in self.targets)


def each(run: Mapping[str, Any]) -> str:
    """Events per process, as they were asked for: an application ends with the step that reaches them."""
    events = int(run["events"]) // int(run["processes"])
    return f"{round(events, 2 - len(str(events))):,}"


def replayed(run: Mapping[str, Any]) -> str:
    if not run["passes"]:
        return "the clocks leave nothing to replay"
    passes = int(run["passes"])
    return f"{run['violated']:,} violations, {passes} {'replay' if passes == 1 else 'replays'}"


def per_doubling(points: Sequence[Mapping[str, Any]], key: str = "wall") -> list[float]:
    """Growth of the time per doubling of the events. Below a twentieth of a second the start of the process counts."""
    steps = [(a, b) for a, b in zip(points, points[1:]) if a["wall"] > 0.05 and a[key] > 0]
    return [float(b[key] / a[key]) ** (1 / math.log2(b["events"] / a["events"])) for a, b in steps]


def solved(found: Figures) -> list[Row]:
    """What users have: traces with collective operations and clocks that swing."""
    few, many = found["8"], found["64"]
    shape = f"8 x {each(few['linear_thread'])} events of an iterative solver, clocks that swing by 20 us"
    copy = float(few["copy"]["wall"])

    def one(name: str, what: str) -> Row:
        wall = float(few[name]["wall"])
        rate = float(few["linear_thread"]["events"]) / wall / 1e6
        said = f"{run_time(wall)}, {rate:.1f} million events/s, {wall / copy:.1f} x `cp -r` ({run_time(copy)})"
        return Row(what, said, (("3 x `cp -r`", wall <= 3 * copy),))

    rows = [
        one("linear", f"{shape}, `--presync linear`: {replayed(few['linear_thread'])}"),
        one("estimated", f"the same, estimated clocks: {replayed(few['estimated_thread'])}"),
        one("unmeasured", "the same without recorded offsets, estimated clocks"),
    ]
    if "libotf2" in few:
        rows.append(
            Row("libotf2 reads and checks the same events (`otf2-print --silent`)", run_time(few["libotf2"]["wall"]))
        )
    speed = rates(few["linear_thread"])
    rows.append(
        Row(
            "the first of these on one thread: scan, forward with its mirrored replay, write",
            listed(f"{speed[name]:.0f}" for name in ("scan", "forward", "write")) + " million events/s",
            (
                ("80", speed["scan"] >= 80),
                ("40", speed["forward"] >= 40),
                ("60", speed["write"] >= 60),
            ),
        )
    )
    speedup = float(many["one"]["shared"]) / float(many["two"]["shared"])
    rows.append(
        Row(
            f"64 x {each(many['one'])} events, `--presync linear`: {replayed(many['one'])}; estimated clocks",
            f"{run_time(many['linear']['wall'])} and {run_time(many['estimated']['wall'])} in one process "
            f"({many['linear']['wall'] / many['copy']['wall']:.1f} and {many['estimated']['wall'] / many['copy']['wall']:.1f} x `cp -r`); "
            f"linear with `-n 2` {times(speedup)} `-n 1`",
            (
                ("2.5 s", max(many["linear"]["wall"], many["estimated"]["wall"]) <= 2.5),
                ("1.8 x", speedup >= 1.8),
            ),
        )
    )
    return rows


def recordings(found: Figures) -> list[Row]:
    """Programs that ran, instead of our simulator."""
    rows = []
    for name, runs in found.items():
        copy, estimated, linear = (float(runs[job]["wall"]) for job in ("copy", "estimated", "linear"))
        one = runs["linear_thread"]
        library = f"; `otf2-print --silent` {run_time(runs['libotf2']['wall'])}" if "libotf2" in runs else ""
        rows.append(
            Row(
                f"the recording `{name}` repeated in time: {one['processes']} x {each(one)} events, "
                f"with `--presync linear` {replayed(one)}, with estimated clocks {replayed(runs['estimated_thread'])}",
                f"{run_time(linear)} and {run_time(estimated)}, {linear / copy:.1f} and {estimated / copy:.1f} x `cp -r` ({run_time(copy)}){library}",
                (("3 x `cp -r`", max(linear, estimated) <= 3 * copy),),
            )
        )
    return rows


def decoding(found: Figures) -> list[Row]:
    """Reading everything that an archive has, against the library and the tool of the format."""
    runs, events = found["runs"], int(found["events"])
    names = {"clc-otf2": "the crate `clc-otf2`", "libotf2": "`libotf2`", "otf2-print": "`otf2-print` to `/dev/null`"}
    said = "; ".join(
        f"{text} {run_time(runs[name]['wall'])} ({events / float(runs[name]['wall']) / 1e6:.1f} million events/s)"
        if name in runs
        else f"{text} not installed"
        for name, text in names.items()
    )
    ours = float(runs["clc-otf2"]["wall"])
    targets = (("as fast as `libotf2`", ours <= float(runs["libotf2"]["wall"])),) if "libotf2" in runs else ()
    return [
        Row(
            f"every event of {found['processes']} x {each(found)} decoded with all fields, one thread each",
            said,
            targets,
        )
    ]


def end_to_end(runs: Figures) -> list[Row]:
    copy, shape = float(runs["copy"]["wall"]), f"8 x {each(runs['alone'])} halo events"

    def factor(name: str) -> float:
        return float(runs[name]["wall"]) / copy

    def rate(name: str) -> float:
        return float(runs["alone"]["events"]) / float(runs[name]["wall"]) / 1e6

    def ratio(suffix: str, key: str) -> float:
        return float(runs[f"one{suffix}"][key]) / float(runs[f"two{suffix}"][key])

    rows = [
        Row(
            f"{shape}, one process, a thread per core reads and writes; {replayed(runs['alone'])}",
            f"{run_time(runs['bare']['wall'])}, {rate('bare'):.1f} million events/s, {factor('bare'):.2f} x `cp -r` ({run_time(copy)})",
            (("5 x `cp -r`", factor("bare") <= 5),),
        ),
        Row(
            f"the same with `--presync linear`: {replayed(runs['alone_linear'])}, backward amortisation",
            f"{run_time(runs['bare_linear']['wall'])}, {rate('bare_linear'):.1f} million events/s, {factor('bare_linear'):.2f} x `cp -r`",
            (("5 x `cp -r`", factor("bare_linear") <= 5),),
        ),
        Row(
            "estimated clocks, one thread",
            f"{run_time(runs['thread']['wall'])}, {rate('thread'):.1f} million events/s, {factor('thread'):.2f} x `cp -r`",
            (("25 million/s and core (orientation)", rate("thread") >= 25),),
        ),
    ]
    pairs = [one / two for one, two in zip(runs["one"]["shareds"], runs["two"]["shareds"])]
    spread = f" ({min(pairs):.2f} to {max(pairs):.2f} in single rounds)" if len(pairs) > 1 else ""
    rows.append(
        Row(
            "`mpirun -n 2` against `-n 1`, without the start-up of MPI and the details for the page",
            f"estimated clocks {times(ratio('', 'shared'))}{spread}; `--presync linear` {times(ratio('_linear', 'shared'))}; "
            f"with the start-up {times(ratio('', 'wall'))}",
            (("1.7 x", ratio("", "shared") >= 1.7), ("with a replay", ratio("_linear", "shared") >= 1.7)),
        )
    )
    return rows


def large(runs: Figures) -> list[Row]:
    speedup = runs["one"]["shared"] / runs["two"]["shared"]
    return [
        Row(
            f"64 x {each(runs['two'])} events",
            f"{run_time(runs['bare']['wall'])} in one process; with `-n 2` {run_time(runs['two']['wall'])}, {times(speedup)} `-n 1`, "
            f"{mebibytes(runs['two']['rank_memory'])} on the larger rank",
            (("4 s", max(runs["bare"]["wall"], runs["two"]["wall"]) <= 4), ("1.7 x", speedup >= 1.7)),
        )
    ]


def collectives(runs: Figures) -> list[Row]:
    costs = [forward_per_visit(run) for run in runs.values()]
    ratio = costs[-1] / costs[0]
    return [
        Row(
            f"forward replay in one process, messages and collectives of {listed(f'{int(count):,}' for count in runs)} processes, "
            "per visited event and clock (Lamport and first pass, in one replay)",
            f"{listed(f'{cost * 1e9:.0f}' for cost in costs)} ns: {1e-6 / max(costs):.0f} to {1e-6 / min(costs):.0f} million/s; "
            f"{times(ratio)} from the fewest to the most members",
            (("20 million/s", max(costs) <= 50e-9), ("linear in members (2 x)", ratio <= 2)),
        )
    ]


def growth_events(points: Sequence[Figures]) -> list[Row]:
    steps, computing = per_doubling(points), per_doubling(points, "user")
    if not steps:
        return []
    return [
        Row(
            f"time per doubling of the events, {points[0]['label']} to {points[-1]['label']} ({points[-1]['events'] / 1e6:.0f} million)",
            f"{times(max(steps))} at most; the last doubling {times(steps[-1])}, of its computing alone {times(computing[-1])}",
            (("2.2 x", max(steps) <= 2.2),),
        )
    ]


def growth_processes(points: Sequence[Figures]) -> list[Row]:
    steps = per_doubling(points)
    if not steps:
        return []
    return [
        Row(
            f"time per doubling of the processes, {points[0]['label']} to {points[-1]['label']}",
            f"{times(max(steps))} at most",
            (("2.2 x", max(steps) <= 2.2),),
        )
    ]


def clocks(figures: Figures) -> list[Row]:
    """How much of a run estimating the clocks takes."""
    shares = []
    for part, name, what in (
        ("bounds", "estimated", "one thread"),
        ("end-to-end", "alone", "a thread per core"),
        ("end-to-end", "two", "two ranks"),
        ("large", "two", "64 processes on two ranks"),
    ):
        if part in figures:
            run = figures[part]["runs"][name] if part == "bounds" else figures[part][name]
            shares.append((run["phases"]["clocks"] / run["shared"], what))
    if not shares:
        return []
    return [
        Row(
            "estimating the clocks, part of the run without its start-up",
            "; ".join(f"{what} {share * 100:.1f} %" for share, what in shares),
            (("25 %", max(share for share, _ in shares) <= 0.25),),
        )
    ]


def memory(found: Figures) -> list[Row]:
    cases = found["cases"]
    slopes, filled, reported = [], [], []
    for case in cases:
        less, more = case["points"]
        slopes.append((more["bare"] - less["bare"]) / (more["visited"] - less["visited"]))
        allowed = 64 * 2**20 + 24 * more["visited"]
        filled.append(more["bare"] / allowed)
        reported.append(more["report"] / allowed)
    many = [case["points"][1]["visited"] / 1e6 for case in cases]

    def percentages(shares: Sequence[float]) -> str:
        return listed(f"{share * 100:.0f}" for share in shares) + " %"

    rows = [
        Row(
            "memory per further synchronisation event: "
            + listed(f"{case['what']} ({case['points'][1]['violated'] * 100:.0f} % violated)" for case in cases),
            f"{listed(f'{slope:.0f}' for slope in slopes)} bytes; at {min(many):.1f} to {max(many):.1f} million of them "
            f"{percentages(filled)} of 64 MiB + 24 bytes each; "
            f"with a report {percentages(reported)}",
            (("100 %", max(filled) <= 1), ("with a report", max(reported) <= 1)),
        )
    ]
    calls = found["calls"]
    rows.append(
        Row(
            f"memory, a trace of calls: {calls['events']:,} events of which {calls['visited']:,} synchronise",
            mebibytes(calls["rank_memory"]),
            (
                (
                    "other events take none (64 MiB + 24 bytes per synchronisation event)",
                    calls["rank_memory"] <= 64 * 2**20 + 24 * calls["visited"],
                ),
            ),
        )
    )
    return rows


def limit(found: Figures) -> list[Row]:
    return [
        Row(
            f"a trace of {mebibytes(found['size'])} in {mebibytes(found['bound'])} of address space (`ulimit -v`)",
            run_time(found["wall"]) if found["works"] else "failed",
            (("works", found["works"]),),
        )
    ]


def backward(found: Figures) -> list[Row]:
    runs = sorted(found.values(), key=lambda run: float(run["violated"] / run["checked"]))
    spent = [run["phases"]["backward"] for run in runs]
    ratio = max(spent) / min(spent)
    shares = listed(f"{run['violated'] * 100 / run['checked']:.2g}" for run in runs)
    return [
        Row(
            f"backward amortisation of 8 x {each(runs[0])} events, {shares} % of the messages violated",
            f"{listed(map(short_duration, spent))}, {ratio:.1f} x apart",
            (("1.3 x apart", ratio <= 1.3),),
        )
    ]


def processes(runs: Figures) -> list[Row]:
    return [
        Row(
            f"1,024 processes, {runs['alone']['events'] / 1e6:.0f} million events",
            f"{run_time(runs['alone']['wall'])} in one process, {run_time(runs['two']['wall'])} with `-n 2`",
            (("works", None),),
        )
    ]


def ranks(found: Sequence[Figures]) -> list[Row]:
    rows = [row for row in found if row["ranks"] >= 64]
    once = [f"`-n {row['ranks']}`" for row in rows if row["runs"] == 1]
    walls, starts = (listed(f"{row[key]:.1f}" for row in rows) for key in ("wall", "start"))
    held = listed(f"{row['rank_memory'] / 2**20:.0f}" for row in rows)
    return [
        Row(
            listed(f"`mpirun -n {row['ranks']}`" for row in rows) + f", as many processes, {each(rows[0])} events each",
            f"{walls} s, of which {starts} s are the start-up of MPI; {held} MiB per rank"
            + (f" (one run with {listed(once)})" if once else ""),
            (("works", None),),
        )
    ]


def transport(found: Figures) -> list[Row]:
    two = next(row for row in found["mpi"] if row["ranks"] == 2)
    ratio = two["message"] / (2 * two["batched_word"])
    return [
        Row(
            "timestamps between two ranks in batches against one message each (the transport alone: filling and reading batches is not in it)",
            f"{ratio:.0f} x",
            (("5 x", ratio >= 5),),
        )
    ]


# By the part that each is made from, in the order of the table; estimating the clocks is a phase of several parts.
ROWS: tuple[tuple[str | None, Callable[[Any], list[Row]]], ...] = (
    ("replayed", solved),
    ("recordings", recordings),
    ("decoding", decoding),
    ("end-to-end", end_to_end),
    ("large", large),
    ("collectives", collectives),
    ("growth-events", growth_events),
    ("growth-processes", growth_processes),
    (None, clocks),
    ("memory", memory),
    ("limit", limit),
    ("backward", backward),
    ("processes", processes),
    ("ranks", ranks),
    ("transport", transport),
)


def results(figures: Figures) -> list[Row]:
    """The rows for all parts that are in `figures`."""
    rows = []
    for part, made in ROWS:
        if part is None:
            rows += made(figures)
        elif part in figures:
            rows += made(figures[part])
    return rows
