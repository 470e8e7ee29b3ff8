"""Parts of scripts/bench: whole runs, and how their times grow with the trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..figures import mebibytes
from .session import Figures, Job, Session, forward_per_visit


def end_to_end(bench: Session) -> Figures:
    events = "100k" if bench.quick else "1M"
    trace = halo8(bench)
    linear = ["--presync", "linear"]
    runs = bench.interleaved(
        {
            "copy": lambda: bench.copy(trace),
            "bare": lambda: bench.bare(trace),
            "thread": lambda: bench.bare(trace, options=["--threads", "1"]),
            "bare_linear": lambda: bench.bare(trace, options=linear),
            "alone": lambda: bench.correct(trace),
            "alone_linear": lambda: bench.correct(trace, options=linear),
            "two": lambda: bench.correct(trace, 2),
            "one": lambda: bench.correct(trace, 1),
            "two_linear": lambda: bench.correct(trace, 2, linear),
            "one_linear": lambda: bench.correct(trace, 1, linear),
        },
        bench.rounds,
    )
    for name, run in runs.items():
        bench.row(f"8 x {events} halo events: {name.replace('_', ', ')}", f"{run['wall']:.3f} s")
    for name, seconds in runs["alone"]["phases"].items():
        if seconds > 0.005:
            bench.row(f"    {name}", f"{seconds:.3f} s {runs['alone']['events'] / seconds / 1e6:9.1f} M/s")
    return runs


def halo8(bench: Session) -> Path:
    """The trace of the parts end-to-end and bounds."""
    events = "100k" if bench.quick else "1M"
    return bench.trace(
        "halo8", ranks=8, ranks_per_node=2, events=events, pattern="halo2d", clock="linear,sine=20us/50%"
    )


def large(bench: Session) -> Figures:
    events = "20k" if bench.quick else "1M"
    trace = bench.trace("halo64", ranks=64, events=events, pattern="halo2d", clock="linear,sine=20us/50%")
    # The pages of a file system in memory are made at their first use, which is not what is measured.
    bench.bare(trace)
    runs = bench.interleaved(
        {
            "bare": lambda: bench.bare(trace),
            "one": lambda: bench.correct(trace, 1),
            "two": lambda: bench.correct(trace, 2),
        },
        bench.few,
    )
    bench.drop(trace)
    for name, run in runs.items():
        bench.row(f"64 x {events} halo events: {name}", f"{run['wall']:.2f} s")
    return runs


def backward(bench: Session) -> Figures:
    """The same trace; the share of messages that violate is set by the minimum latency that is asked for. Clocks are perfect."""
    events = "50k" if bench.quick else "1M"
    trace = bench.trace(
        "halo8p",
        ranks=8,
        ranks_per_node=1,
        events=events,
        pattern="ring",
        clock="perfect",
        measurements=0,
        tail="0.5us",
    )
    wanted = {"2.48us": 0.1, "2.58us": 10, "11us": 90}
    options = ["--presync", "linear", "--max-passes", "1", "--latency"]

    def with_latency(latency: str) -> Job:
        return lambda: bench.correct(trace, options=[*options, latency])

    jobs = {latency: with_latency(latency) for latency in wanted}
    runs = bench.interleaved(jobs, bench.rounds)
    bench.drop(trace)
    for latency, run in runs.items():
        share = run["violated"] * 100 / max(1, run["checked"])
        if not wanted[latency] / 1.5 < share < wanted[latency] * 1.5:
            raise RuntimeError(f"{share:.2f} % of the messages violate {latency} instead of {wanted[latency]} %")
        bench.row(
            f"backward amortisation, {share:.2f} % of messages violate", f"{run['phases']['backward'] * 1e3:.1f} ms"
        )
    return runs


def collectives(bench: Session) -> Figures:
    """All-to-all with growing communicators and the same number of member events."""
    sizes = (64, 256, 1024)
    # Without violations there is nothing to replay.
    options = ["--presync", "linear", "--max-passes", "1"]

    def correction(trace: Path) -> Job:
        return lambda: bench.correct(trace, options=options)

    jobs = {}
    for ranks in sizes:
        events = (400_000 if bench.quick else 4_000_000) // ranks
        trace = bench.trace(
            f"coll{ranks}", ranks=ranks, ranks_per_node=16, events=events, pattern="mix", clock="linear,sine=20us/50%"
        )
        jobs[str(ranks)] = correction(trace)
    runs = bench.interleaved(jobs, bench.rounds)
    for ranks in sizes:
        bench.drop(bench.work / f"coll{ranks}")
        rate = forward_per_visit(runs[str(ranks)])
        bench.row(
            f"messages and collectives of {ranks} processes: forward",
            f"{rate * 1e9:.1f} ns",
            "per visited event and clock",
        )
    return runs


def growth(bench: Session, name: str, cases: Sequence[tuple[str, dict[str, Any]]]) -> list[Figures]:
    """Runs over traces that double in size, the sizes in turn."""
    traces = {
        label: bench.trace(f"growth{at}", pattern="halo2d", clock="linear,sine=20us/50%", **options)
        for at, (label, options) in enumerate(cases)
    }
    # As in `large`: the largest needs all the pages that any of them needs.
    if not bench.quick:
        bench.correct(list(traces.values())[-1])

    def correction(trace: Path) -> Job:
        return lambda: bench.correct(trace)

    runs = bench.interleaved({label: correction(trace) for label, trace in traces.items()}, bench.few)
    bench.drop(*traces.values())
    for label, run in runs.items():
        bench.row(f"{name}: {label}", f"{run['wall']:.3f} s {mebibytes(run['rank_memory']):>10}")
    return [dict(run, label=label) for label, run in runs.items()]


def growth_events(bench: Session) -> list[Figures]:
    top = 18 if bench.quick else 24
    return growth(
        bench,
        "events",
        [(f"8 x {2**k:,}", {"ranks": 8, "ranks_per_node": 2, "events": 2**k}) for k in range(14, top + 1)],
    )


def growth_processes(bench: Session) -> list[Figures]:
    top = 7 if bench.quick else 11
    return growth(
        bench, "processes", [(f"{2**k:,} x 32,768", {"ranks": 2**k, "events": 32768}) for k in range(3, top + 1)]
    )


def processes(bench: Session) -> Figures:
    events = 2000 if bench.quick else 10000
    trace = bench.trace("p1024", ranks=1024, ranks_per_node=16, events=events, pattern="halo3d", clock="sine")
    runs = bench.interleaved(
        {"alone": lambda: bench.correct(trace), "two": lambda: bench.correct(trace, 2)}, bench.rounds
    )
    bench.drop(trace)
    for name, run in runs.items():
        bench.row(f"1,024 processes x {events:,} events: {name}", f"{run['wall']:.2f} s")
    return runs
