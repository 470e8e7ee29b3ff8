"""The plots of docs/scaling.md."""

from __future__ import annotations

from pathlib import Path

from ..plots import figure
from ..reports import Json
from .model import Cluster, Costs, Here
from .tables import total

SIZE = (6.5, 4)
RUNS = (("halo2d", "mpi"), ("mix", "mpi"), ("halo2d", "threads"), ("mix", "threads"))


def draw_all(measured: Json, directory: Path) -> None:
    costs = Costs(measured)
    draw_check(measured, Here(measured, costs), directory / "check.svg")
    draw_prediction(Cluster(measured, costs), directory / "prediction.svg")


def draw_check(measured: Json, here: Here, path: Path) -> None:
    """Runs of this machine beside what the model says of them."""
    with figure(path, SIZE) as axes:
        for (pattern, transport), marker in zip(RUNS, "osv^"):
            chosen = (pattern, transport)
            runs = [run for run in measured["model"]["runs"] if (run["pattern"], run["transport"]) == chosen]
            names = [name for name in here.predict(runs[0]) if name != "write"]
            x = [run["ranks"] for run in runs]
            label = f"{pattern}, {transport}, measured"
            line = axes.loglog(x, [sum(run["phases"][n] for n in names) for run in runs], marker, label=label)
            predicted = [sum(here.predict(run)[n] for n in names) for run in runs]
            axes.loglog(x, predicted, "--", color=line[0].get_color())
        axes.set_xlabel(f"ranks ({here.cores} cores; dashed: predicted)")
        axes.set_ylabel("seconds, without writing")
        axes.grid(True, which="both", color="#e0e0e0")
        axes.legend(fontsize=8)


def draw_prediction(cluster: Cluster, path: Path) -> None:
    with figure(path, SIZE) as axes:
        x = [10 ** (k / 4) for k in range(8, 25)]
        predicted = [cluster.predict(round(ranks)) for ranks in x]
        for phase in predicted[0]:
            axes.loglog(x, [sum(parts[phase].values()) for parts in predicted], label=phase)
        axes.loglog(x, [total(parts) for parts in predicted], "k", lw=2, label="all")
        axes.set_xlabel("analysis ranks = processes (10^6 events each)")
        axes.set_ylabel("seconds, predicted")
        axes.grid(True, which="both", color="#e0e0e0")
        axes.legend(fontsize=7, ncol=2)
