"""How fast and how small is the program on this machine? Simulated traces, medians of runs in turn, ratios.

    scripts/bench                    everything but `model` and `record` (a quarter of an hour and 7 GB of temporary files)
    scripts/bench --quick            smaller traces, one run each: to see that it works
    scripts/bench end-to-end memory  only these parts
    scripts/bench --work /dev/shm    make the traces in memory: the file system is left out
    scripts/bench --json FILE        also store the figures in FILE, each part in place of what FILE has of it

    scripts/bench --work /dev/shm --json docs/performance/measured.json
                                     measures what docs/performance.md is made from, and makes its tables and plots
    scripts/bench --check            are the tables those of docs/performance/measured.json? exit status 1 if not
    scripts/bench --tables           writes the tables again
    scripts/bench --plots            draws docs/performance/*.svg again (needs python3-matplotlib)

Parts: replayed, recordings, decoding, end-to-end, large, backward, collectives, growth-events, growth-processes, memory, limit, processes,
scaling, ranks, transport, bounds, model (scripts/scaling needs transport and model), record (what recording an application costs it, docs/recording.md).
Machines are noisy: commands that are compared run alternately, and what counts is the ratio of medians. The binary is
target/release/clc-replay (CLC_REPLAY names another one), the launcher MPIEXEC or mpirun.openmpi or mpirun.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import reports, runner
from ..command import parser
from . import document
from .bounds import bounds
from .communication import transport
from .decoding import decoding
from .machine import Others, machine
from .model import model
from .needs import limit, memory
from .ranks import ranks, scaling
from .recording import record
from .recordings import recordings
from .replayed import replayed
from .results import results
from .session import Session
from .whole_runs import backward, collectives, end_to_end, growth_events, growth_processes, large, processes

PARTS: dict[str, Callable[[Session], Any]] = {
    "replayed": replayed,
    "recordings": recordings,
    "decoding": decoding,
    "end-to-end": end_to_end,
    "large": large,
    "backward": backward,
    "collectives": collectives,
    "growth-events": growth_events,
    "growth-processes": growth_processes,
    "memory": memory,
    "limit": limit,
    "processes": processes,
    "scaling": scaling,
    "ranks": ranks,
    "transport": transport,
    "bounds": bounds,
    "model": model,
    "record": record,
}
# Only scripts/scaling needs the first one, and the other one needs a quiet machine.
ON_REQUEST = ("model", "record")


@dataclass(frozen=True)
class Options:
    """As on the command line of scripts/bench."""

    parts: Sequence[str] = ()
    quick: bool = False
    check: bool = False
    tables: bool = False
    plots: bool = False
    json: Path | None = None
    work: str | None = None


def store(file: Path, name: str, figures: object, where: reports.Json) -> None:
    """Puts the figures of a part into a file; the other parts in it stay."""
    known = reports.read(file) if file.exists() else {"machines": {}, "figures": {}}
    known["machines"][name], known["figures"][name] = where, figures
    reports.write(file, {key: dict(sorted(of.items())) for key, of in known.items()})


def measure(options: Options) -> reports.Json:
    """Measures the parts; their figures."""
    print(f"{os.cpu_count()} cores, {runner.program()}", flush=True)
    found: reports.Json = {}
    with runner.scratch(prefix="clc-replay-bench-", parent=options.work) as work:
        bench = Session(work, options.quick)
        where = machine(work, options.quick)
        for name in options.parts or [name for name in PARTS if name not in ON_REQUEST]:
            others = Others()
            found[name] = PARTS[name](bench)
            busy = others.cores()
            bench.row(f"({name}: {time.monotonic() - others.start:.0f} s, other programs used {busy:.2f} cores)", "")
            if options.json:
                store(options.json, name, found[name], dict(where, others=busy))
    rows = results(found)
    for row in rows:
        print(f"{row.what}\n    {row.measured}\n    target: {row.verdicts()}".rstrip())
    missed = [row.what for row in rows if row.missed()]
    print(f"{len(missed)} rows with a target missed" + (": " + "; ".join(missed) if missed else ""))
    return found


def main() -> int:
    options = parser(__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", choices=[[], *PARTS])
    for option in ("quick", "check", "tables", "plots"):
        options.add_argument(f"--{option}", action="store_true")
    options.add_argument("--json", metavar="FILE", type=Path)
    options.add_argument(
        "--work", metavar="DIR", help="where traces are made, e.g. /dev/shm to leave the file system out of it"
    )
    chosen = Options(**vars(options.parse_args()))
    if chosen.check or chosen.tables or chosen.plots:
        if chosen.parts or chosen.quick or chosen.json or chosen.work:
            options.error("--check, --tables and --plots measure nothing")
        return document.make(check=chosen.check, tables=chosen.tables, plots=chosen.plots)
    whole = chosen.json is not None and chosen.json.resolve() == document.MEASURED
    if whole and chosen.quick:
        options.error(f"{chosen.json}: the page is not made from --quick")
    measure(chosen)
    return document.make(tables=True, plots=True) if whole else 0
