"""Runs of the program under test and of others: times, memory, and what the report says."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .. import reports, runner
from ..reports import Json
from ..traces import words

# What a part has measured, as it is stored.
Figures = Json
Result = TypeVar("Result")


@dataclass(frozen=True)
class Run:
    """A command: wall-clock and processor time in seconds, peak memory of the largest process in bytes (at least that of this script, some
    30 MiB)."""

    wall: float
    user: float
    system: float
    memory: int


@dataclass(frozen=True)
class Correction(Run):
    """A run of the program with its report, without the details for the page; of these only the pairs of processes."""

    report: Json
    pairs: Json


class Job(Protocol):
    """One of the runs of the program with different options, without their arguments."""

    def __call__(self) -> Run: ...


class Session:
    def __init__(self, work: Path, quick: bool) -> None:
        self.work, self.quick = work, quick
        self.program = runner.program()
        # Runs of a measurement: of one that takes up to two seconds or so, and of a longer one.
        self.rounds, self.few = (1, 1) if quick else (5, 3)

    def trace(self, name: str, **options: object) -> Path:
        """A simulated trace, made once."""
        path = self.work / name
        if not path.exists():
            named = {key.replace("_", "-"): value for key, value in options.items()}
            self.run([self.program, "simulate", path, "--no-truth", "--quiet", *words(named)])
        return path

    def drop(self, *paths: Path) -> None:
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)

    def run(self, command: Sequence[runner.Word], memory: int | None = None) -> Run:
        """Runs a command, in so many bytes of address space."""

        def limit() -> None:
            if memory:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        arguments = list(map(str, command))
        with tempfile.TemporaryFile() as said:
            start = time.perf_counter()
            child = subprocess.Popen(
                arguments,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=runner.mpi_environment(),
                preexec_fn=limit if memory else None,
            )
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - start
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode != 0:
                said.seek(0)
                raise runner.CommandFailed(arguments, child.returncode, said.read().decode(errors="replace"))
        return Run(wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024)

    def correct(
        self, trace: Path, ranks: int = 0, options: Sequence[str] = (), memory: int | None = None
    ) -> Correction:
        """Corrects a trace and asks for a report; on as many ranks, or in one process without MPI."""
        said = self.work / "report.json"
        done = self.bare(trace, ranks, ["--report", str(said), *options], memory)
        report = reports.read(said)
        # The details are most of a report.
        pairs = report.pop("details", {}).get("pairs")
        return Correction(done.wall, done.user, done.system, done.memory, report, pairs)

    def bare(self, trace: Path, ranks: int = 0, options: Sequence[str] = (), memory: int | None = None) -> Run:
        """Corrects a trace as a user does who wants no report: without it, the details for the page are not computed."""
        out = self.work / "out"
        self.drop(out)
        result = self.run([*runner.on_ranks(ranks), self.program, trace, "-o", out, "--quiet", *options], memory)
        self.drop(out)
        return result

    def copy(self, trace: Path) -> Run:
        copy = self.work / "copy"
        self.drop(copy)
        result = self.run(["cp", "-r", trace, copy])
        self.drop(copy)
        return result

    @staticmethod
    def in_turn(jobs: Mapping[str, Callable[[], Result]], rounds: int) -> dict[str, list[Result]]:
        """Runs all jobs alternately, so many times each; a list of results each."""
        results: dict[str, list[Result]] = {name: [] for name in jobs}
        for _ in range(rounds):
            for name, job in jobs.items():
                results[name].append(job())
        return results

    def interleaved(self, jobs: Mapping[str, Job], rounds: int) -> dict[str, Figures]:
        """The same, the medians of each."""
        return {name: medians(results) for name, results in self.in_turn(jobs, rounds).items()}

    def row(self, what: str, value: str, note: str = "") -> None:
        print(f"{what:<62} {value:>22}  {note}", flush=True)


def visited_events(report: Json) -> int:
    """Synchronisation events: what the phase `check` says it has handled."""
    phase = next(phase for phase in report["phases"] if phase["name"] == "check")
    seconds, rate = float(phase["seconds"]), float(phase["events_per_second"])
    return max(1, round(seconds * rate))


def of_trace(report: Json) -> Figures:
    """The sizes of a trace, by the report of its correction."""
    return {
        "events": report["trace"]["events"],
        "processes": report["trace"]["processes"],
        "visited": visited_events(report),
        "messages": report["matching"]["messages"],
    }


def medians(results: Sequence[Run]) -> Figures:
    """Medians of several runs of one command, and the times of each; what is the same in all of them from the first."""
    found: Figures = {"runs": len(results), "walls": [result.wall for result in results]}
    for key in ("wall", "user", "system", "memory"):
        found[key] = statistics.median(getattr(result, key) for result in results)
    said = [result.report for result in results if isinstance(result, Correction)]
    if not said:
        return found
    found["rank_memory"] = statistics.median(report["memory"]["largest_rank_bytes"] for report in said)
    phases = [reports.seconds_by_phase(report) for report in said]
    found["phases"] = {name: statistics.median(of.get(name, 0) for of in phases) for name in phases[0]}
    # The phases that make the corrected trace. Start-up of MPI is not the program's; the details are for the page.
    shared = [without_details(of) for of in phases]
    found.update(shared=statistics.median(shared), shareds=shared)
    checked = said[0]["violations"]["presynchronised"]["point_to_point"]
    found.update(of_trace(said[0]))
    found.update(checked=checked["checked"], violated=checked["violated"], passes=len(said[0]["replay"]["passes"]))
    return found


def without_details(phases: Mapping[str, float]) -> float:
    return sum(seconds for name, seconds in phases.items() if name != "details")


def logical_clocks(run: Mapping[str, Any]) -> int:
    """Logical times of an event: of the plain Lamport clock, which the first replay carries beside its own, and of every pass."""
    return int(run["passes"]) + 1 if run["passes"] else 0


def forward_per_visit(run: Mapping[str, Any]) -> float:
    """Seconds per visited event and clock."""
    return float(run["phases"]["forward"]) / int(run["visited"]) / max(1, logical_clocks(run))
