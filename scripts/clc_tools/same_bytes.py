"""Do two builds of the program make the same of everything? For changes that are not meant to change a result.

    scripts/same_bytes OLD NEW                       the corpus: recordings of tests/data, and simulated traces of every kind
    scripts/same_bytes OLD NEW TRACE...              and these traces
    scripts/same_bytes OLD NEW --only solver --keep DIR

OLD and NEW are two builds of clc-replay. Each corrects, checks, analyses and (where the truth is known) evaluates every trace on each of --ranks analysis
ranks. What is compared: exit status, what is said on standard error, all bytes of the archive, the report as JSON and the page. Time and
memory of a run are left out. Exit status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import reports
from .command import fail, parser, progress
from .runner import ROOT, mpi_environment, on_ranks, scratch

# What each of the program's abilities needs a trace for.
SIMULATED = {
    "solver": "--ranks 12 --ranks-per-node 3 --pattern solver --clock walk",
    "solver-native": "--ranks 12 --ranks-per-node 3 --pattern solver --clock sine --to native",
    "ring": "--ranks 5 --ranks-per-node 1 --pattern ring --clock ntp",
    "halo1d": "--ranks 6 --pattern halo1d --clock drift --measurements 0",
    "halo2d": "--ranks 9 --ranks-per-node 1 --pattern halo2d --clock sine --measurements 5",
    "halo3d": "--ranks 8 --pattern halo3d --clock linear --calls 3",
    "wavefront": "--ranks 9 --pattern wavefront --clock offset --measurements 1",
    "master-worker": "--ranks 7 --pattern master-worker --clock jump",
    "butterfly": "--ranks 8 --ranks-per-node 2 --pattern butterfly --clock mixed",
    "random": "--ranks 9 --ranks-per-node 1 --pattern random --clock coarse",
    "alltoall": "--ranks 6 --ranks-per-node 1 --pattern alltoall --clock all:sine",
    "pipeline": "--ranks 6 --ranks-per-node 1 --pattern pipeline --clock stuck",
    "mix": "--ranks 8 --ranks-per-node 2 --pattern mix --clock walk --resolution 10G",
    "subsets": "--ranks 8 --ranks-per-node 2 --pattern subsets --clock linear",
    "coupled": "--ranks 8 --ranks-per-node 2 --pattern coupled --clock sine",
    "ssend-pipeline": "--ranks 6 --ranks-per-node 1 --pattern ssend-pipeline --clock linear",
    "rma-fence": "--ranks 6 --ranks-per-node 1 --pattern rma-fence --clock sine",
    "rma-pscw": "--ranks 6 --ranks-per-node 1 --pattern rma-pscw --clock linear",
    "rma-lock": "--ranks 6 --ranks-per-node 1 --pattern rma-lock --clock walk",
    "hybrid": "--ranks 4 --threads 4 --pattern hybrid --clock linear --thread-clocks",
    "offload": "--ranks 4 --threads 3 --pattern offload --clock linear",
    "threads": "--ranks 4 --threads 4 --pattern halo2d --clock linear",
    "perfect": "--ranks 8 --ranks-per-node 1 --pattern halo2d --clock perfect",
    "asymmetric": "--ranks 6 --ranks-per-node 1 --pattern random --clock walk --asymmetry 0.5 --measurements 0",
    "idle": "--ranks 6 --ranks-per-node 1 --pattern halo1d --clock sine --idle 200ms",
    "decentralised": "--ranks 12 --ranks-per-node 1 --pattern random --clock decentralised12-failing --compute 1ms",
}
# Corrections that go other ways than the default one.
WAYS = {
    "": [],
    "paper": ["--correction", "paper", "--presync", "linear"],
    "hull": ["--presync", "hull"],
    "raw": ["--presync", "none"],
}
# Members of a report that say how long the run took and what it needed.
MEASURED = ("phases", "memory")
TIMES = re.compile(r"<table><caption>Time and memory on .*?</table>", re.DOTALL)
LIMIT = 600


class Result(NamedTuple):
    """What a command left: everything that has to be the same."""

    status: int
    said: str
    files: Mapping[str, str]
    report: Any
    page: str


def without_times(report: Any) -> Any:
    """A report as it would be if every run took the same time and memory."""
    if isinstance(report, dict):
        return {
            name: value for name, value in report.items() if name not in MEASURED or name == "phases" and judged(value)
        }
    return report


def judged(phases: Any) -> bool:
    """Whether these phases are those of an evaluation, which have errors instead of times."""
    return all("clock" in phase for phase in phases)


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Where two values of JSON differ, as paths."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from differences(old.get(name), new.get(name), f"{where}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new)):
            yield from differences(one, other, f"{where}[{place}]")
    elif old != new:
        yield f"{where}: {old!r:.60} became {new!r:.60}"


def compare(old: Result, new: Result) -> Iterator[str]:
    """What differs between the results of the same command."""
    if old.status != new.status:
        yield f"exit status {old.status} became {new.status}"
    if old.said != new.said:
        yield f"standard error {old.said!r:.200} became {new.said!r:.200}"
    for name in sorted(old.files.keys() | new.files.keys()):
        if old.files.get(name) != new.files.get(name):
            yield f"file {name}"
    yield from differences(old.report, new.report, "report")
    if old.page != new.page:
        yield "page"


def tree(directory: Path) -> dict[str, str]:
    """The digest of every file below a directory."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(build: Path, ranks: int, words: list[str], directory: Path) -> Result:
    """Runs a command of one build in an empty `directory`. Both builds have the same name and directory there."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    own = directory.parent / "clc-replay"
    own.unlink(missing_ok=True)
    shutil.copy2(build, own)
    environment = mpi_environment({"CLC_REPLAY_WATCH": "0"})
    environment.pop("RUST_LOG", None)
    command = [*on_ranks(ranks if ranks > 1 else 0), str(own), *words, "-q", "--report", "report.json"]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    report, page, out = directory / "report.json", directory / "page.html", directory / "out"
    return Result(
        done.returncode,
        # Without what the launcher adds, with the numbers of processes in it.
        "\n".join(line for line in done.stderr.splitlines() if line.startswith("clc-replay")),
        tree(out) if out.is_dir() else {},
        without_times(reports.read(report)) if report.exists() else None,
        TIMES.sub("", page.read_text(encoding="utf-8")) if page.exists() else "",
    )


def commands(trace: Path, ways: Mapping[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """What is done with a trace, by name."""
    for way, options in ways.items():
        yield f"correct {way}".strip(), [str(trace), "-o", "out", "--html", "page.html", *options]
    yield "check", ["check", str(trace), "--html", "page.html"]
    yield "analyze", ["analyze", str(trace), "--html", "page.html"]
    if (trace / "truth").is_dir():
        yield "evaluate", ["evaluate", str(trace), "--truth", str(trace / "truth")]


def corpus(directory: Path, simulator: Path, events: str, only: str, more: list[Path]) -> dict[str, Path]:
    """The traces by name; the simulated ones are made in `directory`."""
    recorded = (path for path in sorted((ROOT / "tests/data").iterdir()) if path.is_dir())
    traces = {path.name: path for path in [*recorded, *more] if only in path.name}
    for name, options in SIMULATED.items():
        if only not in name:
            continue
        traces[f"simulated {name}"] = trace = directory / name
        words = [str(simulator), "simulate", str(trace), "--events", events, "--seed", "3", "-q", *options.split()]
        made = subprocess.run(words, capture_output=True, text=True, env=mpi_environment(), check=False)
        if made.returncode != 0:
            fail(f"{' '.join(words)}: exit status {made.returncode}: {made.stderr.strip()}")
    return traces


def arguments() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("old", type=Path, metavar="OLD", help="a build of clc-replay")
    options.add_argument("new", type=Path, metavar="NEW", help="another one")
    options.add_argument("traces", type=Path, nargs="*", metavar="TRACE", help="a trace beside those of the corpus")
    options.add_argument("--ranks", type=int, nargs="+", default=[1, 3], metavar="N", help="analysis ranks (1 3)")
    options.add_argument("--events", default="5k", metavar="N", help="events per process of simulated traces (5k)")
    options.add_argument("--only", default="", metavar="TEXT", help="traces with this in their names")
    options.add_argument("--quick", action="store_true", help="correct in the default way only")
    options.add_argument("--keep", metavar="DIR", help="keep the simulated traces there")
    return options.parse_args()


def main() -> int:
    options = arguments()
    builds = [build.resolve() for build in (options.old, options.new)]
    for build in builds:
        if not build.is_file():
            fail(f"no program {build}")
    ways = {"": WAYS[""]} if options.quick else WAYS
    done, differing = 0, 0
    with scratch(options.keep) as directory:
        given = [trace.resolve() for trace in options.traces]
        traces = corpus(directory, builds[0], options.events, options.only, given)
        for name, trace in traces.items():
            found: list[str] = []
            for ranks in options.ranks:
                for what, words in commands(trace, ways):
                    old, new = (run(build, ranks, words, directory / "run") for build in builds)
                    found += [f"{what} on {ranks} of {name}: {difference}" for difference in compare(old, new)]
                    done += 1
            differing += bool(found)
            progress(f"{'DIFFERS' if found else 'same   '} {name}")
            for line in found[:10]:
                print(line)
    print(f"{len(traces)} traces, {done} pairs of runs: {differing or 'no'} traces differ")
    return 1 if differing else 0
