"""The part of scripts/bench that shows what users have: an iterative solver on clocks that bend, and what a replay of its trace costs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .session import Figures, Job, Run, Session

LINEAR = ("--presync", "linear")
CLOCK = "linear,sine=20us/0.5s"


def solver(bench: Session, name: str, **options: object) -> Path:
    """A chain of processes, each on its own node, with collective operations of several kinds; clocks swing by 20 us."""
    return bench.trace(name, ranks_per_node=1, pattern="solver", clock=CLOCK, **options)


def libotf2(bench: Session, trace: Path) -> Run:
    """otf2-print reads and checks every event, and prints nothing."""
    return bench.run(["otf2-print", "--silent", next(trace.glob("*.otf2"))])


def replayed(bench: Session) -> Figures:
    """8 and 64 processes: estimated clocks; recorded offsets alone, which leave every third message or so to the replay; no offsets at all."""
    events = "50k" if bench.quick else "1M"
    trace = solver(bench, "solver8", ranks=8, events=events)
    unmeasured = solver(bench, "solver8u", ranks=8, events=events, measurements=0)
    jobs: dict[str, Job] = {
        "copy": lambda: bench.copy(trace),
        "estimated": lambda: bench.bare(trace),
        "linear": lambda: bench.bare(trace, options=LINEAR),
        "unmeasured": lambda: bench.bare(unmeasured),
        "estimated_thread": lambda: bench.correct(trace, options=["--threads", "1"]),
        "linear_thread": lambda: bench.correct(trace, options=[*LINEAR, "--threads", "1"]),
    }
    if shutil.which("otf2-print"):
        jobs["libotf2"] = lambda: libotf2(bench, trace)
    found: Figures = {"8": bench.interleaved(jobs, bench.rounds)}
    bench.drop(trace, unmeasured)

    many = solver(bench, "solver64", ranks=64, events="10k" if bench.quick else "1M")
    # The pages of a file system in memory are made at their first use, which is not what is measured.
    bench.bare(many)
    found["64"] = bench.interleaved(
        {
            "copy": lambda: bench.copy(many),
            "estimated": lambda: bench.bare(many),
            "linear": lambda: bench.bare(many, options=LINEAR),
            "one": lambda: bench.correct(many, 1, LINEAR),
            "two": lambda: bench.correct(many, 2, LINEAR),
        },
        bench.few,
    )
    bench.drop(many)
    for processes, runs in found.items():
        for name, run in runs.items():
            bench.row(f"{processes} x {events} events of a solver: {name.replace('_', ', ')}", f"{run['wall']:.3f} s")
    return found


def rates(run: Mapping[str, Any]) -> dict[str, float]:
    """Millions of events of the trace per second of a phase, of one thread; forward and mirrored replay are one phase."""
    return {
        name: float(run["events"]) / float(run["phases"][name]) / 1e6
        for name in ("scan", "forward", "write")
        if run["phases"].get(name, 0) > 0
    }
