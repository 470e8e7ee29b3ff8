"""The plots of docs/performance.md, from docs/performance/measured.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..plots import BLUE, GREY, ORANGE, figure
from ..reports import Json
from .results import each

RATE = "million events per second"
# By the part that each is drawn from: name and alternative text.
PLOTS = {
    "growth-events": {"throughput-events": "throughput over the events of the trace"},
    "growth-processes": {"throughput-processes": "throughput over the processes of the trace"},
    "ranks": {"throughput-ranks": "throughput over ranks, more than there are cores"},
    "scaling": {"strong-scaling": "strong scaling", "weak-scaling": "weak scaling"},
}


Points = Sequence[float]


@dataclass(frozen=True)
class Line:
    """Points of a line: medians, and the least and the most where the runs differ."""

    label: str
    colour: str
    x: Points
    y: Points
    least: Points
    most: Points

    def spread(self) -> list[list[float]] | None:
        below, above = [a - b for a, b in zip(self.y, self.least)], [b - a for a, b in zip(self.y, self.most)]
        return [below, above] if any(below) or any(above) else None


@dataclass(frozen=True)
class Drawing:
    """What stands beside the lines of a figure."""

    title: str
    xlabel: str
    ylabel: str
    # Of the x axis.
    base: int
    # Where the cores of the machine are marked, and what they would allow: x and y.
    cores: int | None = None
    ideal: tuple[Points, Points] | None = None
    logarithmic: bool = False

    def store(self, path: Path, lines: Sequence[Line]) -> None:
        with figure(path, (6, 3.7)) as axes:
            if self.ideal:
                axes.plot(*self.ideal, "--", color=GREY, lw=1.4, label=f"ideal on {self.cores} cores", zorder=1)
            for line in lines:
                style = {"fmt": "o-", "color": line.colour, "lw": 1.6, "ms": 5, "capsize": 3, "elinewidth": 1}
                axes.errorbar(line.x, line.y, line.spread(), label=line.label, **style)
            if self.cores:
                self.mark_cores(axes)
            self.scale(axes, lines)
            axes.set_title(self.title, fontsize=11)
            axes.set_xlabel(self.xlabel)
            axes.set_ylabel(self.ylabel)
            axes.grid(True, which="major", color="#e4e4e4", lw=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            if self.ideal or len(lines) > 1:
                axes.legend(frameon=False, fontsize=9)

    def mark_cores(self, axes: Any) -> None:
        axes.axvline(self.cores, color=GREY, lw=1, ls=":")
        axes.annotate(
            f"{self.cores} cores",
            (self.cores, 0.45 if self.logarithmic else 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            color="#606060",
            fontsize=8,
        )

    def scale(self, axes: Any, lines: Sequence[Line]) -> None:
        from matplotlib import ticker

        axes.set_xscale("log", base=self.base)
        if self.base == 2:
            axes.set_xticks(sorted({value for line in lines for value in line.x}))
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axes.xaxis.set_minor_locator(ticker.NullLocator())
        if self.logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            axes.grid(True, which="minor", axis="y", color="#f0f0f0", lw=0.6)
        else:
            top = max(value for line in lines for value in line.most)
            axes.set_ylim(0, 1.1 * max([top, *(self.ideal[1] if self.ideal else [])]))


def rates(runs: Sequence[Json], key: str = "wall") -> list[list[float]]:
    """Millions of events per second: of the median, of the slowest, of the fastest run."""
    walls = (
        [run[key] for run in runs],
        [max(run[f"{key}s"]) for run in runs],
        [min(run[f"{key}s"]) for run in runs],
    )
    return [[run["events"] / wall / 1e6 for run, wall in zip(runs, of)] for of in walls]


def draw_all(measured: Json, directory: Path) -> None:
    """Draws what can be drawn; plots of other parts are removed."""
    figures, machines = measured["figures"], measured["machines"]
    for name in (name for part, names in PLOTS.items() if part not in figures for name in names):
        (directory / f"{name}.svg").unlink(missing_ok=True)
    if points := figures.get("growth-events"):
        drawing = Drawing("Throughput, 8 processes, one analysis rank", "events of the trace", RATE, 10)
        line = Line("measured", BLUE, [point["events"] for point in points], *rates(points))
        drawing.store(directory / "throughput-events.svg", [line])
    if points := figures.get("growth-processes"):
        title = "Throughput, 32,768 events per process, one analysis rank"
        drawing = Drawing(title, "processes of the trace", RATE, 2)
        line = Line("measured", BLUE, [point["processes"] for point in points], *rates(points))
        drawing.store(directory / "throughput-processes.svg", [line])
    if rows := figures.get("ranks"):
        draw_ranks(rows, machines["ranks"]["cores"], directory)
    if found := figures.get("scaling"):
        draw_strong(found["strong"], machines["scaling"]["cores"], directory)
        draw_weak(found["weak"], machines["scaling"]["cores"], directory)


def draw_ranks(rows: Sequence[Json], cores: int, directory: Path) -> None:
    x = [row["ranks"] for row in rows]
    lines = [
        Line("without the start-up of MPI", BLUE, x, *rates(rows, "shared")),
        Line("whole run", ORANGE, x, *rates(rows)),
    ]
    title = f"Throughput, as many ranks as processes, {each(rows[0])} events each"
    drawing = Drawing(title, "analysis ranks", RATE, 2, cores, logarithmic=True)
    drawing.store(directory / "throughput-ranks.svg", lines)


def draw_strong(runs: Sequence[Json], cores: int, directory: Path) -> None:
    x, first = [run["ranks"] for run in runs], runs[0]["events"] / runs[0]["shared"] / 1e6
    speedups = [[value / first for value in values] for values in rates(runs, "shared")]
    title = f"Strong scaling: 64 processes, {each(runs[0])} events each"
    drawing = Drawing(title, "analysis ranks", "speed-up", 2, cores, (x, allowed(x, cores)))
    drawing.store(directory / "strong-scaling.svg", [Line("measured", BLUE, x, *speedups)])


def draw_weak(runs: Sequence[Json], cores: int, directory: Path) -> None:
    x, y = [run["ranks"] for run in runs], rates(runs, "shared")
    ideal = [factor * y[0][0] for factor in allowed(x, cores)]
    title = f"Weak scaling: 8 processes per rank, {each(runs[0])} events each"
    drawing = Drawing(title, "analysis ranks", RATE, 2, cores, (x, ideal))
    drawing.store(directory / "weak-scaling.svg", [Line("measured", BLUE, x, *y)])


def allowed(ranks: Sequence[int], cores: int) -> list[int]:
    """How many ranks can compute: more of them than cores cannot be faster than as many."""
    return [min(count, cores) for count in ranks]
