"""Random scenarios: is a trace that is corrected with estimated clocks ever further from the truth than one with recorded ones?

    scripts/accuracy_random              200 scenarios, linear beside auto
    scripts/accuracy_random -n 50 -s 7   50 others
    scripts/accuracy_random --only 17    scenario 17 alone
    scripts/accuracy_random --only 17 --keep DIR   and keep its traces
    scripts/accuracy_random --models linear,none,regression,hull,network,auto   how far auto is from the best of them

A scenario is a pattern, a machine, clocks and measurements, drawn from a seed and its number. Figures are root mean squares of the
clock error, after pre-synchronisation and of the corrected trace. `worse` is more than a tenth above the first model, and by more than a
tenth of a one-way latency's spread; with more than two models, the last one is `near` the best of all if it is at most half above it, but
for that spread. With --all-clocks, clock 0 is as wrong as the others, and the error between processes decides. The exit
status is 1 if the last model is ever worse than the first one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import reports, traces
from .command import parser
from .reports import Json
from .runner import alone, scratch

# Twelve nodes without a reference, then four of them failing, are among them.
CLOCKS = (
    "perfect",
    "linear",
    "sine",
    "linear,walk=50ppm",
    "walk",
    "ntp",
    "jump",
    "stuck",
    "coarse",
    "mixed",
    "jump,sine=5us/0.3s",
    traces.TWELVE,
    f"{traces.TWELVE};{traces.FAILING}",
    "linear,noise=5ppm/1ms",
    "linear,jump=20us",
)
# Mean of the random part of a message's delay in the simulated networks.
SPREAD = 1e-6


def scenario(seed: int, number: int, everyone: bool = False) -> list[str]:
    """The arguments of `simulate`; with `everyone`, clock 0 is as wrong as the others."""
    draw = random.Random(f"{seed}/{number}")
    clock = draw.choice(CLOCKS)
    if everyone and not clock.startswith("all:"):
        clock = f"all:{clock}"
    one_each = clock.startswith(traces.TWELVE)
    pattern = draw.choice(traces.PATTERNS)
    ranks = 12 if one_each else draw.choice((4, 6, 8, 12, 16, 24))
    arguments = {
        "pattern": pattern,
        "clock": clock,
        "ranks": max(ranks, 8) if pattern == "halo3d" else ranks,
        "ranks-per-node": 1 if one_each else draw.choice((1, 1, 2, 4)),
        "events": draw.choice(("500", "1k", "3k", "8k")),
        "compute": draw.choice(("50us", "300us", "1ms", "3ms")),
        "imbalance": draw.choice(("0", "0.1", "0.2", "0.5")),
        "measurements": draw.choice((0, 2, 2, 2, 2, 5)),
        "asymmetry": draw.choice(("0", "0", "0", "0.2")),
        "seed": draw.randrange(1 << 30),
    }
    return traces.words(arguments)


def judge(directory: Path, trace: Path, model: str) -> Json:
    corrected, said = directory / f"fixed-{model}", directory / f"{model}.json"
    # 3: too much of a pattern's communication tells no order to be called checked.
    alone(trace, "-o", corrected, "-q", "--force", "--presync", model, "--report", said, status=(0, 3))
    evaluation = alone("evaluate", corrected, "--truth", trace, "--presync", model, "--report", "-")
    phases = reports.by_phase(reports.parse(evaluation))
    report = reports.read(said)
    clocks = report.get("clocks") or {}
    worst = report["violations"]["presynchronised"]["worst"] or {}
    # The largest advance of the pass that was taken: how far the logical clock moves away from global time.
    passes = report["replay"]["passes"]
    return {
        "presync": reports.rms(phases["presync"]),
        "final": reports.rms(phases["final"]),
        "between": reports.rms(phases["final"], "between_processes"),
        "latency": reports.rms(phases["final"], "latency"),
        "violations": phases["presync"]["violations"],
        "worst": worst.get("seconds", 0.0),
        "unavoidable": report["replay"]["d0_seconds"],
        "advance": passes[-1]["largest_advance_seconds"] if passes else 0.0,
        "misfits": [clocks.get("misfit_estimated"), clocks.get("misfit_recorded")],
        "chosen": clocks.get("chosen", model),
        "reason": clocks.get("reason", ""),
    }


def verdict(one: float, other: float) -> str:
    """Whether an error is worse, better, or about the same with the other model."""
    margin = SPREAD / 10
    if other > 1.1 * one + margin:
        return "worse"
    return "better" if one > 1.1 * other + margin else "same"


# How many times as far from the truth as the best model a model is near to it.
NEAR = 1.5


def is_near(best: float, last: float) -> bool:
    return last <= NEAR * best + SPREAD / 10


@dataclass(frozen=True)
class Options:
    count: int
    seed: int
    models: list[str]
    only: list[int] | None
    all_clocks: bool
    keep: str | None
    json: str | None


def compared(options: Options) -> Iterator[Json]:
    """The scenarios, each corrected with all models."""
    first, last = options.models[0], options.models[-1]
    for number in options.only or range(options.count):
        arguments = scenario(options.seed, number, options.all_clocks)
        with scratch(options.keep) as directory:
            trace = directory / "trace"
            alone("simulate", trace, "-q", "--force", *arguments)
            by_model = {model: judge(directory, trace, model) for model in options.models}
        what = "between" if options.all_clocks else "final"
        errors = {model: found[what] for model, found in by_model.items()}
        best = min(errors, key=lambda model: errors[model])
        yield {
            "number": number,
            "arguments": arguments,
            "verdict": verdict(errors[first], errors[last]),
            "best": best,
            "best_error": errors[best],
            "near": is_near(errors[best], errors[last]),
            **by_model,
        }


def line(result: Json, one: Json, other: Json) -> str:
    compared_figures = " ".join(
        f"{name} {one[name] * 1e6:.3f} -> {other[name] * 1e6:.3f} us;"
        for name in ("presync", "final", "between", "latency")
    )
    far = "" if result["near"] else f" {result['best']} has {result['best_error'] * 1e6:.3f} us;"
    return (
        f"{result['number']} {result['verdict']} {compared_figures}{far} violations {one['violations']} -> {other['violations']};"
        f" {other['chosen']}: {other['reason']}; {' '.join(result['arguments'])}"
    )


def main() -> int:
    parse = parser(__doc__)
    parse.add_argument("-n", "--count", type=int, default=200)
    parse.add_argument("-s", "--seed", type=int, default=1)
    parse.add_argument("--models", default="linear,auto", help="models of the clocks, at least two")
    parse.add_argument("--only", type=int, action="append", help="number of a scenario")
    parse.add_argument(
        "--all-clocks",
        action="store_true",
        help="clock 0 is as wrong as the others, and the error between processes counts",
    )
    parse.add_argument("--keep", metavar="DIR", help="where traces go and stay")
    parse.add_argument("--json", metavar="FILE")
    given = vars(parse.parse_args())
    options = Options(**{**given, "models": given["models"].split(",")})
    if len(options.models) < 2:
        parse.error("--models needs at least two models")
    first, last = options.models[0], options.models[-1]
    results = []
    for result in compared(options):
        print(line(result, result[first], result[last]), flush=True)
        results.append(result)
    if options.json:
        reports.write(options.json, results)
    worse = [result["number"] for result in results if result["verdict"] == "worse"]
    better = sum(result["verdict"] == "better" for result in results)
    adopted = sum(result[last]["chosen"] == "network" for result in results)
    if len(options.models) > 2:
        far = [result["number"] for result in results if not result["near"]]
        print(f"{len(results) - len(far)} of {len(results)} near the best of {', '.join(options.models)}; not {far}")
    print(f"{len(results)} scenarios: {better} better, {len(worse)} worse {worse}, network taken {adopted} times")
    return 1 if worse else 0
