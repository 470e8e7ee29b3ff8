"""One trace in its directory: made, corrected in two ways, and verified."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import reports
from ..reports import Json
from ..runner import ROOT, mpi_environment
from .draw import Draw, Library

JUDGE = ROOT / "tests/tools/check_clock_condition.py"


class Failure(Exception):
    """What went wrong with one trace."""


@dataclass(frozen=True)
class Options:
    """As on the command line of scripts/soak."""

    count: int | None
    seed: int
    jobs: int
    short: bool
    only: list[int] | None
    keep: str | None
    show: bool
    mpi: str
    limit: float
    judge: int
    json: str | None
    verbose: bool


def tree(directory: Path) -> dict[str, str]:
    """Relative path -> digest of the contents."""
    found: dict[str, str] = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(directory))] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[str(path.relative_to(directory))] = ""
    return found


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends a program that hangs; a launcher has to end its ranks, which are in groups of their own, so it is asked first."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(child.pid, how)
        try:
            child.wait(10)
            return
        except subprocess.TimeoutExpired:
            continue


class Attempt:
    """One trace in its directory."""

    def __init__(
        self, draw: Draw, number: int, directory: Path, libraries: Mapping[str, Library], options: Options
    ) -> None:
        self.draw, self.number, self.directory, self.options = draw, number, directory, options
        self.program = next(iter(libraries.values())).program
        self.commands = draw.commands(libraries)

    def run(self, what: str, command: Sequence[str] | None = None) -> None:
        command = command or self.commands[what]
        # A run on a busy machine may have to wait; that is no fault.
        more = {"CLC_REPLAY_MPI": "always" if what == "correct" else "never", "CLC_REPLAY_WATCH": "0"}
        environment = mpi_environment(more)
        environment.pop("RUST_LOG", None)
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(
                command,
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = child.wait(self.options.limit)
            except subprocess.TimeoutExpired:
                end(child)
                raise Failure(f"{what}: not finished after {self.options.limit} s: {shlex.join(command)}") from None
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
        if status != 0 or (text and "check_clock" not in command[1]):
            raise Failure(f"{what}: exit status {status}: {shlex.join(command)}\n    {text or 'nothing was said'}")

    def attempt(self) -> Json:
        """Figures of the trace; raises Failure."""
        draw, directory = self.draw, self.directory
        trace, out = directory / draw.name("trace"), directory / draw.name("out")
        self.run("simulate")
        before = tree(trace)
        expected = {trace.name, out.name, "report.json"} | ({"page.html"} if draw.page else set())
        if draw.replace:
            shutil.copytree(trace, out)
        self.run("correct")
        if tree(trace) != before:
            raise Failure("the input has changed")
        self.only(expected)
        self.run("correct alone")
        if tree(out) != tree(directory / draw.name("alone")):
            raise Failure(f"{draw.analysis} ranks of {draw.library} and one process do not give the same output")
        shutil.rmtree(directory / draw.name("alone"))
        report = reports.read(directory / "report.json")
        if report["verdict"] == "violated":
            raise Failure("the report says that violations remain")
        latency = report["parameters"]["latency"]
        # Ticks, as exact seconds have more digits than a duration may have.
        ticks = [round(latency[f"{where}_node_seconds"] * draw.resolution) for where in ("same", "other")]
        durations = [
            f"{where}-node={picoseconds(tick, draw.resolution)}ps" for where, tick in zip(("same", "other"), ticks)
        ]
        check = [self.program, "check", out.name, "-q", "--latency", ",".join(durations)]
        self.run("check", check + (["--alltoallv"] if draw.alltoallv else []))
        judged = self.options.judge and self.number % self.options.judge == 0
        if judged:
            self.judge(min(ticks))
        self.only(expected)
        result = {
            "events": report["trace"]["events"],
            "messages": report["matching"]["messages"],
            "violations": violated(report["violations"]["presynchronised"]),
            "judged": bool(judged),
            "library": draw.library,
            "analysis": draw.analysis,
        }
        self.run("evaluate")
        phases = reports.by_phase(reports.read(directory / "evaluation.json"))
        result["errors"] = {name: phase["clock"]["rms_seconds"] for name, phase in phases.items()}
        return result

    def only(self, expected: set[str]) -> None:
        left = {path.name for path in self.directory.iterdir()}
        if left != expected:
            raise Failure(f"in the directory are {sorted(left)} instead of {sorted(expected)}")

    def judge(self, ticks: int) -> None:
        archive = self.directory / "out"
        if self.draw.native:
            self.run("convert")
            archive = self.directory / "judged"
        anchor = next(archive.glob("*.otf2"))
        self.run("judge", ["/usr/bin/python3", str(JUDGE), str(anchor), "--min-latency", str(ticks)])
        if self.draw.native:
            shutil.rmtree(archive)


def violated(stage: Json) -> int:
    """Messages and collective operations that violate the clock condition."""
    total: int = stage["point_to_point"]["violated"] + sum(kind["violated"] for kind in stage["collectives"])
    return total


def picoseconds(ticks: int, resolution: int) -> int:
    """The most picoseconds that are no more than so many ticks: rounded up to ticks they are these again."""
    return ticks * 10**12 // resolution
