"""Figures drawn by matplotlib (python3-matplotlib): the same data give the same file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .command import complain

BLUE, ORANGE, GREY = "#1f77b4", "#d9730d", "#8a8a8a"


@contextlib.contextmanager
def figure(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """The axes of a figure that is stored when its lines are drawn."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "clc-replay"
    from matplotlib import pyplot

    drawn, axes = pyplot.subplots(figsize=size, facecolor="white")
    try:
        yield axes
        drawn.tight_layout()
        drawn.savefig(path, metadata={"Date": None})
    finally:
        pyplot.close(drawn)


def attempt(draw: Callable[[], None]) -> bool:
    """Draws, or says that matplotlib is missing."""
    try:
        draw()
    except ImportError as error:
        complain(f"no plots, {error}; on Debian: python3-matplotlib")
        return False
    return True
