"""Soak: random traces, corrected by the real program on real MPI ranks, and everything verified that can be.

    scripts/soak                      1,000 traces
    scripts/soak -n 200 -s 7 -j 2     200 others, two at a time
    scripts/soak --short              30 small ones, for scripts/test.sh
    scripts/soak --only 17            trace 17 alone
    scripts/soak --only 17 --keep DIR and keep what was made, in DIR
    scripts/soak --only 17 --show     only print the commands

A trace is an application, a machine, clocks, measurements and a format, drawn from the seed and its number; so are the MPI library, the
number of ranks (1 to 16) and the options of the correction. For each trace:

  - it is simulated, corrected under the launcher, and corrected again by one process without MPI; each run has a time limit;
  - every exit status has to be 0, and nothing may be said on standard error;
  - both outputs have to be the same, byte for byte;
  - `clc-replay check` must find no violation in the output, with the latency that the correction used;
  - a judge that shares no code with the program (tests/tools/check_clock_condition.py) must not either; it is slow, so one trace in
    --judge gets it;
  - the input must be as it was, and nothing else may be left in the directory;
  - `clc-replay evaluate` compares output and truth. That is only reported: options are drawn without regard to the trace, and a bad
    choice may well give a bad result.

Every failure is printed with the command that repeats it. Exit status: 0 no failure, 1 failures, 2 something is missing.

Environment: CLC_REPLAY (target/release/clc-replay) and MPIEXEC (mpirun.openmpi or mpirun), CLC_REPLAY_MPICH
(target-mpich/release/clc-replay) and MPIEXEC_MPICH (mpiexec.mpich). The second program is built by
MPICC=mpicc.mpich CARGO_TARGET_DIR=target-mpich cargo build --release.
"""

from __future__ import annotations

import concurrent.futures
import math
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import reports, runner
from ..command import complain, parser
from ..reports import Json
from ..traces import words
from .attempt import Attempt, Failure, Options
from .draw import Draw, Library

# Names of the launcher, what the names of variables end with, where the program is built, options of the launcher.
LIBRARIES = {
    "openmpi": (runner.OPEN_MPI, "", "target", runner.OVERSUBSCRIBE),
    "mpich": (runner.MPICH, "_MPICH", "target-mpich", ()),
}
# A corrected trace is called far off if its clock error is this much larger than before; of interest only.
FAR = 10


def libraries(wanted: Sequence[str]) -> dict[str, Library]:
    """The libraries to use; ends the script if something is missing."""
    found = {}
    for name in wanted:
        names, suffix, target, options = LIBRARIES[name]
        program = Path(runner.program(f"CLC_REPLAY{suffix}", f"{target}/release/clc-replay"))
        launcher = runner.launcher(names, f"MPIEXEC{suffix}")
        if not program.exists():
            complain(f"{program} is missing; build it, or leave out this library with --mpi (see --help)")
            sys.exit(2)
        if not launcher:
            complain(f"no launcher {' or '.join(names)}; scripts/setup.sh installs it")
            sys.exit(2)
        found[name] = Library((*launcher, *options, "-n"), str(program.resolve()))
    return found


def one(number: int, libraries: Mapping[str, Library], options: Options) -> Json:
    """Result and time of a trace, or the complaint."""
    draw = Draw(options.seed, number, list(libraries), options.short)
    start = time.monotonic()
    with runner.scratch(options.keep, "clc-replay-soak-") as directory:
        attempt = Attempt(draw, number, directory, libraries, options)
        try:
            result = attempt.attempt()
        except (Failure, OSError, ValueError) as failure:
            return {"number": number, "failure": str(failure), "simulate": shlex.join(attempt.commands["simulate"])}
    options_drawn = draw.shared() + words(draw.correction)
    return {"number": number, **result, "seconds": time.monotonic() - start, "options": options_drawn}


def again(number: int, options: Options) -> str:
    command = ["scripts/soak", "--seed", str(options.seed), "--only", str(number), "--keep", "DIR"]
    command += ["--short"] if options.short else []
    command += ["--mpi", options.mpi] if options.mpi != "openmpi,mpich" else []
    return shlex.join(command)


def say(result: Json, options: Options) -> None:
    if "failure" in result:
        repeat = again(result["number"], options)
        print(
            f"{result['number']} FAILED: {result['failure']}\n    the trace: {result['simulate']}\n    again: {repeat}",
            flush=True,
        )
    elif options.verbose or options.only:
        errors = ", ".join(f"{name} {value:.3g}" for name, value in result["errors"].items() if value is not None)
        print(
            f"{result['number']} ok: {result['events']} events, {result['messages']} messages, {result['violations']} violations, "
            f"{result['analysis']} ranks of {result['library']}, {result['seconds']:.1f} s; rms clock error in s: {errors}; "
            f"{' '.join(result['options'])}",
            flush=True,
        )


def is_far(result: Json) -> bool:
    """Whether the output is further from the truth than the clocks were at their best before."""
    known = [result["errors"].get(phase) for phase in ("raw", "presync", "final")]
    if any(value is None or not math.isfinite(value) for value in known):
        return False
    return bool(known[2] > FAR * max(known[:2]) + 1e-5)


def summary(results: Sequence[Json], failed: Sequence[int], options: Options, seconds: float) -> None:
    good = [result for result in results if "failure" not in result]
    events, messages, violations, judged = (
        sum(result[key] for result in good) for key in ("events", "messages", "violations", "judged")
    )
    ranks = sorted({result["analysis"] for result in good})
    far = sorted(result["number"] for result in good if is_far(result))
    libraries = ", ".join(
        f"{sum(r['library'] == name for r in good)} on {name}" for name in sorted({r["library"] for r in good})
    )
    print(
        f"soak: seed {options.seed}: {len(results)} traces ({libraries}; {ranks[0] if ranks else 0} to {ranks[-1] if ranks else 0} ranks), "
        f"{events:,} events, {messages:,} messages, {violations:,} violations in "
        f"{sum(r['violations'] > 0 for r in good)} traces, {judged} judged independently, {seconds:.0f} s: {len(failed)} failures"
        + (f" {failed}" if failed else "")
        + (f"; clock error more than {FAR} times that before: {len(far)} {far}" if far else "")
    )


def parse() -> Options:
    options = parser(__doc__)
    options.add_argument("-n", "--count", type=int, help="how many traces (1000; 30 with --short)")
    options.add_argument("-s", "--seed", type=int, default=1, help="other traces for another seed (default: 1)")
    options.add_argument("-j", "--jobs", type=int, default=1, help="how many at a time (default: 1)")
    options.add_argument("--short", action="store_true", help="small traces on few ranks")
    options.add_argument("--only", type=int, action="append", metavar="N", help="trace N alone (can be repeated)")
    options.add_argument("--keep", metavar="DIR", help="where the files of one trace go and stay")
    options.add_argument("--show", action="store_true", help="print the commands of the traces, run nothing")
    options.add_argument("--mpi", default="openmpi,mpich", help="libraries to use (default: openmpi,mpich)")
    options.add_argument(
        "--limit", type=float, default=300, metavar="S", help="seconds after which a run hangs (default: 300)"
    )
    options.add_argument(
        "--judge", type=int, default=4, metavar="N", help="one trace in N is judged independently (default: 4; 0: none)"
    )
    options.add_argument("--json", metavar="FILE", help="where all figures go")
    options.add_argument("-v", "--verbose", action="store_true", help="a line for every trace")
    chosen = Options(**vars(options.parse_args()))
    if not set(chosen.mpi.split(",")) <= set(LIBRARIES):
        options.error(f"--mpi takes {' and '.join(LIBRARIES)}")
    if chosen.keep and len(numbers(chosen)) != 1:
        options.error("--keep is for one trace: add --only N")
    if chosen.keep and Path(chosen.keep).exists() and any(Path(chosen.keep).iterdir()):
        options.error(f"{chosen.keep} is not empty")
    return chosen


def numbers(options: Options) -> list[int]:
    return options.only or list(range(options.count or (30 if options.short else 1000)))


def show(libraries: Mapping[str, Library], options: Options) -> None:
    for number in numbers(options):
        draw = Draw(options.seed, number, list(libraries), options.short)
        for what, command in draw.commands(libraries).items():
            print(f"{number} {what}: {shlex.join(command)}")


def attempt_all(libraries: Mapping[str, Library], options: Options) -> list[Json]:
    """The results of all traces, in the order of their numbers; each is told of when it is there."""
    start, results = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(one, number, libraries, options) for number in numbers(options)]
        for job in concurrent.futures.as_completed(jobs):
            results.append(job.result())
            say(results[-1], options)
            if len(results) % 50 == 0 and len(results) < len(jobs):
                failures = sum("failure" in result for result in results)
                spent = time.monotonic() - start
                print(f"{len(results)} of {len(jobs)} traces, {failures} failures, {spent:.0f} s", flush=True)
    return sorted(results, key=lambda result: int(result["number"]))


def main() -> int:
    options = parse()
    found = libraries(options.mpi.split(","))
    if options.show:
        show(found, options)
        return 0
    start = time.monotonic()
    results = attempt_all(found, options)
    if options.json:
        reports.write(options.json, results)
    failed = [result["number"] for result in results if "failure" in result]
    summary(results, failed, options, time.monotonic() - start)
    return 1 if failed else 0
