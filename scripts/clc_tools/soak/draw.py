"""What is drawn for one trace: an application, a machine, clocks, measurements, a format; the MPI library, ranks and options."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import traces

PATTERNS = (*traces.PATTERNS, "subsets")
CLOCKS = (
    "perfect",
    "offset",
    "drift",
    "linear",
    "sine",
    "walk",
    "ntp",
    "jump",
    "stuck",
    "coarse",
    "mixed",
    "decentralised3",
    "decentralised3-failing",
    "decentralised12",
    "decentralised12-failing",
    "linear,walk=50ppm",
    "linear,noise=5ppm/1ms",
    "offset=2s,drift=100ppm",
    "offset=5ms,drift=20ppm,sine=20us/0.5s",
    "linear,jump=200us",
)
# The fewest processes of a pattern, where it is not two.
FEWEST = {"halo2d": 4, "wavefront": 4, "halo3d": 8}
# Clocks of so many nodes.
NODES = {"decentralised3": 3, "decentralised3-failing": 3, "decentralised12": 12, "decentralised12-failing": 12}
LATENCIES = ("0", "0", "200ns", "1us", "same-node=300ns,other-node=2us", "5us", "auto", "auto")


@dataclass(frozen=True)
class Library:
    """An MPI library: the launcher up to the number of ranks, and the program that is built for it."""

    launch: tuple[str, ...]
    program: str


class Draw:
    """One trace: what is simulated, how it is corrected, on what."""

    def __init__(self, seed: int, number: int, libraries: Sequence[str], short: bool) -> None:
        draw = random.Random(f"{seed}/{number}")
        self.clock = draw.choice(CLOCKS)
        nodes = NODES.get(self.clock)
        most = 8 if short else 24
        ranks = nodes or draw.randint(2, most)
        pattern = draw.choice(PATTERNS)
        if nodes:
            pattern = draw.choice([name for name in PATTERNS if FEWEST.get(name, 2) <= nodes])
        ranks = max(ranks, FEWEST.get(pattern, 2))
        self.ranks = ranks
        self.native = draw.random() < 0.4
        self.resolution = draw.choice((10**9, 10**9, 10**9, 10**6, 10**7, 10**12, 1_992_000_000))
        self.simulation: dict[str, object] = {
            "pattern": pattern,
            "clock": self.clock,
            "ranks": ranks,
            "ranks-per-node": 1 if nodes else draw.choice((1, 1, 2, 4, 7)),
            "threads": draw.choice((1, 1, 1, 2, 3)),
            "events": draw.choice(("50", "200", "600") if short else ("20", "200", "1k", "3k", "8k")),
            "communicators": draw.choice((1, 8, 64)),
            "compute": draw.choice(("0us", "1us", "50us", "1ms", "20ms")),
            "calls": draw.choice((0, 0, 1, 5)),
            "imbalance": draw.choice(("0", "0.2", "0.5", "1")),
            "message-bytes": draw.choice((0, 8, 4096, 100_000)),
            "measurements": draw.choice((0, 0, 1, 2, 2, 5)),
            "asymmetry": draw.choice(("0", "0", "0.2", "1")),
            "tail": draw.choice(("same-node=100ns,other-node=1us", "0", "20us")),
            "resolution": self.resolution,
            "seed": draw.randrange(1 << 30),
        }
        self.synchronisation: dict[str, object] = {
            "latency": draw.choice(LATENCIES),
            "presync": draw.choice(("auto", "auto", "linear", "linear", "network", "regression", "hull", "none")),
        }
        reference = draw.choice(("auto", "auto", "0", str(draw.randrange(ranks)), "median", "mean", "harmonic"))
        estimated = self.synchronisation["presync"] not in ("linear", "none")
        if estimated:
            self.synchronisation["reference"] = reference
        if draw.random() < 0.2:
            self.synchronisation["confidence"] = draw.choice(("0.5", "0.99", "1"))
        if draw.random() < 0.2:
            self.synchronisation["segment"] = draw.choice(("1ms", "50ms", "1s"))
        if draw.random() < 0.2:
            self.synchronisation["max-delay"] = draw.choice(("1us", "3us", "50us"))
        if not estimated:
            # Models that estimate nothing refuse what they would make no use of.
            for name in ("confidence", "segment", "max-delay"):
                self.synchronisation.pop(name, None)
        self.correction: dict[str, object] = {}
        if draw.random() < 0.4:
            self.correction["gamma"] = draw.choice(("0.5", "0.9", "0.99", "0.9999999", "1"))
        if draw.random() < 0.3:
            self.correction["max-passes"] = draw.choice((1, 2, 20))
        if draw.random() < 0.3:
            self.correction["max-error"] = draw.choice(("1", "1.05", "4"))
        if draw.random() < 0.4:
            self.correction["slope"] = draw.choice(("0.000001", "0.001", "0.1", "1"))
        self.alltoallv = draw.random() < 0.3
        self.page = draw.random() < 0.1
        self.replace = draw.random() < 0.2
        self.library = draw.choice(libraries)
        # As many as there are processes is a form of its own.
        self.analysis = draw.choice((1, 2, 3, 4, min(ranks, 16), min(ranks, 16), draw.randint(1, 16)))
        if short:
            self.analysis = min(self.analysis, 6 if self.analysis != ranks else ranks)

    def name(self, stem: str) -> str:
        return f"{stem}.clct" if self.native else stem

    def shared(self) -> list[str]:
        """Options of the correction, of `check` and of `evaluate`."""
        return traces.words(self.synchronisation) + (["--alltoallv"] if self.alltoallv else [])

    def commands(self, libraries: Mapping[str, Library]) -> dict[str, list[str]]:
        """The program's arguments for each step, and how it is started."""
        library, first_program = libraries[self.library], next(iter(libraries.values())).program
        trace, out, alone = self.name("trace"), self.name("out"), self.name("alone")
        options = traces.words(self.correction) + self.shared()
        page = ["--html", "page.html"] if self.page else []
        force = ["--force"] if self.replace else []
        return {
            "simulate": [first_program, "simulate", trace, "-q", *traces.words(self.simulation)],
            "correct": [
                *library.launch,
                str(self.analysis),
                library.program,
                trace,
                "-o",
                out,
                "-q",
                "--report",
                "report.json",
                *page,
                *force,
                *options,
            ],
            "correct alone": [first_program, trace, "-o", alone, "-q", *options],
            "evaluate": [
                first_program,
                "evaluate",
                out,
                "--truth",
                trace,
                "-q",
                "--report",
                "evaluation.json",
                *options,
            ],
            "convert": [first_program, "convert", out, "judged", "-q"],
        }
