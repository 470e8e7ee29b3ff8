"""The part of scripts/bench that does not rest on our simulator: recordings of programs that ran, repeated in time."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..runner import ROOT, output
from .decoding import example
from .replayed import LINEAR, libotf2
from .session import Figures, Job, Session

# Real messages of programs that ran on emulated nodes, their clocks made wrong while they were recorded.
RECORDED = ("recorded-halo-4", "recorded-stencil-4")
EVENTS = 10_000_000


def repeated(bench: Session, name: str) -> Path:
    """The recording as many times over as it takes to have so many events."""
    trace, tool = ROOT / "tests" / "data" / name, example("repeat_in_time")
    events = int(output([tool, trace, "1", bench.work / "once"]).split()[0])
    bench.drop(bench.work / "once")
    long = bench.work / name
    output([tool, trace, str(max(1, (EVENTS // 100 if bench.quick else EVENTS) // events)), long])
    return long


def jobs_of(bench: Session, trace: Path) -> dict[str, Job]:
    jobs: dict[str, Job] = {
        "copy": lambda: bench.copy(trace),
        "estimated": lambda: bench.bare(trace),
        "linear": lambda: bench.bare(trace, options=LINEAR),
        "estimated_thread": lambda: bench.correct(trace, options=["--threads", "1"]),
        "linear_thread": lambda: bench.correct(trace, options=[*LINEAR, "--threads", "1"]),
    }
    if shutil.which("otf2-print"):
        jobs["libotf2"] = lambda: libotf2(bench, trace)
    return jobs


def recordings(bench: Session) -> Figures:
    """Each with estimated clocks and with the recorded offsets alone."""
    found: Figures = {}
    for name in RECORDED:
        trace = repeated(bench, name)
        found[name] = bench.interleaved(jobs_of(bench, trace), bench.rounds)
        bench.drop(trace)
        for job, run in found[name].items():
            bench.row(f"{name}, repeated: {job.replace('_', ', ')}", f"{run['wall']:.3f} s")
    return found
