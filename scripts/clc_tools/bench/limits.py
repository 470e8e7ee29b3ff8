"""Tables of docs/performance.md: what the machine can do, how far the phases of a run are from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..figures import short_duration
from ..page import table
from ..reports import Json
from .session import Figures


@dataclass(frozen=True)
class Phase:
    """What a phase has to move, whatever it computes."""

    name: str
    what: str
    # What keeps it from that bound.
    why: str
    # How often the event files are read and written.
    read: int = 0
    written: int = 0
    # Of main memory, per visited event; per replay in the replay.
    bytes: int = 0


# Bytes per visited event: time, recorded time (in the replay: logical time), event number, place in its channel 4 each; kind and link 2.
PHASES = (
    Phase(
        "scan",
        "event files in; 18 bytes per visited event are stored",
        "decoding: each record begins where the one before ends",
        read=1,
        bytes=18,
    ),
    Phase(
        "clocks",
        "3 x 20 and 16 bytes per visited event",
        "mapping the times is arithmetic; the solver moves next to nothing",
        bytes=3 * 20 + 16,
    ),
    Phase(
        "check",
        "6 x 8 bytes per visited event",
        "the two ends of a message are in different places",
        bytes=6 * 8,
    ),
    Phase(
        "forward",
        "14 bytes per visited event and replay",
        "each event needs the one before, a receive its send: latency of the caches",
        bytes=14,
    ),
    Phase(
        "backward",
        "2 x 14 bytes per visited event",
        "as forward; an advance and a stretch of the curve per violation",
        bytes=2 * 14,
    ),
    Phase(
        "write",
        "event files in and out, 12 bytes per visited event",
        "decoding again, three formulas per event",
        read=1,
        written=1,
        bytes=12,
    ),
    Phase(
        "verify",
        "12 bytes per visited event",
        "as check; reads the regions of the worst violations from the event files",
        bytes=12,
    ),
)


def bound(phase: Phase, run: Mapping[str, Any], figures: Figures) -> float:
    """Seconds that moving alone takes, on one core."""
    machine, size = figures["machine"], figures["bytes"]
    walks = run["passes"] if phase.name == "forward" else 1
    files = phase.read * size / machine["read"] + phase.written * size / machine["write"]
    moved: float = walks * phase.bytes * run["visited"] / machine["memory"]["read"]
    return float(files) + moved


def gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.1f} GB/s"


def bounds_tables(measured: Json) -> dict[str, str]:
    """What the machine can do, how far the phases are from that, and what the order of the messages is worth."""
    figures, cores = measured["figures"]["bounds"], measured["machines"]["bounds"]["cores"]
    return {
        "machine-bounds": machine_table(figures["machine"], cores),
        "bounds": phases_table(figures),
        "order": order(figures["machine"]["memory"], figures["runs"]["linear"]),
    }


def machine_table(machine: Figures, cores: int) -> str:
    one, all_cores, mpi = machine["memory"], machine["memory_all"], machine["mpi"]
    ways = (("read", "reading"), ("write", "writing"), ("copy", "copying"))
    message, timestamp = mpi["message"], 2 * mpi["batched_word"]
    can = [
        ["reading files in the page cache, 1 MiB at a time", gigabytes(machine["read"]), ""],
        ["writing new files, 1 MiB at a time", gigabytes(machine["write"]), ""],
        *([f"main memory: {what}", gigabytes(one[key]), gigabytes(all_cores[key])] for key, what in ways),
        [
            "main memory: a random read that waits for the one before",
            short_duration(one["dependent"]),
            short_duration(all_cores["dependent"]),
        ],
        [
            "main memory: a random read among others",
            short_duration(one["independent"]),
            short_duration(all_cores["independent"]),
        ],
        ["MPI, two ranks: half a round trip", "", short_duration(mpi["latency"])],
        [
            "MPI, two ranks: a message after the other, one way",
            "",
            f"{short_duration(message)}, {1e-6 / message:.1f} million/s",
        ],
        [
            "MPI, two ranks: a timestamp in a batch of 32 KiB",
            "",
            f"{short_duration(timestamp)}, {1e-6 / timestamp:.0f} million/s",
        ],
    ]
    return table(["what", "one core", f"{cores} cores"], can)


def phases_table(figures: Figures) -> str:
    runs = figures["runs"]
    rows = []
    for phase in PHASES:
        cells = []
        for run in (runs["estimated"], runs["linear"]):
            least, spent = bound(phase, run, figures), run["phases"].get(phase.name, 0)
            replays = phase.name in ("forward", "backward")
            if (replays and not run["passes"]) or (phase.name == "clocks" and spent < 1e-4):
                # It had nothing to do.
                cells.append("")
                continue
            each = f"{spent / run['events'] * 1e9:.1f} ns/event"
            cells.append(f"{short_duration(spent)}, {each}: {spent / least:.1f} x")
        rows.append([phase.name, phase.what, short_duration(bound(phase, runs["linear"], figures)), *cells, phase.why])
    two = runs["two_linear"]
    if two["passes"]:
        steps = two["messages"] // figures["pairs"] * two["passes"]
        least, spent = steps * figures["machine"]["mpi"]["latency"], two["phases"]["forward"]
        rows.append(
            [
                "forward, `-n 2`",
                f"{steps:,} messages, each of which needs the one before",
                short_duration(least),
                "",
                f"{short_duration(spent)}: {spent / least:.1f} x",
                "a message is found, unpacked and answered after some events of the other rank",
            ]
        )
    head = ["phase", "has to move", "bound", "estimated clocks", "`--presync linear`", "what keeps it from the bound"]
    return table(head, rows)


def order(memory: Mapping[str, float], run: Figures) -> str:
    """What it is worth that the messages of a run are in an order."""
    messages = run["messages"]

    def random(key: str) -> str:
        return short_duration(2 * messages * memory[key])

    forward = (
        f", a forward replay takes {short_duration(run['phases']['forward'] / run['passes'])}" if run["passes"] else ""
    )
    return (
        f"If both ends of the {messages:,} messages were random accesses to main memory, going through them once would take "
        f"{random('dependent')} where each access waits for the one before, and {random('independent')} where they overlap. "
        f"A check takes {short_duration(run['phases']['check'] / 2)}{forward}: the ends of the messages of a channel follow each other in memory, "
        "and a replay gets to both ends of a message at nearly the same time."
    )
