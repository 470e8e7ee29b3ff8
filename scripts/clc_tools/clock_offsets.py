"""How far are the clock offsets that `clc-replay record` measures from the truth? On emulated nodes, which share one counter: all true offsets are zero.

    scripts/clock_offsets                 20 runs of each case
    scripts/clock_offsets --runs 50       so many
    scripts/clock_offsets --busy 4        with so many processes beside it that compute

A case is a number of nodes and processes, or processes of one node that measure as if each had a clock of its own. Each run gives an offset per clock and
measurement. Printed are, in ns, median, 95 % and maximum of their absolute values, and the largest share of the range that the standard deviation
stands for (1 would be a measurement as wrong as it can be). The program is CLC_REPLAY or target/release/clc-replay, the application tests/apps/halo.c with
Open MPI. Exit status 77 where the kernel does not allow emulated nodes.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import page, runner
from .command import fail, parser
from .figures import quantile
from .nodes import SKIPPED

OFFSET = re.compile(r"^CLOCK_OFFSET +\d+ +Time: (\d+), Offset: ([+-]\d+), StdDev: (\S+)", re.M)
LAUNCH = ("mpirun.openmpi", *runner.OVERSUBSCRIBE)


@dataclass(frozen=True)
class Case:
    name: str
    # 0: this one.
    nodes: int
    processes: int
    # Of `record`.
    options: tuple[str, ...] = ()


CASES = (
    Case("4 processes of one node", 0, 4),
    Case("2 nodes, 2 processes", 2, 2, ("--clock-per-node",)),
    Case("2 nodes, 4 processes", 2, 4, ("--clock-per-node",)),
    Case("4 nodes, 8 processes", 4, 8, ("--clock-per-node",)),
    Case("4 nodes, 8 processes, ring", 4, 8, ("--clock-per-node", "--offsets", "ring")),
    Case("2 nodes, 4 processes, every 100 ms", 2, 4, ("--clock-per-node", "--offsets", "every=100ms")),
)


@dataclass(frozen=True)
class Offset:
    """A measurement: when, and how far it is from the truth in ns, with its standard deviation."""

    time: str
    error: int
    deviation: float


def offsets(work: Path, app: Path, case: Case) -> set[Offset]:
    """The measurements of a run."""
    clocks = ("--clock", "perfect", *case.options)
    record = [runner.program(), "record", "--force", "--quiet", "-o", work / "run", *clocks, "--"]
    launch = [*LAUNCH, "-n", case.processes, app, "20", "2000"]
    slots = case.processes // case.nodes if case.nodes else 0
    several = [runner.ROOT / "scripts/nodes", case.nodes, "--slots", slots, "--"] if case.nodes else []
    runner.output([*several, *record, *launch])
    said = runner.output(["otf2-print", "-C", work / "run/traces.otf2"])
    found = (Offset(time, int(offset), float(deviation)) for time, offset, deviation in OFFSET.findall(said))
    # All processes of a node have the same ones.
    return {offset for offset in found if offset.deviation > 0}


def summary(case: Case, found: Sequence[Offset]) -> tuple[object, ...]:
    errors = sorted(abs(offset.error) for offset in found)
    worst = max(abs(offset.error) / (offset.deviation * math.sqrt(3)) for offset in found)
    return case.name, len(errors), quantile(errors, 50), quantile(errors, 95), errors[-1], f"{worst:.0%}"


def measure(runs: int) -> None:
    with runner.scratch(prefix="clc-offsets-") as work:
        app = work / "halo"
        runner.output(["mpicc.openmpi", "-O1", "-w", runner.ROOT / "tests/apps/halo.c", "-o", app, "-lm"])
        print(page.heading(("case", "measurements", "median", "95 %", "maximum", "of what is possible"), 1))
        for case in CASES:
            found = [one for _ in range(runs) for one in offsets(work, app, case)]
            print(page.row(summary(case, found)), flush=True)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--busy", type=int, default=0)
    chosen = options.parse_args()
    beside = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(chosen.busy)]
    try:
        measure(chosen.runs)
    except runner.CommandFailed as failed:
        if failed.status != SKIPPED:
            fail(failed)
        print(failed.said.strip())
        return SKIPPED
    finally:
        for process in beside:
            process.kill()
            process.wait()
    return 0
