"""The tables of docs/performance.md, from docs/performance/measured.json; scripts/bench measures and calls this.

A part that was not measured has no rows and no plot. Targets are here and nowhere else.
"""

import json
import math
import pathlib
import sys
from dataclasses import dataclass

import bench_plots

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/performance.md"
MEASURED = ROOT / "docs/performance/measured.json"
NOTHING = "Not measured."
# Cores that other programs may use while it is measured.
BUSY = 0.15


@dataclass
class Row:
    """Of the table of results: every target with whether it is met, or nothing if that is no question."""

    what: str
    measured: str
    targets: tuple = ()

    def verdicts(self):
        said = {True: ": met", False: ": missed", None: ""}
        return "; ".join(target + said[met] for target, met in self.targets)

    def missed(self):
        return any(met is False for _, met in self.targets)


def times(value):
    return f"{value:.2f} x"


def seconds(value):
    if value >= 10:
        return f"{value:.1f} s"
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value:.3f} s" if value >= 0.1 else duration(value)


def duration(value):
    """Of any length, with three digits."""
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value * 1e9:.3g} ns"


def listed(values):
    """a, b and c"""
    *most, last = map(str, values)
    return f"{', '.join(most)} and {last}" if most else last


def mebibytes(value):
    return f"{value / 2**20:.0f} MiB"


def logical_clocks(run):
    """Logical times of an event: of the plain Lamport clock, which the first replay carries beside its own, and of every pass."""
    return run["passes"] + 1 if run["passes"] else 0


def replayed(run):
    if not run["passes"]:
        return "the clocks leave nothing to replay"
    return f"{run['violated']:,} violations, {run['passes']} replays"


def forward_per_visit(run):
    """Seconds per visited event and clock."""
    return run["phases"]["forward"] / run["visited"] / max(1, logical_clocks(run))


def per_doubling(points, key="wall"):
    """Growth of the time per doubling of the events. Below a twentieth of a second the start of the process counts."""
    steps = [(a, b) for a, b in zip(points, points[1:]) if a["wall"] > 0.05 and a[key] > 0]
    return [(b[key] / a[key]) ** (1 / math.log2(b["events"] / a["events"])) for a, b in steps]


def results(figures):
    """The rows for all parts that are in `figures`."""
    rows = []
    for part in (end_to_end, large, collectives, growth_events, growth_processes, clocks, memory, limit, backward, processes, ranks, transport):
        rows += part(figures)
    return rows


def end_to_end(figures):
    if "end-to-end" not in figures:
        return []
    runs = figures["end-to-end"]
    copy, shape = runs["copy"]["wall"], f"8 x {bench_plots.each(runs['alone'])} halo events"
    factor = lambda name: runs[name]["wall"] / copy
    rate = lambda name: runs["alone"]["events"] / runs[name]["wall"] / 1e6
    ratio = lambda suffix, key: runs[f"one{suffix}"][key] / runs[f"two{suffix}"][key]
    rows = [
        Row(
            f"{shape}, one process, a thread per core reads and writes; {replayed(runs['alone'])}",
            f"{seconds(runs['bare']['wall'])}, {rate('bare'):.1f} million events/s, {factor('bare'):.2f} x `cp -r` ({seconds(copy)})",
            (("5 x `cp -r`", factor("bare") <= 5),),
        ),
        Row(
            f"the same with `--presync linear`: {replayed(runs['alone_linear'])}, backward amortisation",
            f"{seconds(runs['bare_linear']['wall'])}, {rate('bare_linear'):.1f} million events/s, {factor('bare_linear'):.2f} x `cp -r`",
            (("5 x `cp -r`", factor("bare_linear") <= 5),),
        ),
        Row(
            "estimated clocks, one thread",
            f"{seconds(runs['thread']['wall'])}, {rate('thread'):.1f} million events/s, {factor('thread'):.2f} x `cp -r`",
            (("25 million/s and core (orientation)", rate("thread") >= 25),),
        ),
    ]
    pairs = [one / two for one, two in zip(runs["one"]["shareds"], runs["two"]["shareds"])]
    spread = f" ({min(pairs):.2f} to {max(pairs):.2f} in single rounds)" if len(pairs) > 1 else ""
    rows.append(Row(
        "`mpirun -n 2` against `-n 1`, without the start-up of MPI and the details for the page",
        f"estimated clocks {times(ratio('', 'shared'))}{spread}; `--presync linear` {times(ratio('_linear', 'shared'))}; "
        f"with the start-up {times(ratio('', 'wall'))}",
        (("1.7 x", ratio("", "shared") >= 1.7), ("with a replay", ratio("_linear", "shared") >= 1.7)),
    ))
    return rows


def large(figures):
    if "large" not in figures:
        return []
    runs = figures["large"]
    speedup = runs["one"]["shared"] / runs["two"]["shared"]
    return [Row(
        f"64 x {bench_plots.each(runs['two'])} events",
        f"{seconds(runs['bare']['wall'])} in one process; with `-n 2` {seconds(runs['two']['wall'])}, {times(speedup)} `-n 1`, "
        f"{mebibytes(runs['two']['rank_memory'])} on the larger rank",
        (("4 s", max(runs["bare"]["wall"], runs["two"]["wall"]) <= 4), ("1.7 x", speedup >= 1.7)),
    )]


def collectives(figures):
    if "collectives" not in figures:
        return []
    runs = figures["collectives"]
    costs = [forward_per_visit(run) for run in runs.values()]
    ratio = costs[-1] / costs[0]
    return [Row(
        f"forward replay in one process, messages and collectives of {listed(f'{int(count):,}' for count in runs)} processes, "
        "per visited event and clock (Lamport and first pass, in one replay)",
        f"{listed(f'{cost * 1e9:.0f}' for cost in costs)} ns: {1e-6 / max(costs):.0f} to {1e-6 / min(costs):.0f} million/s; "
        f"{times(ratio)} from the fewest to the most members",
        (("20 million/s", max(costs) <= 50e-9), ("linear in members (2 x)", ratio <= 2)),
    )]


def growth_events(figures):
    if "growth-events" not in figures:
        return []
    points = figures["growth-events"]
    steps, computing = per_doubling(points), per_doubling(points, "user")
    if not steps:
        return []
    return [Row(
        f"time per doubling of the events, {points[0]['label']} to {points[-1]['label']} ({points[-1]['events'] / 1e6:.0f} million)",
        f"{times(max(steps))} at most; the last doubling {times(steps[-1])}, of its computing alone {times(computing[-1])}",
        (("2.2 x", max(steps) <= 2.2),),
    )]


def growth_processes(figures):
    if "growth-processes" not in figures:
        return []
    points = figures["growth-processes"]
    steps = per_doubling(points)
    if not steps:
        return []
    return [Row(
        f"time per doubling of the processes, {points[0]['label']} to {points[-1]['label']}",
        f"{times(max(steps))} at most",
        (("2.2 x", max(steps) <= 2.2),),
    )]


def clocks(figures):
    """How much of a run estimating the clocks takes."""
    shares = []
    for part, name, what in (
        ("bounds", "estimated", "one thread"), ("end-to-end", "alone", "a thread per core"), ("end-to-end", "two", "two ranks"),
        ("large", "two", "64 processes on two ranks"),
    ):
        if part in figures:
            run = figures[part]["runs"][name] if part == "bounds" else figures[part][name]
            shares.append((run["phases"]["clocks"] / run["shared"], what))
    if not shares:
        return []
    return [Row(
        "estimating the clocks, part of the run without its start-up",
        "; ".join(f"{what} {share * 100:.1f} %" for share, what in shares),
        (("25 %", max(share for share, _ in shares) <= 0.25),),
    )]


def memory(figures):
    if "memory" not in figures:
        return []
    cases = figures["memory"]["cases"]
    slopes, filled, reported = [], [], []
    for case in cases:
        less, more = case["points"]
        slopes.append((more["bare"] - less["bare"]) / (more["visited"] - less["visited"]))
        allowed = 64 * 2**20 + 32 * more["visited"]
        filled.append(more["bare"] / allowed)
        reported.append(more["report"] / allowed)
    many = [case["points"][1]["visited"] / 1e6 for case in cases]
    percent = lambda values: listed(f"{value * 100:.0f}" for value in values) + " %"
    rows = [Row(
        "memory per further synchronisation event: "
        + listed(f"{case['what']} ({case['points'][1]['violated'] * 100:.0f} % violated)" for case in cases),
        f"{listed(f'{slope:.0f}' for slope in slopes)} bytes; at {min(many):.1f} to {max(many):.1f} million of them "
        f"{percent(filled)} of 64 MiB + 32 bytes each; "
        f"with a report {percent(reported)}",
        (("100 %", max(filled) <= 1), ("with a report", max(reported) <= 1)),
    )]
    calls = figures["memory"]["calls"]
    rows.append(Row(
        f"memory, a trace of calls: {calls['events']:,} events of which {calls['visited']:,} synchronise",
        mebibytes(calls["rank_memory"]),
        (("other events take none (64 MiB + 32 bytes per synchronisation event)", calls["rank_memory"] <= 64 * 2**20 + 32 * calls["visited"]),),
    ))
    return rows


def limit(figures):
    if "limit" not in figures:
        return []
    found = figures["limit"]
    return [Row(
        f"a trace of {mebibytes(found['size'])} in {mebibytes(found['bound'])} of address space (`ulimit -v`)",
        seconds(found["wall"]) if found["works"] else "failed",
        (("works", found["works"]),),
    )]


def backward(figures):
    if "backward" not in figures:
        return []
    runs = sorted(figures["backward"].values(), key=lambda run: run["violated"] / run["checked"])
    spent = [run["phases"]["backward"] for run in runs]
    ratio = max(spent) / min(spent)
    shares = listed(f"{run['violated'] * 100 / run['checked']:.2g}" for run in runs)
    return [Row(
        f"backward amortisation of 8 x {bench_plots.each(runs[0])} events, {shares} % of the messages violated",
        f"{listed(map(duration, spent))}, {ratio:.1f} x apart",
        (("1.3 x apart", ratio <= 1.3),),
    )]


def processes(figures):
    if "processes" not in figures:
        return []
    runs = figures["processes"]
    return [Row(
        f"1,024 processes, {runs['alone']['events'] / 1e6:.0f} million events",
        f"{seconds(runs['alone']['wall'])} in one process, {seconds(runs['two']['wall'])} with `-n 2`",
        (("works", None),),
    )]


def ranks(figures):
    if "ranks" not in figures:
        return []
    rows = [row for row in figures["ranks"] if row["ranks"] >= 64]
    once = [f"`-n {row['ranks']}`" for row in rows if row["runs"] == 1]
    walls, starts = (listed(f"{row[key]:.1f}" for row in rows) for key in ("wall", "start"))
    held = listed(f"{row['rank_memory'] / 2**20:.0f}" for row in rows)
    return [Row(
        listed(f"`mpirun -n {row['ranks']}`" for row in rows) + f", as many processes, {bench_plots.each(rows[0])} events each",
        f"{walls} s, of which {starts} s are the start-up of MPI; {held} MiB per rank" + (f" (one run with {listed(once)})" if once else ""),
        (("works", None),),
    )]


def transport(figures):
    if "transport" not in figures:
        return []
    two = next(row for row in figures["transport"]["mpi"] if row["ranks"] == 2)
    ratio = two["message"] / (2 * two["batched_word"])
    return [Row(
        "timestamps between two ranks in batches against one message each (the transport alone: filling and reading batches is not in it)",
        f"{ratio:.0f} x",
        (("5 x", ratio >= 5),),
    )]


@dataclass
class Phase:
    """What a phase has to move, whatever it computes."""

    name: str
    what: str
    # How often the event files are read and written.
    read: int = 0
    written: int = 0
    # Of main memory, per visited event; per replay in the replay.
    bytes: int = 0
    why: str = ""


# Bytes per visited event: time, recorded time, logical time 8 each; event number, kind and link, place in its channel 4 each.
PHASES = (
    Phase("scan", "event files in; 28 bytes per visited event are stored", 1, 0, 28, "decoding: each record begins where the one before ends"),
    Phase("clocks", "4 x 28 bytes per visited event", 0, 0, 4 * 28, "mapping the times is arithmetic; the solver moves next to nothing"),
    Phase("check", "2 x 12 bytes per visited event", 0, 0, 2 * 12, "the two ends of a message are in different places"),
    Phase("forward", "28 bytes per visited event and replay", 0, 0, 28, "each event needs the one before, a receive its send: latency of the caches"),
    Phase("backward", "2 x 28 bytes per visited event", 0, 0, 2 * 28, "as forward; an advance and a stretch of the curve per violation"),
    Phase("write", "event files in and out, 12 bytes per visited event", 1, 1, 12, "decoding again, three formulas per event"),
    Phase("verify", "12 bytes per visited event", 0, 0, 12, "as check; reads the regions of the worst violations from the event files"),
)


def bound(phase, run, figures):
    """Seconds that moving alone takes, on one core."""
    machine, size = figures["machine"], figures["bytes"]
    walks = run["passes"] if phase.name == "forward" else 1
    files = phase.read * size / machine["read"] + phase.written * size / machine["write"]
    return files + walks * phase.bytes * run["visited"] / machine["memory"]["read"]


def bounds_tables(measured):
    """What the machine can do, how far the phases are from that, and what the order of the messages is worth."""
    if "bounds" not in measured["figures"]:
        return {"machine-bounds": NOTHING, "bounds": NOTHING, "order": NOTHING}
    figures, cores = measured["figures"]["bounds"], measured["machines"]["bounds"]["cores"]
    machine, runs = figures["machine"], figures["runs"]
    one, all_cores, mpi = machine["memory"], machine["memory_all"], machine["mpi"]
    rate = lambda value: f"{value / 1e9:.1f} GB/s"
    ways = (("read", "reading"), ("write", "writing"), ("copy", "copying"))
    message, timestamp = mpi["message"], 2 * mpi["batched_word"]
    can = [
        ["reading files in the page cache, 1 MiB at a time", rate(machine["read"]), ""],
        ["writing new files, 1 MiB at a time", rate(machine["write"]), ""],
        *([f"main memory: {what}", rate(one[key]), rate(all_cores[key])] for key, what in ways),
        ["main memory: a random read that waits for the one before", duration(one["dependent"]), duration(all_cores["dependent"])],
        ["main memory: a random read among others", duration(one["independent"]), duration(all_cores["independent"])],
        ["MPI, two ranks: half a round trip", "", duration(mpi["latency"])],
        ["MPI, two ranks: a message after the other, one way", "", f"{duration(message)}, {1e-6 / message:.1f} million/s"],
        ["MPI, two ranks: a timestamp in a batch of 32 KiB", "", f"{duration(timestamp)}, {1e-6 / timestamp:.0f} million/s"],
    ]
    rows = []
    for phase in PHASES:
        cells = []
        for run in (runs["estimated"], runs["linear"]):
            least, spent = bound(phase, run, figures), run["phases"].get(phase.name, 0)
            # A phase that had nothing to do.
            idle = phase.name in ("forward", "backward") and not run["passes"] or phase.name == "clocks" and spent < 1e-4
            cells.append("" if idle else f"{duration(spent)}, {spent / run['events'] * 1e9:.1f} ns/event: {spent / least:.1f} x")
        rows.append([phase.name, phase.what, duration(bound(phase, runs["linear"], figures)), *cells, phase.why])
    two = runs["two_linear"]
    if two["passes"]:
        steps = two["messages"] // figures["pairs"] * two["passes"]
        least, spent = steps * mpi["latency"], two["phases"]["forward"]
        rows.append([
            "forward, `-n 2`", f"{steps:,} messages, each of which needs the one before", duration(least), "",
            f"{duration(spent)}: {spent / least:.1f} x",
            "a message is found, unpacked and answered after some events of the other rank",
        ])
    linear = runs["linear"]
    messages = linear["messages"]
    random = lambda key: duration(2 * messages * one[key])
    forward = f", a forward replay takes {duration(linear['phases']['forward'] / linear['passes'])}" if linear["passes"] else ""
    order = (
        f"If both ends of the {messages:,} messages were random accesses to main memory, going through them once would take "
        f"{random('dependent')} where each access waits for the one before, and {random('independent')} where they overlap. "
        f"A check takes {duration(linear['phases']['check'] / 2)}{forward}: the ends of the messages of a channel follow each other in memory, "
        "and a replay gets to both ends of a message at nearly the same time."
    )
    return {
        "machine-bounds": table(["what", "one core", f"{cores} cores"], can),
        "bounds": table(
            ["phase", "has to move", "bound", "estimated clocks", "`--presync linear`", "what keeps it from the bound"], rows
        ),
        "order": order,
    }


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def provenance(measured):
    """Where the parts were measured, and whether the machine was quiet."""
    where = {}
    for part, found in measured["machines"].items():
        quick = ", **with `--quick`**" if found["quick"] else ""
        said = f"{found['cpu']}, {found['cores']} cores, {found['memory'] / 2**30:.0f} GiB, {found['mpi']}, traces on {found['files']}{quick}"
        where.setdefault(said, []).append(part)
    text = "\n".join(f"- {listed(parts)}: {said}" for said, parts in where.items()) or NOTHING
    if len(where) == 1:
        text = f"Machine: {next(iter(where))}."
    busy = [f"{part} ({found['others']:.1f} cores)" for part, found in measured["machines"].items() if found["others"] > BUSY]
    if busy:
        text += f"\n\n**Provisional:** other programs kept the machine busy during {listed(busy)}, which makes everything longer."
    return text


def tables(measured):
    """What stands between the markers of the page."""
    rows = [[row.what, row.measured, row.verdicts()] for row in results(measured["figures"])]
    drawn = {name: text for part, names in bench_plots.PLOTS.items() if part in measured["figures"] for name, text in names.items()}
    return {
        "machine": provenance(measured),
        "results": table(["what", "measured", "target"], rows) if rows else NOTHING,
        "plots": "\n".join(f"![{text}]({MEASURED.parent.name}/{name}.svg)" for name, text in drawn.items()) or NOTHING,
        **bounds_tables(measured),
    }


def write(page, found):
    """The page with its tables replaced; each stands between two comments that name it."""
    for name, text in found.items():
        begin, end = f"<!-- {name} -->", "<!-- end -->"
        start = page.find(begin)
        stop = page.find(end, start)
        if start < 0 or stop < 0:
            raise SystemExit(f"bench: {PAGE.name} has no place for '{name}' ({begin} ... {end})")
        page = page[: start + len(begin)] + "\n" + text + "\n" + page[stop:]
    return page


def make(check=False, write_tables=False, draw_plots=False):
    """Compares or writes the tables, draws the plots; the exit status."""
    if not MEASURED.exists():
        raise SystemExit(f"bench: {MEASURED} is missing; scripts/bench --json {MEASURED.relative_to(ROOT)} makes it")
    measured = json.loads(MEASURED.read_text())
    old = PAGE.read_text()
    new = write(old, tables(measured))
    if write_tables:
        PAGE.write_text(new)
    elif check and new != old:
        print(f"bench: {PAGE} is not what {MEASURED} says; scripts/bench --tables makes it so", file=sys.stderr)
        return 1
    if draw_plots:
        try:
            bench_plots.draw_all(measured, MEASURED.parent)
        except ImportError as error:
            print(f"bench: no plots, {error}; on Debian: python3-matplotlib", file=sys.stderr)
            return 1
    return 0
