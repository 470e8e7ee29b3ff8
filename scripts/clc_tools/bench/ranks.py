"""Parts of scripts/bench: more and more MPI ranks, up to many more than there are cores."""

from __future__ import annotations

import os
from pathlib import Path

from ..figures import mebibytes
from ..runner import on_ranks
from .session import Figures, Job, Session


def scaling(bench: Session) -> Figures:
    """Strong scaling (one trace) and weak scaling (eight processes per rank), without the start-up of MPI."""
    events = "50k" if bench.quick else "500k"
    cores = os.cpu_count() or 1
    counts = [2**k for k in range(9) if 2**k <= 2 * cores]
    shape: dict[str, object] = {"events": events, "pattern": "halo2d", "clock": "linear,sine=20us/50%"}
    traces = {("strong", count): bench.trace("strong", ranks=64, **shape) for count in counts}
    traces |= {("weak", count): bench.trace(f"weak{count}", ranks=8 * count, **shape) for count in counts}

    def correction(trace: Path, count: int) -> Job:
        return lambda: bench.correct(trace, count)

    # Names for the runs in turn; what they stand for is in the keys of `traces`.
    jobs = {f"{kind} {count}": correction(trace, count) for (kind, count), trace in traces.items()}
    found = bench.interleaved(jobs, bench.few)
    runs = {(kind, count): found[f"{kind} {count}"] for kind, count in traces}
    bench.drop(*traces.values())
    for (kind, count), run in runs.items():
        bench.row(
            f"{kind} scaling, {run['processes']} x {events}, -n {count}",
            f"{run['shared']:.2f} s",
            "more than cores" if count > cores else "",
        )
    return {
        kind: [dict(run, ranks=count) for (name, count), run in runs.items() if name == kind]
        for kind in ("strong", "weak")
    }


def ranks(bench: Session) -> list[Figures]:
    """As many ranks as processes, more than there are cores; and what starting them takes."""
    rows: list[Figures] = []

    def jobs(trace: Path, count: int) -> dict[str, Job]:
        return {
            "run": lambda: bench.correct(trace, count),
            "start": lambda: bench.run([*on_ranks(count), bench.program, "info", trace, "--quiet"]),
        }

    for count in (2, 8, 32, 64) if bench.quick else (2, 4, 8, 16, 32, 64, 128, 256):
        trace = bench.trace(f"r{count}", ranks=count, events=2000, pattern="halo1d", clock="sine")
        # Beyond 64 ranks a run takes longer than all the others together.
        runs = bench.interleaved(jobs(trace, count), bench.few if count <= 64 else 1)
        bench.drop(trace)
        rows.append(dict(runs["run"], ranks=count, start=runs["start"]["wall"]))
        run = rows[-1]
        note = f"start-up {run['start']:.2f} s, {mebibytes(run['rank_memory'])}/rank" + (
            ", one run" if run["runs"] == 1 else ""
        )
        bench.row(f"mpirun -n {count}, {count} processes", f"{run['wall']:.2f} s", note)
    return rows
