"""The plots of docs/performance.md, from docs/performance/measured.json; see bench_page.py."""

# By the part that each is drawn from: name and alternative text.
PLOTS = {
    "growth-events": {"throughput-events": "throughput over the events of the trace"},
    "growth-processes": {"throughput-processes": "throughput over the processes of the trace"},
    "ranks": {"throughput-ranks": "throughput over ranks, more than there are cores"},
    "scaling": {"strong-scaling": "strong scaling", "weak-scaling": "weak scaling"},
}


def each(run):
    """Events per process, as they were asked for: an application ends with the step that reaches them."""
    events = run["events"] // run["processes"]
    return f"{round(events, 2 - len(str(events))):,}"


def draw_all(measured, directory):
    """Draws what can be drawn; plots of other parts are removed."""
    import matplotlib
    matplotlib.use("svg")
    # The same figures give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "clc-replay"
    from matplotlib import pyplot, ticker

    figures = measured["figures"]
    for name in (name for part, names in PLOTS.items() if part not in figures for name in names):
        (directory / f"{name}.svg").unlink(missing_ok=True)
    blue, orange, grey = "#1f77b4", "#d9730d", "#8a8a8a"

    def draw(name, title, xlabel, ylabel, lines, base, cores=None, ideal=None, logarithmic=False):
        """`lines`: (label, colour, x, y, least y, most y), bars where the runs differ; `ideal`: (x, y); `base` of the x axis."""
        figure, axes = pyplot.subplots(figsize=(6, 3.7), facecolor="white")
        if ideal:
            axes.plot(*ideal, "--", color=grey, lw=1.4, label=f"ideal on {cores} cores", zorder=1)
        for label, colour, x, y, least, most in lines:
            spread = [[a - b for a, b in zip(y, least)], [b - a for a, b in zip(y, most)]]
            axes.errorbar(x, y, spread if any(map(any, spread)) else None, fmt="o-", color=colour, lw=1.6, ms=5, capsize=3, elinewidth=1, label=label)
        if cores:
            axes.axvline(cores, color=grey, lw=1, ls=":")
            axes.annotate(
                f"{cores} cores", (cores, 0.45 if logarithmic else 0.03), xycoords=("data", "axes fraction"),
                xytext=(4, 0), textcoords="offset points", color="#606060", fontsize=8,
            )
        axes.set_xscale("log", base=base)
        if base == 2:
            axes.set_xticks(sorted({value for _, _, x, *_ in lines for value in x}))
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axes.xaxis.set_minor_locator(ticker.NullLocator())
        if logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            axes.grid(True, which="minor", axis="y", color="#f0f0f0", lw=0.6)
        else:
            top = max(value for _, _, _, _, _, most in lines for value in most)
            axes.set_ylim(0, 1.1 * max([top, *(ideal[1] if ideal else [])]))
        axes.set_title(title, fontsize=11)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.grid(True, which="major", color="#e4e4e4", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        if ideal or len(lines) > 1:
            axes.legend(frameon=False, fontsize=9)
        figure.tight_layout()
        figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)

    def rates(runs, key="wall"):
        """Millions of events per second: of the median, of the slowest, of the fastest run."""
        chosen = (lambda run: run[key], lambda run: max(run[f"{key}s"]), lambda run: min(run[f"{key}s"]))
        return [[run["events"] / of(run) / 1e6 for run in runs] for of in chosen]

    rate = "million events per second"
    for part, name, title, xlabel, base in (
        ("growth-events", "throughput-events", "Throughput, 8 processes, one analysis rank", "events of the trace", 10),
        ("growth-processes", "throughput-processes", "Throughput, 32,768 events per process, one analysis rank", "processes of the trace", 2),
    ):
        if points := figures.get(part):
            x = [point["events" if base == 10 else "processes"] for point in points]
            draw(name, title, xlabel, rate, [("measured", blue, x, *rates(points))], base)
    if rows := figures.get("ranks"):
        cores = measured["machines"]["ranks"]["cores"]
        x = [row["ranks"] for row in rows]
        lines = [("without the start-up of MPI", blue, x, *rates(rows, "shared")), ("whole run", orange, x, *rates(rows))]
        draw(
            "throughput-ranks", f"Throughput, as many ranks as processes, {each(rows[0])} events each", "analysis ranks",
            rate, lines, 2, cores, logarithmic=True,
        )
    if found := figures.get("scaling"):
        cores = measured["machines"]["scaling"]["cores"]
        # More ranks than cores cannot be faster than as many.
        allowed = lambda counts: [min(count, cores) for count in counts]
        runs = found["strong"]
        x, first = [run["ranks"] for run in runs], runs[0]["events"] / runs[0]["shared"] / 1e6
        speedups = [[value / first for value in values] for values in rates(runs, "shared")]
        title = f"Strong scaling: 64 processes, {each(runs[0])} events each"
        draw("strong-scaling", title, "analysis ranks", "speed-up", [("measured", blue, x, *speedups)], 2, cores, (x, allowed(x)))
        runs = found["weak"]
        x, y = [run["ranks"] for run in runs], rates(runs, "shared")
        ideal = (x, [factor * y[0][0] for factor in allowed(x)])
        title = f"Weak scaling: 8 processes per rank, {each(runs[0])} events each"
        draw("weak-scaling", title, "analysis ranks", rate, [("measured", blue, x, *y)], 2, cores, ideal)
