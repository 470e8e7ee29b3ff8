"""The tables of docs/scaling.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..bench.session import without_details
from ..figures import cost, size
from ..page import table
from ..reports import Json
from .model import CHANGES, Cluster, Costs, Here, Parts

SCALES = [10**k for k in (3, 4, 5, 6)]
MEANING = {
    "scan": "read, extract and match, per event",
    "survey": "one check of all pairs, per synchronisation event",
    "forward": "one forward replay, per synchronisation event",
    "backward": "backward amortisation, per synchronisation event",
    "write": "map and write, per event",
    "verify": "check and regions of the worst, per synchronisation event",
}

TALK = ("latency", "message", "batched_word", "step", "exchange", "star", "allreduce", "allgather")


def tables(measured: Json) -> dict[str, str]:
    """What stands between the comments of the page, by their names."""
    costs = Costs(measured)
    here, cluster = Here(measured, costs), Cluster(measured, costs)
    predictions = {ranks: cluster.predict(ranks) for ranks in SCALES}
    check, errors = checked(measured, here)
    return {
        "costs": costs_table(costs),
        "transport": transport_table(measured),
        "clocks": clocks_table(measured),
        "check": check,
        "verdict": verdict(errors, measured["transport"]["load"], here.cores),
        "prediction": prediction_table(predictions),
        "dominant": dominant_table(predictions),
        "memory": memory_table(cluster),
        "changes": changes_table(cluster),
    }


def at_scales(*words: str) -> list[str]:
    return [*words, *(f"{ranks:,}" for ranks in SCALES)]


def total(parts: Parts) -> float:
    return sum(sum(of.values()) for of in parts.values())


def costs_table(costs: Costs) -> str:
    rows = [
        [meaning, *(cost(costs.kinds[kind][name]) for kind in ("halo2d", "mix"))] for name, meaning in MEANING.items()
    ]
    rows += [
        ["a process more: open, scan, write, publish", cost(sum(costs.process.values())), ""],
        ["definitions: sent, per process", f"{costs.wire:.0f} bytes", ""],
        ["definitions: held by every rank, per process", f"{costs.known:.0f} bytes", ""],
        ["definitions: decoded by every rank, per process", cost(costs.decode), ""],
    ]
    return table(["cost", "halo", "mix"], rows)


def transport_table(measured: Json) -> str:
    rows = []
    for kind, name in (("mpi", "MPI"), ("threads", "threads")):
        for row in measured["transport"][kind]:
            cells = [cost(row[key]) if key in row else "" for key in TALK]
            start = f"{row['start']:.2f} s" if "start" in row else ""
            memory = size(row["peak_bytes"]) if kind == "mpi" else ""
            rows.append([f"{row['ranks']} {name}", *cells, start, memory])
    head = ["ranks", "half round trip", "one message", "a word in a batch", *TALK[3:], "start", "memory"]
    return table(head, rows)


def clocks_table(measured: Json) -> str:
    rows = []
    # Each trace on one rank, then on two.
    runs = measured["model"]["clocks"]
    for one, two in zip(runs[::2], runs[1::2]):
        share = one["phases"]["clocks"] / without_details(one["phases"]) * 100
        sizes = (f"{one[key]:,}" for key in ("nodes", "processes", "visited"))
        rows.append([*sizes, cost(one["phases"]["clocks"]), cost(two["phases"]["clocks"]), f"{share:.0f} %"])
    head = ["nodes", "processes", "synchronisation events", "one rank", "two ranks", "of the run, one rank"]
    return table(head, rows)


def checked(measured: Json, here: Here) -> tuple[str, list[float]]:
    """Runs beside their predictions, and how many times longer the predictions are."""
    rows, errors = [], []
    for run in measured["model"]["runs"]:
        predicted, phases = here.predict(run), run["phases"]
        actual = {name: phases.get(name, phases.get("map" if name == "write" else name, 0)) for name in predicted}
        if run["transport"] == "threads":
            # A dry run maps but does not write.
            del predicted["write"], actual["write"]
        whole, found = sum(predicted.values()), sum(actual.values())
        errors.append(whole / found)
        parts = [f"{cost(actual[name])} / {cost(predicted[name])}" for name in ("scan", "check", "forward")]
        ranks = f"{run['ranks']} {'MPI' if run['transport'] == 'mpi' else 'threads'}"
        sums = [cost(found), cost(whole), f"{(whole / found - 1) * 100:+.0f} %"]
        rows.append([f"{run['pattern']}, {run['processes']:,}", ranks, run["form"], *parts, *sums])
    head = ["trace, processes", "ranks", "form", "scan", "check", "forward", "measured", "predicted", "error"]
    return table(head, rows), errors


def verdict(errors: Sequence[float], load: float, cores: int) -> str:
    within = sum(1 / 2 <= error <= 2 for error in errors)
    mean = math.exp(sum(map(math.log, errors)) / len(errors))
    busy = (
        f"**Provisional:** when the measurement began, other programs kept the machine busy (load {load:.1f} on {cores} cores), and ranks "
        "that wait for a core make everything here longer, talking most of all.\n\n"
    )
    return ("" if load < 0.5 else busy) + (
        f"Of {len(errors)} runs {within} are predicted within a factor of two; the geometric mean of the factors is "
        f"{mean:.2f}, the extremes are {min(errors):.2f} and {max(errors):.2f}."
    )


def prediction_table(predictions: dict[int, Parts]) -> str:
    rows = [
        [phase, part, *(cost(parts[phase][part]) for parts in predictions.values())]
        for phase, of in predictions[SCALES[0]].items()
        for part in of
    ]
    rows.append(["**all**", "", *(f"**{cost(total(parts))}**" for parts in predictions.values())])
    return table(at_scales("phase", "part"), rows)


def dominant_table(predictions: dict[int, Parts]) -> str:
    rows = []
    for ranks, phases in predictions.items():
        whole = total(phases)
        parts = sorted(
            ((value, phase, part) for phase, of in phases.items() for part, value in of.items()), reverse=True
        )
        largest = (f"{phase}: {part}, {value / whole * 100:.0f} %" for value, phase, part in parts[:3])
        rows.append([f"{ranks:,}", cost(whole), *largest])
    return table(["ranks", "all", "first", "second", "third"], rows)


def memory_table(cluster: Cluster) -> str:
    memories = [cluster.memory(ranks) for ranks in SCALES]
    rows = [[what, *(size(memory[what]) for memory in memories)] for what in memories[0]]
    return table(at_scales("bytes of a rank"), rows)


def changes_table(cluster: Cluster) -> str:
    """What the changes would bring, each with those before it."""
    rows = []
    for made in range(len(CHANGES) + 1):
        changes = list(CHANGES)[:made]
        what = f"and {CHANGES[changes[-1]]}" if changes else "as it is"
        rows.append([what, *(cost(total(cluster.predict(ranks, changes))) for ranks in SCALES)])
    return table(at_scales(""), rows)
