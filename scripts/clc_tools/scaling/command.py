"""The scaling model of docs/scaling.md: measured costs in, predictions for 10^3 to 10^6 ranks out.

    scripts/scaling --check     are the tables in docs/scaling.md those of docs/scaling/measured.json? exit status 1 if not
    scripts/scaling --write     writes the tables again
    scripts/scaling --measure   measures anew (scripts/bench, some minutes, a quiet machine), then as --write --plots
    scripts/scaling --quick     with --measure: few ranks, to see that it works
    scripts/scaling --plots     draws docs/scaling/*.svg (needs python3-matplotlib)

The model is LogGP's: latency L, overhead o per message, gap G per byte (Alexandrov, Ionescu, Schauser, Scheiman 1995), with costs
per event and per file beside them. Numbers of messages are those of the program: docs/scaling.md says where each is from.
"""

from __future__ import annotations

from pathlib import Path

from .. import reports
from ..bench import command as bench
from ..command import fail, parser
from ..page import Page
from ..plots import attempt
from ..runner import ROOT
from .drawings import draw_all
from .tables import tables

PAGE = Page(ROOT / "docs/scaling.md")
MEASURED = ROOT / "docs/scaling/measured.json"
PARTS = ("transport", "model")
# File systems are a part of the predictions, not of the measurement.
MEMORY = "/dev/shm"


def measure(quick: bool) -> None:
    """Has scripts/bench measure what the model needs."""
    work = MEMORY if Path(MEMORY).is_dir() else None
    MEASURED.parent.mkdir(exist_ok=True)
    reports.write(MEASURED, bench.measure(bench.Options(parts=PARTS, quick=quick, work=work)))


def main() -> int:
    options = parser(__doc__)
    for option in ("check", "write", "measure", "quick", "plots"):
        options.add_argument(f"--{option}", action="store_true")
    chosen = options.parse_args()
    if not (chosen.check or chosen.write or chosen.measure or chosen.plots):
        options.error("nothing to do: --check, --write, --measure or --plots")
    if chosen.measure:
        measure(chosen.quick)
    if not MEASURED.exists():
        fail(f"{MEASURED} is missing; scripts/scaling --measure makes it")
    measured = reports.read(MEASURED)
    advice = f"{PAGE.path} is not what {MEASURED} says; scripts/scaling --write makes it so"
    if PAGE.update(tables(measured), write=chosen.write or chosen.measure, check=chosen.check, advice=advice):
        return 1
    drawn = not (chosen.plots or chosen.measure) or attempt(lambda: draw_all(measured, MEASURED.parent))
    # Figures that were measured anew are of use without plots.
    return 0 if drawn or not chosen.plots else 1
