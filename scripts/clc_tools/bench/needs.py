"""Parts of scripts/bench: how much memory a run needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..command import progress
from ..figures import mebibytes
from ..runner import size_of
from .session import Figures, Job, Session, medians


def memory(bench: Session) -> Figures:
    """Bytes per synchronisation event: two traces that differ in their number of other events only."""
    size = 20_000 if bench.quick else 500_000
    # At most a tenth of the messages violated, then nearly all: corrections take some 50 bytes per violation.
    cases: tuple[tuple[str, str, list[str], str], ...] = (
        ("halo2d", "linear,sine=2us/50%", ["--presync", "linear"], "few violations"),
        ("halo2d", "linear,sine=200us/50%", ["--presync", "linear"], "many violations"),
        ("halo2d", "linear,sine=2us/50%", [], "estimated clocks"),
        ("mix", "linear,sine=2us/50%", ["--presync", "linear"], "collectives"),
    )
    found: Figures = {"cases": []}

    def jobs(trace: Path, options: Sequence[str]) -> dict[str, Job]:
        # A report keeps the recorded times for its pictures; the run itself does not.
        return {
            "bare": lambda: bench.bare(trace, options=options),
            "report": lambda: bench.correct(trace, options=options),
        }

    for pattern, clock, options, what in cases:
        points = []
        for times in (1, 4):
            trace = bench.trace("few", ranks=8, ranks_per_node=2, events=times * size, pattern=pattern, clock=clock)
            runs = bench.interleaved(jobs(trace, options), bench.few)
            bench.drop(trace)
            with_report = runs["report"]
            points.append(
                {
                    "visited": with_report["visited"],
                    "bare": runs["bare"]["memory"],
                    "report": with_report["rank_memory"],
                    "violated": with_report["violated"] / max(1, with_report["checked"]),
                    "runs": with_report["runs"],
                }
            )
            bench.row(f"memory, {what}", mebibytes(points[-1]["bare"]), f"{points[-1]['visited']:,} visited")
        found["cases"].append({"what": what, "points": points})
    trace = bench.trace("many", ranks=8, ranks_per_node=2, events=5 * size, calls=100, pattern="halo2d", clock="sine")
    found["calls"] = medians([bench.correct(trace) for _ in range(bench.few)])
    bench.drop(trace)
    calls = found["calls"]
    bench.row(
        "memory, many calls", mebibytes(calls["rank_memory"]), f"{calls['visited']:,} of {calls['events']:,} visited"
    )
    return found


def limit(bench: Session) -> Figures:
    """A trace of four times the memory that the process may have."""
    events = "400k" if bench.quick else "5M"
    trace = bench.trace("calls", ranks=16, events=events, calls=2000, compute="20ms", pattern="halo2d", clock="sine")
    size = size_of(trace)
    # Program and MPI library alone take some 100 MiB of address space.
    bound = max(size // 4, 128 * 2**20)
    found: Figures = {"size": size, "bound": bound, "works": True}
    try:
        found.update(medians([bench.correct(trace, memory=bound) for _ in range(bench.rounds)]))
    except RuntimeError as error:
        found["works"] = False
        progress(str(error))
    bench.drop(trace)
    said = f"{found['wall']:.2f} s" if found["works"] else "failed"
    bench.row(f"{mebibytes(size)} of trace in {mebibytes(bound)} of address space", said)
    return found
