"""JSON in and out: reports of clc-replay (docs/report.md) and the figures that scripts store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# An object of JSON: a report or a part of it.
Json = dict[str, Any]


def parse(text: str) -> Any:
    return json.loads(text)


def read(path: str | Path) -> Any:
    return parse(Path(path).read_text(encoding="utf-8"))


def write(path: str | Path, value: object) -> None:
    Path(path).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def by_phase(evaluation: Json) -> dict[str, Json]:
    """What `clc-replay evaluate` says of each phase of a correction (raw, presync, forward, final), by its name."""
    return {phase["phase"]: phase for phase in evaluation["phases"]}


def rms(phase: Json, what: str = "clock") -> float:
    """Root mean square of an error in seconds: of the `clock`, the `latency`, or `between_processes`."""
    return float(phase[what]["rms_seconds"])


def seconds_by_phase(report: Json) -> dict[str, float]:
    """How long each phase of a run took."""
    return {phase["name"]: phase["seconds"] for phase in report["phases"]}
