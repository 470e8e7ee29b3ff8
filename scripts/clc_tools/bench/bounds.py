"""Part of scripts/bench: what the machine can do at best, and runs to put beside it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .communication import micro
from .session import Figures, Session, medians
from .whole_runs import halo8


def read_files(paths: Sequence[Path]) -> float:
    """Seconds to read files into one buffer, as the program does: what of them is in the page cache stays there."""
    chunk = bytearray(2**20)
    start = time.perf_counter()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(chunk):
                pass
    return time.perf_counter() - start


def write_files(directory: Path, sizes: Sequence[int]) -> float:
    """Seconds to write new files of these sizes from one buffer."""
    chunk = memoryview(bytes(range(256)) * 4096)
    directory.mkdir()
    start = time.perf_counter()
    for at, size in enumerate(sizes):
        with (directory / str(at)).open("wb", buffering=0) as file:
            while size > 0:
                size -= file.write(chunk[:size])
    return time.perf_counter() - start


def bounds(bench: Session) -> Figures:
    """What the machine can do at best, and runs with one thread to put beside it."""
    trace = halo8(bench)
    files = sorted(trace.rglob("*.evt"))
    sizes = [path.stat().st_size for path in files]

    def written() -> float:
        try:
            return write_files(bench.work / "written", sizes)
        finally:
            bench.drop(bench.work / "written")

    thread = ["--threads", "1"]
    linear = ["--presync", "linear", *thread]
    results: dict[str, list[Any]] = bench.in_turn(
        {
            "read": lambda: read_files(files),
            "write": written,
            "memory": lambda: micro("memory", 1),
            "memory_all": lambda: micro("memory", os.cpu_count()),
            "mpi": lambda: micro("transport", ranks=2),
            "estimated": lambda: bench.correct(trace, options=thread),
            "linear": lambda: bench.correct(trace, options=linear),
            "two_linear": lambda: bench.correct(trace, 2, linear),
        },
        bench.rounds,
    )

    def of(name: str, key: str) -> float:
        return statistics.median(float(result[key]) for result in results[name])

    size = sum(sizes)
    machine: Figures = {
        "read": size / statistics.median(results["read"]),
        "write": size / statistics.median(results["write"]),
    }
    for name in ("memory", "memory_all"):
        machine[name] = {key: of(name, key) for key in ("read", "write", "copy", "dependent", "independent")}
    machine["mpi"] = {key: of("mpi", key) for key in ("latency", "message", "batched_word")}
    runs = {name: medians(results[name]) for name in ("estimated", "linear", "two_linear")}
    # Ordered pairs of processes that talk: each of them once in every step of the halo exchange.
    pairs = results["linear"][0].pairs
    bench.row("files: read, write", f"{machine['read'] / 1e9:.1f}, {machine['write'] / 1e9:.1f} GB/s")
    for name, cores in (("memory", 1), ("memory_all", os.cpu_count())):
        figures = machine[name]
        rates = ", ".join(f"{figures[key] / 1e9:.1f}" for key in ("read", "write", "copy"))
        latency = f"random reads {figures['dependent'] * 1e9:.0f}, {figures['independent'] * 1e9:.1f} ns"
        bench.row(f"memory, {cores} cores: read, write, copy", f"{rates} GB/s", latency)
    bench.row(
        "MPI, two ranks: half round trip, one message",
        ", ".join(f"{machine['mpi'][key] * 1e6:.2f}" for key in ("latency", "message")) + " us",
    )
    for name, run in runs.items():
        said = ", ".join(f"{phase} {seconds * 1e3:.1f}" for phase, seconds in run["phases"].items() if seconds > 1e-4)
        bench.row(f"phases, {name}", "", f"{said} ms")
    return {"machine": machine, "bytes": size, "pairs": len(pairs["senders"]), "runs": runs}
