"""Arguments of `clc-replay simulate`: patterns, clocks, and options as words."""

from __future__ import annotations

from collections.abc import Mapping

PATTERNS = (
    "ring",
    "halo1d",
    "halo2d",
    "halo3d",
    "wavefront",
    "master-worker",
    "butterfly",
    "random",
    "alltoall",
    "pipeline",
    "mix",
)
# Nodes that share a drift, none of them a reference; what happens to some of them when they fail.
TWELVE = "all:offset=1ms,all:drift=10ppm,all:noise=1ppm/1ms"
FAILING = "3:jump=1ms@30%;5:drift=4000ppm@40%;7:drift=4000ppm@50%;10:stuck=1ms@70%"
RUNAWAYS = "1:drift=4000ppm@30%;2:drift=4000ppm@40%;3:drift=4000ppm@50%;10:drift=4000ppm@70%"


def words(options: Mapping[str, object]) -> list[str]:
    """The words of a command line: --name value for each option."""
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]
