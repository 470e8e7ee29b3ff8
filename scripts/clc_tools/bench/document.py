"""docs/performance.md, from docs/performance/measured.json. A part that was not measured has no rows and no plot."""

from __future__ import annotations

from .. import reports
from ..command import fail
from ..figures import listed
from ..page import Page, table
from ..plots import attempt
from ..reports import Json
from ..runner import ROOT
from . import drawings
from .limits import bounds_tables
from .results import results

PAGE = Page(ROOT / "docs/performance.md")
MEASURED = ROOT / "docs/performance/measured.json"
NOTHING = "Not measured."
# Cores that other programs may use while it is measured.
BUSY = 0.15


def provenance(measured: Json) -> str:
    """Where the parts were measured, and whether the machine was quiet."""
    where: dict[str, list[str]] = {}
    for part, found in measured["machines"].items():
        quick = ", **with `--quick`**" if found["quick"] else ""
        said = f"{found['cpu']}, {found['cores']} cores, {found['memory'] / 2**30:.0f} GiB, {found['mpi']}, traces on {found['files']}{quick}"
        where.setdefault(said, []).append(part)
    text = "\n".join(f"- {listed(parts)}: {said}" for said, parts in where.items()) or NOTHING
    if len(where) == 1:
        text = f"Machine: {next(iter(where))}."
    busy = [
        f"{part} ({found['others']:.1f} cores)"
        for part, found in measured["machines"].items()
        if found["others"] > BUSY
    ]
    if busy:
        text += f"\n\n**Provisional:** other programs kept the machine busy during {listed(busy)}, which makes everything longer."
    return text


def made_tables(measured: Json) -> dict[str, str]:
    """What stands between the markers of the page."""
    rows = [[row.what, row.measured, row.verdicts()] for row in results(measured["figures"])]
    bounds = dict.fromkeys(("machine-bounds", "bounds", "order"), NOTHING)
    if "bounds" in measured["figures"]:
        bounds = bounds_tables(measured)
    drawn = {
        name: text
        for part, names in drawings.PLOTS.items()
        if part in measured["figures"]
        for name, text in names.items()
    }
    return {
        "machine": provenance(measured),
        "results": table(["what", "measured", "target"], rows) if rows else NOTHING,
        "plots": "\n".join(f"![{text}]({MEASURED.parent.name}/{name}.svg)" for name, text in drawn.items()) or NOTHING,
        **bounds,
    }


def make(*, check: bool = False, tables: bool = False, plots: bool = False) -> int:
    """Compares or writes the tables, draws the plots; the exit status."""
    if not MEASURED.exists():
        fail(f"{MEASURED} is missing; scripts/bench --json {MEASURED.relative_to(ROOT)} makes it")
    measured = reports.read(MEASURED)
    advice = f"{PAGE.path} is not what {MEASURED} says; scripts/bench --tables makes it so"
    if PAGE.update(made_tables(measured), write=tables, check=check, advice=advice):
        return 1
    if plots and not attempt(lambda: drawings.draw_all(measured, MEASURED.parent)):
        return 1
    return 0
