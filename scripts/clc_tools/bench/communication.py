"""Part of scripts/bench: what talking costs, by the micro-benchmark tests/micro/ranks.rs."""

from __future__ import annotations

import functools
import os
import statistics
import subprocess
import time

from .. import reports
from ..figures import mebibytes
from ..reports import Json
from ..runner import ROOT, Word, mpi_environment, on_ranks
from .session import Figures, Session


@functools.cache
def micro_benchmark() -> str:
    """Builds it, if need be; the executable."""
    build = ["cargo", "bench", "--locked", "--no-run", "--bench", "ranks", "--message-format=json"]
    built = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    artifacts: list[Json] = [reports.parse(line) for line in built.stdout.splitlines() if line.startswith("{")]
    return str(next(a["executable"] for a in artifacts if a.get("executable") and a["target"]["name"] == "ranks"))


def micro(*arguments: Word, ranks: int = 0) -> Json:
    """Runs it, on MPI ranks or alone; the object of JSON that it prints."""
    command = [*on_ranks(ranks), micro_benchmark(), *map(str, arguments)]
    done = subprocess.run(command, env=mpi_environment(), stdout=subprocess.PIPE, text=True, check=True)
    found: Json = reports.parse(done.stdout)
    return found


def rank_counts(bench: Session) -> tuple[int, ...]:
    return (1, 2, 4, 8) if bench.quick else (1, 2, 4, 8, 16, 32, 64, 128, 256)


def transport(bench: Session) -> Figures:
    """What talking costs: between MPI processes, between threads, and what every rank has to know."""
    # What was built a moment ago is not what keeps a machine busy.
    for _ in range(0 if bench.quick else 60):
        if os.getloadavg()[0] < 0.5:
            break
        time.sleep(5)
    figures: Figures = {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "mpi": [],
        "threads": [],
        "definitions": [],
    }
    for count in rank_counts(bench):
        starts = [bench.run([*on_ranks(count), bench.program, "--version"]).wall for _ in range(1 if count > 32 else 3)]
        row = dict(micro("transport", ranks=count), start=statistics.median(starts))
        figures["mpi"].append(row)
        said = ", ".join(
            f"{name} {row[name] * 1e6:.1f}" for name in ("latency", "step", "exchange", "allreduce") if name in row
        )
        bench.row(
            f"{count} MPI ranks: start {row['start']:.2f} s, {mebibytes(row['peak_bytes'])} each", "", f"{said} us"
        )
    for count in (8, 32) if bench.quick else (64, 256, 1024):
        row = micro("threads", count)
        figures["threads"].append(row)
        bench.row(
            f"{count} ranks as threads", "", f"step {row['step'] * 1e6:.0f}, exchange {row['exchange'] * 1e6:.0f} us"
        )
    for count in (10_000,) if bench.quick else (1000, 10_000, 100_000, 1_000_000):
        row = micro("definitions", count)
        figures["definitions"].append(row)
        held, wire = row["peak_bytes"] / count, row["wire_bytes"] / count
        bench.row(
            f"definitions of {count:,} processes on a rank",
            f"{held:.0f} bytes/process",
            f"{wire:.0f} sent, {row['seconds']:.3f} s",
        )
    return figures
