"""Part of scripts/bench: runs for scripts/scaling."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .. import reports
from ..reports import Json
from ..runner import size_of
from .communication import micro, rank_counts
from .session import Correction, Figures, Session, of_trace


def outline(report: Json, wall: float) -> Figures:
    """What the scaling model has to know of a run."""

    def count(*names: str) -> int:
        return sum(kind["count"] for kind in report["trace"]["events_by_kind"] if kind["kind"] in names)

    sizes = of_trace(report)
    return {
        **{key: sizes[key] for key in ("processes", "events", "visited", "messages")},
        "collective_ends": count("MpiCollectiveEnd", "NonBlockingCollectiveComplete"),
        "form": report["replay"]["form"],
        "passes": len(report["replay"]["passes"]),
        "ranks": report["program"]["analysis_ranks"],
        "wall": wall,
        "phases": reports.seconds_by_phase(report),
        "rank_memory": report["memory"]["largest_rank_bytes"],
    }


def middle(results: Sequence[Correction]) -> Figures:
    """Of several runs the one with the median wall-clock time."""
    chosen = sorted(results, key=lambda result: result.wall)[len(results) // 2]
    return outline(chosen.report, chosen.wall)


def model(bench: Session) -> Figures:
    """Runs for scripts/scaling: costs per event in one process, and whole runs on every number of ranks to check the model."""
    clock = "linear,sine=20us/20ms"
    figures: Figures = {"cores": os.cpu_count(), "costs": {}, "runs": []}

    # Recorded clocks, and one thread per rank: the model is of the replay on ranks.
    options = ["--presync", "linear", "--threads", "1"]

    def again(trace: Path, ranks: int = 0, options: Sequence[str] = options) -> Figures:
        return middle([bench.correct(trace, ranks, options) for _ in range(bench.few)])

    # The costs come from traces that are not those of the check.
    size = "20k" if bench.quick else "200k"
    costs: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("halo2d", "halo2d", {"ranks": 8, "events": size}),
        ("mix", "mix", {"ranks": 8, "events": size}),
        ("definitions", "halo2d", {"ranks": 256 if bench.quick else 2048, "events": 60}),
    )
    for name, pattern, shape in costs:
        trace = bench.trace(f"costs-{name}", pattern=pattern, ranks_per_node=2, clock=clock, **shape)
        figures["costs"][name] = again(trace)
        figures["costs"][name]["bytes"] = size_of(trace)
        bench.drop(trace)
        bench.row(f"costs: {name}, one process", f"{figures['costs'][name]['wall']:.3f} s")
    # As many processes as there are ranks where these are more.
    *fewer, most = rank_counts(bench)
    shapes: dict[int, Sequence[int]]
    shapes = {most: (*fewer, most)} if bench.quick else {most // 2: fewer, most: (most,)}
    for pattern, events in (("halo2d", 4000), ("mix", 2000)):
        for processes, counts in shapes.items():
            trace = bench.trace(f"check-{pattern}", pattern=pattern, ranks=processes, events=events, clock=clock)
            for count in counts:
                run = middle([bench.correct(trace, count, options) for _ in range(bench.few if count <= 32 else 1)])
                figures["runs"].append({"pattern": pattern, "transport": "mpi", **run})
                bench.row(
                    f"{pattern}, {processes} processes on {count} MPI ranks",
                    f"{sum(run['phases'].values()):.2f} s",
                    run["form"],
                )
            bench.drop(trace)
    processes = 32 if bench.quick else 1024
    for pattern, events in (("halo2d", 500), ("mix", 250)):
        trace = bench.trace(f"check-{pattern}", pattern=pattern, ranks=processes, events=events, clock=clock)
        for count in (8, 32) if bench.quick else (64, 256, 1024):
            found = micro("correct", count, trace, "--dry-run", *options)
            run = outline(found["report"], found["wall"])
            figures["runs"].append({"pattern": pattern, "transport": "threads", **run})
            bench.row(
                f"{pattern}, {processes} processes on {count} threads",
                f"{sum(run['phases'].values()):.2f} s",
                run["form"],
            )
        bench.drop(trace)
    # Estimated clocks are solved for on one rank; that is not part of the model.
    figures["clocks"] = []
    for nodes in (4, 16) if bench.quick else (4, 16, 64, 256, 1024):
        trace = bench.trace(
            f"clocks-{nodes}", pattern="halo2d", ranks=2 * nodes, ranks_per_node=2, events=20_000, clock=clock
        )
        for count in (1, 2):
            run = again(trace, count, ["--presync", "network"])
            figures["clocks"].append({"nodes": nodes, **run})
            share = run["phases"]["clocks"] / sum(run["phases"].values())
            bench.row(
                f"clocks of {nodes} nodes, {count} ranks",
                f"{run['phases']['clocks']:.3f} s",
                f"{share * 100:.0f} % of the run",
            )
        bench.drop(trace)
    return figures
