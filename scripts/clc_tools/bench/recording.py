"""Part of scripts/bench: what recording costs an application, beside EZTrace.

A program that measures its own calls (tests/apps/call_cost.c) runs on two processes alone, recorded by clc-replay, and by EZTrace where that is installed,
in turn. The figures are means of a few hundred calls each; of all of them together come the distributions.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..figures import quantile
from ..runner import ROOT, Word, on_ranks, output, size_of
from .session import Figures, Session

WHAT = {
    "tests": "MPI_Test of a null request",
    "itself": "MPI_Irecv, MPI_Isend, MPI_Waitall with itself",
    "ping-pong": "MPI_Send, MPI_Recv: ping-pong",
    "halo": "2 MPI_Irecv, 2 MPI_Isend, MPI_Waitall",
    "collectives": "MPI_Allreduce, MPI_Bcast, MPI_Barrier",
}
SHARES = (0, 10, 50, 90, 99)


def record(bench: Session) -> Figures:
    """Runs it; prints a table, and returns the figures."""
    compiler = os.environ.get("MPICC") or next(name for name in ("mpicc.openmpi", "mpicc") if shutil.which(name))
    app = bench.work / "call_cost"
    bench.run([compiler, "-O2", ROOT / "tests/apps/call_cost.c", "-o", app])
    batches = "30" if bench.quick else "300"
    recorders: dict[str, Callable[[Path], list[Word]]] = {
        "alone": lambda place: [*on_ranks(2), app, batches],
        "recorded": lambda place: [
            bench.program,
            "record",
            "--quiet",
            "--keep-raw",
            "-o",
            place,
            "--",
            *on_ranks(2),
            app,
            batches,
        ],
    }
    if shutil.which("eztrace") and "openmpi" in compiler:
        recorders["EZTrace"] = lambda place: [*on_ranks(2), "eztrace", "-o", place, "-t", "openmpi", app, batches]

    def recording(name: str) -> Callable[[], Figures]:
        return lambda: once(bench, name, recorders[name])

    runs = bench.in_turn({name: recording(name) for name in recorders}, bench.rounds)
    result: Figures = {}
    for name, list_of_runs in runs.items():
        means = {kind: sorted(value for run in list_of_runs for value in run["means"][kind]) for kind in WHAT}
        result[name] = {
            "calls": {kind: [quantile(values, share) for share in SHARES] for kind, values in means.items()},
            "bytes": {
                what: statistics.median(run["bytes"][what] for run in list_of_runs) for what in list_of_runs[0]["bytes"]
            },
            "stamps": min(run["stamps"] for run in list_of_runs),
        }
    show(bench, result)
    return result


def once(bench: Session, name: str, command: Callable[[Path], Sequence[Word]]) -> Figures:
    place = bench.work / "call_cost.run"
    bench.drop(place, bench.work / "call_cost.run.raw")
    said = output(command(place))
    means: dict[str, list[float]] = {}
    calls, stamps = 0, 0.0
    for line in said.splitlines():
        kind, *rest = line.split()
        if kind in WHAT:
            means[kind] = [float(value) for value in rest[1:]]
        elif kind == "calls":
            calls = 2 * int(rest[0])
        elif kind == "stamps":
            stamps = float(rest[0])
    if set(means) != set(WHAT) or not calls:
        raise RuntimeError(f"{name}: call_cost has not said what it measured")
    sizes = {}
    if name == "recorded":
        sizes = {
            "raw files": size_of(bench.work / "call_cost.run.raw", ".raw") / calls,
            "archive": size_of(place) / calls,
        }
        # The same recording once more, in the smaller format.
        native = bench.work / "call_cost.clct"
        bench.drop(native)
        (bench.work / "call_cost.run.raw").rename(bench.work / "call_cost.clct.raw")
        output([bench.program, "recover", "--quiet", native])
        sizes["native trace"] = size_of(native) / calls
        bench.drop(native)
    elif name == "EZTrace":
        sizes = {"archive": size_of(place) / calls}
    bench.drop(place, bench.work / "call_cost.run.raw")
    return {"means": means, "bytes": sizes, "stamps": stamps}


def show(bench: Session, result: Mapping[str, Figures]) -> None:
    bench.row("ns per call, 2 processes", " ".join(f"{name:>8}" for name in ("min", "10 %", "median", "90 %", "99 %")))
    for kind, what in WHAT.items():
        for name, figures in result.items():
            bench.row(f"{what}: {name}", " ".join(f"{value:8.1f}" for value in figures["calls"][kind]))
    for name in list(result)[1:]:
        # Where the machine is busy, the lower one tells more: medians jump with the cores that the processes are on.
        for share in (10, 50):
            index = SHARES.index(share)
            beyond = {kind: result[name]["calls"][kind][index] - result["alone"]["calls"][kind][index] for kind in WHAT}
            said = ", ".join(f"{value:.0f}" for value in beyond.values())
            bench.row(f"{name}: {share} % of the means, beyond those alone", said, ", ".join(beyond))
        for what, value in result[name]["bytes"].items():
            bench.row(f"{name}: {what}, bytes per call", f"{value:.1f}")
    bench.row("two readings of the time stamp counter", f"{result['alone']['stamps']:.1f} ns")
