"""Nodes whose clocks fail, and a global time that is made from all of them: the experiments of Umansky and Leontev.

    scripts/accuracy_failing             print the tables of docs/clocks.md
    scripts/accuracy_failing --write     put them there

One process per node, no recorded offsets, so that nothing but the messages is known of the clocks. Of 3 nodes node 1 fails, of 12 nodes 1,
2, 3 and 10. The figures follow from the seed. The binary is target/release/clc-replay (CLC_REPLAY names another one).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import reports, traces
from .command import parser
from .figures import rounded_error
from .page import Page, table
from .runner import ROOT, alone, scratch

PAGE = Page(ROOT / "docs/clocks.md")
REFERENCES = ("auto", "median", "mean", "harmonic", "0")
# What it is, nodes, clocks.
FAILURES = (
    ("none of 3", 3, "decentralised3"),
    ("1 of 3 runs away (4000 ppm)", 3, "decentralised3-failing"),
    ("1 of 3, which is process 0", 3, "decentralised3;0:drift=4000ppm@30%"),
    ("1 of 3 jumps (1 ms)", 3, "decentralised3;1:jump=1ms@30%"),
    ("1 of 3 stands still (1 ms)", 3, "decentralised3;1:stuck=1ms@30%"),
    ("none of 12", 12, "decentralised12"),
    ("4 of 12 run away", 12, f"decentralised12;{traces.RUNAWAYS}"),
    ("4 of 12 jump", 12, "decentralised12;1:jump=1ms@30%;2:jump=1ms@40%;3:jump=1ms@50%;10:jump=1ms@70%"),
    ("4 of 12: a jump, two run away, one stands still", 12, "decentralised12-failing"),
)
# Steps of the generators, and their deviation: a millionth.
STEPS = (("0.5 ms", "0.5ms/0.5ns"), ("1 ms", "1ms/1ns"), ("100 ms", "100ms/100ns"), ("700 ms", "700ms/700ns"))
# The clocks of all nodes, but for the steps of their generators.
NODE = "all:offset=1ms,all:drift=10ppm,all:generator={}"


def errors(nodes: int, clock: str) -> Iterator[str]:
    """Clock error after pre-synchronisation, with each reference."""
    with scratch() as directory:
        trace = directory / "trace"
        arguments = f"--ranks {nodes} --ranks-per-node 1 --events 4k --compute 1ms --pattern halo1d --measurements 0 -q"
        alone("simulate", trace, *arguments.split(), "--clock", clock)
        for reference in REFERENCES:
            model = ("--presync", "network", "--reference", reference)
            # Violations are what these clocks are about: no failure.
            evaluation = alone("evaluate", trace, "--truth", trace, *model, "--report", "-", status=(0, 1))
            yield rounded_error(reports.rms(reports.by_phase(reports.parse(evaluation))["presync"]))


def measured(title: str, rows: Iterable[tuple[str, int, str]]) -> str:
    head = (title, *REFERENCES[:-1], "process 0")
    return table(head, ((name, *errors(nodes, clock)) for name, nodes, clock in rows), 1)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--write", action="store_true")
    chosen = options.parse_args()
    three = [(f"{name}, 1 of 3 runs away", 3, f"{NODE.format(step)};1:drift=4000ppm@30%") for name, step in STEPS]
    twelve = [(f"{name}, 4 of 12 run away", 12, f"{NODE.format(step)};{traces.RUNAWAYS}") for name, step in STEPS]
    tables = {
        "failures": measured("nodes that fail", FAILURES),
        "steps": measured("step of the generators", three + twelve),
    }
    print("\n\n".join(tables.values()))
    if chosen.write:
        PAGE.write(tables)
    return 0
