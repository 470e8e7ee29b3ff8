"""How far waiting times are from the true ones, before and after the correction: the table of docs/analysis.md.

    scripts/accuracy_waits               print the table; takes some minutes
    scripts/accuracy_waits --write       put it into docs/analysis.md
    scripts/accuracy_waits --check       fail if docs/analysis.md has another one

Everything follows from the seeds. The binary is target/release/clc-replay (CLC_REPLAY names another one).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

from . import reports
from .command import parser, progress
from .page import Page, row, table
from .runner import ROOT, alone, scratch

PAGE = Page(ROOT / "docs/analysis.md")
CLOCKS = ("ntp", "sine", "mixed", "jump")
PATTERNS = ("halo2d", "wavefront", "butterfly", "master-worker", "mix", "pipeline")
SEEDS = range(1, 6)
# Seconds by kind of waiting and process.
Waits = dict[tuple[str, int], float]


def analysed(directory: Path, clock: str, pattern: str, measurements: int, seed: int) -> tuple[Waits, Waits]:
    """Waiting times before and after the correction."""
    shape = ("--ranks", 8, "--events", "10k", "--pattern", pattern, "--measurements", measurements)
    alone("simulate", "trace", "--force", *shape, "--clock", clock, "--seed", seed, "--quiet", cwd=directory)
    alone("analyze", "trace", "--report", "report.json", "--quiet", cwd=directory)
    waits = reports.read(directory / "report.json")["analysis"]["waits"]
    if waits["further_processes"]:
        raise ValueError(f"the report leaves out {waits['further_processes']} processes")
    before, after = (
        {
            (entry["kind"], entry["process"]): float(entry["waiting"][f"{stage}_seconds"])
            for entry in waits["by_process"]
        }
        for stage in ("before", "after")
    )
    return before, after


def error(found: Mapping[tuple[str, int], float], truth: Mapping[tuple[str, int], float]) -> float:
    """How much of the true waiting time is elsewhere, in percent."""
    keys = found.keys() | truth.keys()
    return 100 * sum(abs(found.get(key, 0) - truth.get(key, 0)) for key in keys) / sum(truth.values())


def measured(directory: Path) -> str:
    rows = []
    for measurements, said in ((0, "no"), (2, "yes")):
        truths = {
            (pattern, seed): analysed(directory, "perfect", pattern, measurements, seed)[0]
            for pattern in PATTERNS
            for seed in SEEDS
        }
        for clock in CLOCKS:
            cells = []
            for pattern in PATTERNS:
                errors = []
                for seed in SEEDS:
                    stages = analysed(directory, clock, pattern, measurements, seed)
                    errors.append([error(stage, truths[pattern, seed]) for stage in stages])
                before, after = zip(*errors)
                shown = statistics.median(before), statistics.median(after), max(after)
                cells.append(", ".join(f"{figure:.1f}" for figure in shown))
            rows.append((clock, said, *cells))
            progress(row(rows[-1]))
    return table(("clocks", "offsets measured", *PATTERNS), rows, 2)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--write", action="store_true")
    options.add_argument("--check", action="store_true")
    chosen = options.parse_args()
    with scratch() as directory:
        made = measured(directory)
    if not (chosen.write or chosen.check):
        print(made)
    advice = f"docs/analysis.md has another table:\n{made}"
    return PAGE.update({"measured": made}, write=chosen.write, check=chosen.check, advice=advice)
