"""The simulated figures of docs/monitor.md.

    scripts/monitor_simulation --measure [SERIES...]   runs the simulations (all: about a quarter of an hour), writes docs/monitor/measured.json
    scripts/monitor_simulation --plots                 draws docs/monitor/*.svg from it (needs python3-matplotlib)
    scripts/monitor_simulation --write                 puts its tables into docs/monitor.md

Every run is one call of the example simulate_gossip of src/monitor, which runs the code that the agents run. Everything follows from the
seeds: the same code gives the same figures. SIMULATE_GOSSIP names another binary.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import page, plots

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/monitor.md"
STORED = ROOT / "docs/monitor/measured.json"
# What a node with 64 cores has to say, every 2 s, and what a group has.
DATA = "sensors=2x104 aggregates=4x60"

SERIES = {
    "detection": [
        f"nodes=64 {groups} {loss} kill=20 seconds=210 {DATA}"
        for groups in ("groups=8", "groups=none")
        for loss in ("loss=0", "loss=1", "loss=5")
    ],
    "choice": [
        f"nodes=64 groups={groups} choice={choice} kill=20 seconds=210 loss=1"
        for groups in (8, "none")
        for choice in ("ring", "random")
    ],
    "cleanup": [
        f"nodes=64 groups=8 cleanup={cleanup} kill=20 seconds=210 loss=1 {DATA}"
        for cleanup in (0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2)
    ],
    "swim": [
        f"nodes={nodes} {protocol} loss=1 pauses=60x0.8 kill={kill} seconds={seconds}"
        for nodes, groups, kill, seconds in ((64, "8", 20, 240), (256, "16", 5, 80))
        for protocol in (f"groups={groups}", "swim=0.1", "swim=0.5", "swim=1")
    ],
    "nodes": [
        f"nodes={nodes} groups=sqrt loss=1 kill=3 settle={settle} seconds=40 {DATA}"
        for nodes, settle in ((16, 20), (64, 20), (256, 60), (1024, 100))
    ],
    "groups": [
        f"nodes=1024 groups={size} directory=no kill=3 settle=20 seconds=30"
        for size in (4, 8, 16, 24, 32, 48, 64, 128, 256)
    ],
    "faults": [
        "nodes=256 groups=sqrt loss=1 killgroup=32-47 seconds=20",
        "nodes=256 groups=sqrt loss=1 killgroup=32-39 seconds=20",
        "nodes=256 groups=sqrt loss=1 cut=0-127x20 seconds=60",
        "nodes=256 groups=sqrt loss=1 pause=40-43x10 seconds=40",
    ],
    # The last one takes some minutes of one processor.
    "large": [
        "nodes=1024 groups=sqrt directory=no loss=1 pauses=60x0.8 kill=3 settle=30 seconds=30",
        "nodes=4096 groups=16,16 directory=no loss=1 kill=1 settle=10 seconds=8",
        "nodes=4096 groups=16,16 directory=no loss=1 pauses=60x0.8 kill=1 settle=10 seconds=12",
        "nodes=16384 groups=25,25 directory=no loss=1 pauses=60x0.8 kill=1 settle=14 seconds=6",
    ],
    "alarms": [f"nodes=64 groups=8 loss=1 pauses=60x0.8 seconds=28800 {DATA}"],
}


def measure(names: list[str]) -> None:
    binary: str | Path | None = os.environ.get("SIMULATE_GOSSIP")
    if not binary:
        subprocess.run(
            ["cargo", "build", "--release", "-p", "clc-monitor", "--example", "simulate_gossip"], cwd=ROOT, check=True
        )
        binary = ROOT / "target/release/examples/simulate_gossip"
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    for name in names or SERIES:
        results = []
        for arguments in SERIES[name]:
            print(f"{name}: {arguments}", file=sys.stderr, flush=True)
            line = subprocess.run([binary, *arguments.split()], check=True, capture_output=True, text=True).stdout
            result = json.loads(line)
            result.pop("wall")
            results.append({"arguments": arguments, **result})
        stored[name] = results
        STORED.parent.mkdir(exist_ok=True)
        STORED.write_text(json.dumps(stored, indent=1) + "\n")


def seconds(values: list[float | None]) -> str:
    """Mean and largest of times of detection."""
    times = [value for value in values if value is not None]
    if len(times) < len(values):
        return f"{len(values) - len(times)} of {len(values)} not named"
    return f"{mean(times):.2f} ({max(times):.2f})" if times else ""


# Column, how it follows from a result.
COLUMNS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "run": lambda result: f"`{result['arguments'].replace(DATA, 'DATA')}`",
    "first node": lambda result: seconds(result["first"]),
    "its group": lambda result: seconds(result["group"]),
    "all nodes": lambda result: seconds(result["all"]),
    "false deaths": lambda result: f"{result['false_deaths']:,}",
    "false suspicions": lambda result: f"{result['false_suspicions']:,}",
    "wrong at the end": lambda result: result["wrong_at_end"] + result["incomplete_at_end"],
    "kbit/s": lambda result: f"{result['bits'] / 1000:.1f}",
    "most": lambda result: f"{result['most_bits'] / 1000:.1f}",
    "age of data": lambda result: f"{result['data_age']:.1f}" if result["data_age"] else "",
}


def write(stored: dict[str, Any]) -> None:
    text = PAGE.read_text()
    for name, results in stored.items():
        rows = [[column(result) for column in COLUMNS.values()] for result in results]
        begin, end = page.place(text, f"simulation {name}")
        text = text[:begin] + page.table(list(COLUMNS), rows, 1) + "\n" + text[end:]
    PAGE.write_text(text)


def by(results: list[dict[str, Any]], name: str) -> list[str]:
    """The value of an argument in each run."""
    return [dict(pair.split("=") for pair in result["arguments"].split())[name] for result in results]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def finish(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
    axes.grid(True, color="#e4e4e4", lw=0.8)
    axes.legend(fontsize=8)


def cost(size: float) -> float:
    """Entries of gossip lists per interval in groups of `size` of 1,024 nodes: see docs/monitor.md."""
    return size + 2 / 3 * 1024 / size


def draw(stored: dict[str, Any]) -> None:
    folder = STORED.parent
    with plots.figure(folder / "groups.svg", (6.5, 4)) as axes:
        calm = [result for result in stored["groups"] if result["false_deaths"] == 0]
        sizes = [int(size) for size in by(calm, "groups")]
        measured = [result["bits"] / 1000 for result in calm]
        points = [cost(size) for size in sizes]
        slope = sum((p - mean(points)) * (m - mean(measured)) for p, m in zip(points, measured)) / sum(
            (p - mean(points)) ** 2 for p in points
        )
        rest = mean(measured) - slope * mean(points)
        axes.plot(sizes, measured, "o-", color=plots.BLUE, label="simulated")
        axes.plot(
            sizes,
            [rest + slope * point for point in points],
            "--",
            color=plots.GREY,
            label="a + b (g + 2/3 N/g), fitted",
        )
        axes.axvline(math.sqrt(1024), color=plots.ORANGE, ls=":", label="square root of the number of nodes")
        axes.set_xscale("log", base=2)
        finish(axes, "1,024 nodes in two layers, no data", "nodes per group", "kbit/s that a node sends")
    with plots.figure(folder / "nodes.svg", (6.5, 4)) as axes:
        nodes = [int(count) for count in by(stored["nodes"], "nodes")]
        axes.plot(
            nodes,
            [result["bits"] / 1000 for result in stored["nodes"]],
            "o-",
            color=plots.BLUE,
            label="all sensors' data every 2 s, two layers",
        )
        large = [
            result
            for result in stored.get("large", [])
            if "," in result["arguments"] and "pauses" in result["arguments"]
        ]
        if large:
            counts = [int(count) for count in by(large, "nodes")]
            axes.plot(
                counts,
                [result["bits"] / 1000 for result in large],
                "s-",
                color=plots.ORANGE,
                label="three layers, no data, with pauses",
            )
        axes.axhline(60, color=plots.GREY, ls=":", label="60 kbit/s")
        axes.set_xscale("log", base=2)
        finish(axes, "Bandwidth over nodes, 100 ms gossip, 1 % loss", "nodes", "kbit/s that a node sends")
    with plots.figure(folder / "cleanup.svg", (6.5, 4)) as axes:
        times = [float(time) for time in by(stored["cleanup"], "cleanup")]
        axes.plot(
            times,
            [mean(result["all"]) for result in stored["cleanup"]],
            "o-",
            color=plots.BLUE,
            label="named by all nodes, mean of 20 deaths",
        )
        axes.plot(
            times,
            [max(result["all"]) for result in stored["cleanup"]],
            "--",
            color=plots.BLUE,
            label="the latest of them",
        )
        axes.plot(times, times, ":", color=plots.GREY, label="cleanup time")
        finish(axes, "Time of detection, 64 nodes in groups of 8, 1 % loss", "cleanup time in s", "s after the death")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="*", help=", ".join(SERIES))
    for option in ("measure", "write", "plots"):
        parser.add_argument(f"--{option}", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.series) - set(SERIES):
        parser.error(f"no series {', '.join(sorted(unknown))}")
    if not (options.measure or options.write or options.plots):
        parser.error("nothing to do: --measure, --write or --plots")
    if options.measure:
        measure(options.series)
    stored = json.loads(STORED.read_text())
    if options.write:
        write(stored)
    if options.plots and not plots.attempt(lambda: draw(stored)):
        return 1
    return 0
