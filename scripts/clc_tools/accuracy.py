"""The accuracy benchmark: traces with known true times, corrected, and how far the result is from the truth.

    scripts/accuracy                     run all scenarios, print one table
    scripts/accuracy sine walk           only scenarios with one of these words in their name
    scripts/accuracy --json FILE         also write every figure as JSON
    scripts/accuracy --write             put the tables into docs/accuracy.md
    scripts/accuracy --check             fail if docs/accuracy.md has other tables

Everything follows from the seeds, so the figures are the same on every machine: a figure that changes is a change of
the program. The binary is target/release/clc-replay (CLC_REPLAY names another one).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from . import figures, reports, traces
from .command import fail, parser, progress
from .page import Page, table
from .reports import Json
from .runner import ROOT, alone, scratch

PAGE = Page(ROOT / "docs/accuracy.md")
RECORDINGS = ROOT / "tests/data"

# name: arguments of `simulate`. One step computes for a millisecond, so that a run lasts a second or so.
USUAL = "--ranks 16 --ranks-per-node 2 --events 10k --compute 1ms"
ALONE = "--ranks 12 --ranks-per-node 1 --events 10k --compute 1ms"
SIMULATED = {
    "halo2d perfect": f"{USUAL} --pattern halo2d --clock perfect",
    "halo2d linear": f"{USUAL} --pattern halo2d --clock linear",
    "halo2d sine": f"{USUAL} --pattern halo2d --clock sine",
    "halo2d walk": f"{USUAL} --pattern halo2d --clock linear,walk=50ppm",
    "halo2d ntp": f"{USUAL} --pattern halo2d --clock ntp",
    "halo2d sine 64 ranks": f"{USUAL} --pattern halo2d --clock sine".replace("--ranks 16", "--ranks 64"),
    "halo2d sine unmeasured": f"{USUAL} --pattern halo2d --clock sine --measurements 0",
    "halo2d sine asymmetric": f"{USUAL} --pattern halo2d --clock sine --asymmetry 0.5",
    "halo2d sine idle": f"{USUAL} --pattern halo2d --clock sine --idle 400ms --calls 4",
    "halo1d coarse": f"{USUAL} --pattern halo1d --clock coarse",
    "halo3d walk": f"{USUAL} --pattern halo3d --clock linear,walk=50ppm",
    "ring jump": f"{USUAL} --pattern ring --clock jump",
    # The clock that the others are corrected to.
    "halo2d reference jump": f"{USUAL} --pattern halo2d --clock linear;0:jump=300us@50%",
    "wavefront stuck": f"{USUAL} --pattern wavefront --clock stuck",
    "master-worker mixed": f"{USUAL} --pattern master-worker --clock mixed",
    "butterfly sine": f"{USUAL} --pattern butterfly --clock sine",
    "random walk": f"{USUAL} --pattern random --clock linear,walk=50ppm",
    "alltoall ntp": f"{USUAL} --pattern alltoall --clock ntp",
    "pipeline mixed": f"{USUAL} --pattern pipeline --clock mixed",
    "mix mixed": f"{USUAL} --pattern mix --clock mixed",
    # Clock 0, which recorded offsets refer to, is as wrong as the others.
    "halo2d sine, all clocks": f"{USUAL} --pattern halo2d --clock all:sine",
    "butterfly walk, all clocks": f"{USUAL} --pattern butterfly --clock all:linear,walk=50ppm",
    "halo2d sine unmeasured, all clocks": f"{USUAL} --pattern halo2d --clock all:sine --measurements 0",
    "halo2d 12 failing": f"{ALONE} --pattern halo2d --clock {traces.TWELVE};{traces.FAILING}",
    "halo2d 1, 2, 3, 10 of 12 failing": f"{ALONE} --pattern halo2d --clock decentralised12-failing",
}
# Scenarios without a clock that is right, and what they are corrected with beside the usual models: --presync, --reference.
NO_REFERENCE = "all clocks"
REFERENCES = ("auto 0", "auto mean", "auto median")
# name: recording, arguments of `perturb`.
RECORDED = {
    "recorded halo ntp": ("eztrace-halo-8", "--clock ntp --nodes 4"),
    "recorded collectives sine": ("tracer-collectives-7", "--clock offset=1ms,drift=10ppm,sine=20us/50% --nodes 7"),
}
# name: recordings by `clc-replay record` with wrong clocks, which have the truth with them.
WITH_TRUTH = {
    "stencil on 2 nodes": "recorded-stencil-4",
    "halo on 4 clocks": "recorded-halo-4",
}
# Of a recording without all its records, too little may be checked: corrected all the same.
PARTLY = (0, 3)


def make(name: str, directory: Path) -> Path:
    """Makes the trace of a scenario; returns its directory."""
    trace = directory / "trace"
    if name in WITH_TRUTH:
        return RECORDINGS / WITH_TRUTH[name]
    if name in SIMULATED:
        alone("simulate", trace, "-q", *SIMULATED[name].split())
    else:
        recording, arguments = RECORDED[name]
        # The recording's own clocks are not perfect; once corrected, it is a truth as good as any.
        base = directory / "base"
        alone(RECORDINGS / recording, "-o", base, "-q", "--presync", "linear", status=PARTLY)
        alone("perturb", base, trace, "-q", *arguments.split())
    return trace


def evaluate(name: str, model: str) -> Json:
    """Makes the trace of a scenario, corrects it with a model of the clocks (and a reference), and judges it."""
    presync, *reference = model.split()
    options = ["--presync", presync, *(["--reference", *reference] if reference else [])]
    with scratch() as directory:
        trace, corrected = make(name, directory), directory / "fixed"
        status = PARTLY if name in RECORDED else (0,)
        correction = reports.parse(alone(trace, "-o", corrected, "-q", *options, "--report", "-", status=status))
        result: Json = reports.parse(alone("evaluate", corrected, "--truth", trace, *options, "--report", "-"))
    result["name"], result["presync"] = name, model
    # What the logical clock did to the times that it was given.
    result["moves"] = correction["moves"]
    result["trace"] = result["truth"] = result["original"] = None
    for phase in result["phases"]:
        del phase["over_time"], phase["locations"]
    return result


HEADER = (
    "scenario",
    "presync",
    "violations: raw",
    "presync",
    "final",
    "clock error rms: presync",
    "forward",
    "final",
    "largest: final",
    "between processes rms: presync",
    "forward",
    "final",
    "latency error rms: presync",
    "final",
    "Late Sender error",
    "intervals kept to 0.1 %",
    "steepest",
    "moved by the logical clock",
    "its intervals kept to 0.1 %",
)


def row(result: Json) -> tuple[str, ...]:
    phases = reports.by_phase(result)
    stages = before, forward, final = phases["presync"], phases["forward"], phases["final"]
    classes = final["intervals"]["classes"]
    kept = sum(c["intervals"] for c in classes[:3]) * 100 / max(1, sum(c["intervals"] for c in classes))
    truth = result["late_sender_seconds"]
    waits = abs(final["late_sender"]["total_seconds"] - truth) * 100 / truth if truth else 0.0
    events_moved, moved_kept = shares(result["moves"])
    return (
        result["name"],
        result["presync"],
        *(f"{phases[name]['violations']:,}" for name in ("raw", "presync", "final")),
        *(figures.duration(reports.rms(phase)) for phase in stages),
        figures.duration(final["clock"]["max_seconds"]),
        *(figures.duration(reports.rms(phase, "between_processes")) for phase in stages),
        *(figures.duration(reports.rms(phase, "latency")) for phase in (before, final)),
        figures.percent(waits),
        figures.percent(kept),
        figures.percent(final["intervals"]["largest_slope_percent"]),
        figures.percent(events_moved),
        f"{moved_kept:.1f} %",
    )


def shares(moved: Json) -> tuple[float, float]:
    """The share of the events that the logical clock moved, and of the intervals that it changed by at most 0.1 %, in percent."""
    classes = moved["interval_change"]["classes"]
    intervals = sum(c["intervals"] for c in classes)
    near = sum(c["intervals"] for c in classes if c["up_to_percent"] is not None and c["up_to_percent"] <= 0.1)
    return moved["events_moved"] * 100 / max(1, moved["events"]), near * 100 / max(1, intervals)


GOALS = (
    "scenario",
    "clock error (rms), linear over auto: 10",
    "violations for the logical clock, auto over linear: 5 %",
    "events moved, auto over linear: 5 %",
    "intervals kept to 0.1 %: 99 %",
    "reached",
)


def goals(results: Sequence[Json]) -> Iterator[tuple[str, ...]]:
    """What `auto` is to reach beside `linear` where clocks drift unevenly, for each scenario in which linear leaves violations."""
    by = {(r["name"], r["presync"]): r for r in results}
    for name in dict.fromkeys(r["name"] for r in results):
        linear, auto = by.get((name, "linear")), by.get((name, "auto"))
        # The goals are errors against the time of clock 0.
        if not linear or not auto or NO_REFERENCE in name:
            continue
        phases = [reports.by_phase(result) for result in (linear, auto)]
        left = [phase["presync"]["violations"] for phase in phases]
        if left[0] == 0:
            continue
        errors = [reports.rms(phase["final"]) for phase in phases]
        moved, kept = zip(shares(linear["moves"]), shares(auto["moves"]))
        factor, violations, events = errors[0] / errors[1], left[1] * 100 / left[0], moved[1] * 100 / moved[0]
        reached = factor >= 10, violations <= 5, events <= 5, kept[1] >= 99
        yield (
            name,
            f"{factor:.1f}",
            figures.percent(violations),
            figures.percent(events),
            f"{kept[1]:.1f} %",
            "all" if all(reached) else f"{sum(reached)} of 4",
        )


REFERENCE_HEADER = (
    "scenario",
    "clocks, reference",
    "clock error rms: presync",
    "final",
    "between processes rms: presync",
    "final",
)


def references(results: Sequence[Json]) -> Iterator[tuple[str, ...]]:
    """What is global time where no clock is right: all models of those scenarios."""
    for result in results:
        phases = reports.by_phase(result)
        if NO_REFERENCE in result["name"]:
            errors = (
                reports.rms(phases[p], what) for what in ("clock", "between_processes") for p in ("presync", "final")
            )
            yield result["name"], result["presync"], *map(figures.duration, errors)


def evaluate_all(names: Sequence[str], models: Sequence[str]) -> list[Json]:
    results = []
    for number, name in enumerate(names, 1):
        for model in (*models, *(REFERENCES if NO_REFERENCE in name else ())):
            progress(f"[{number}/{len(names)}] {name}, {model}")
            results.append(evaluate(name, model))
    return results


def main() -> int:
    options = parser(__doc__)
    options.add_argument("words", nargs="*")
    options.add_argument("--presync", default="linear,auto", help="models of the clocks, separated by commas")
    options.add_argument("--json", metavar="FILE")
    options.add_argument("--write", action="store_true")
    options.add_argument("--check", action="store_true")
    chosen = options.parse_args()
    names = [n for n in [*SIMULATED, *RECORDED, *WITH_TRUTH] if not chosen.words or any(w in n for w in chosen.words)]
    if not names:
        fail("no scenario has such a name")
    models = chosen.presync.split(",")
    results = evaluate_all(names, models)
    tables = {
        "table": table(HEADER, [row(result) for result in results if result["presync"] in models], 2),
        "goals": table(GOALS, goals(results), 1),
        "references": table(REFERENCE_HEADER, references(results), 2),
    }
    print("\n\n".join(tables.values()))
    if chosen.json:
        reports.write(chosen.json, results)
    advice = "docs/accuracy.md has another table; if the change is meant, run scripts/accuracy --write"
    if PAGE.update(tables, write=chosen.write, check=chosen.check, advice=advice):
        return 1
    bad = [result["name"] for result in results if reports.by_phase(result)["final"]["violations"]]
    if bad:
        fail(f"violations are left in {', '.join(bad)}")
    return 0
