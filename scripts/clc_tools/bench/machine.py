"""Where a part is measured, and what else keeps that machine busy."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from ..reports import Json
from ..runner import launch, output, version_of


def machine(work: Path, quick: bool) -> Json:
    """Where a part was measured."""
    said = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    names = {key.strip(): value.strip() for key, value in said.items()}
    files = output(["stat", "-f", "-c", "%T", work]).strip()
    version = version_of(launch()[:1]).splitlines()
    return {
        "cpu": names.get("model name", "unknown processor"),
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "files": files,
        "mpi": version[0].strip() if version else "",
        "quick": quick,
    }


class Others:
    """How many cores other programs have kept busy since this was made."""

    def __init__(self) -> None:
        self.start, self.used, self.own = time.monotonic(), self.all_cores(), self.ours()

    @staticmethod
    def all_cores() -> float:
        # Ticks of user, nice, system, interrupts (two) and what the host took (proc_stat(5)).
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        return sum(ticks[at] for at in (0, 1, 2, 5, 6, 7)) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def ours() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def cores(self) -> float:
        spent = self.all_cores() - self.used - (self.ours() - self.own)
        return round(max(0.0, spent) / (time.monotonic() - self.start), 2)
