"""The model: costs that were measured, and what they say of a run on this machine and on a cluster.

It is LogGP's: latency L, overhead o per message, gap G per byte (Alexandrov, Ionescu, Schauser, Scheiman 1995), with costs per event and per file
beside them. Numbers of messages are those of the program: docs/scaling.md says where each is from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from ..reports import Json

# Seconds by phase, and by what it is spent on.
Seconds = dict[str, float]
Parts = dict[str, Seconds]

# Collective calls of a run, as in the code: see "What is exchanged" in docs/scaling.md.
EXCHANGES = {"scan": 9, "survey": 4, "caps": 3}
ALL_REDUCES = {"open": 5, "scan": 3, "survey": 2, "forward": 1, "caps": 1, "write": 2, "verify": 1}
# Values merged along a tree of ranks; the sum goes to all of them.
MERGES = {"survey": 3, "verify": 1, "report": 2}
VOTES_PER_REPLAY = 4
# What rank 0 gets of each rank for the report: counts by kind, histogram of the moves (encoded size of both, rounded up).
REPORT_BYTES = 1500

# The machine of the predictions. Sources in docs/scaling.md.
CLUSTER: dict[str, float] = {
    "ranks_per_node": 64,
    "latency": 2.0e-6,  # s, one way, MPI to MPI, another node
    "node_bandwidth": 100e9,  # bytes/s: four interfaces of 200 Gbit/s
    "file_read": 5.5e12,  # bytes/s of the whole file system
    "file_write": 4.6e12,
    "file_node": 10e9,  # bytes/s that one node gets from it
    "open_rate": 400e3,  # per s, all clients, one directory
    "create_rate": 15e3,
    "launch_rank": 10e-6,  # s per rank of the whole job: wire-up
    "launch": 1.0,  # s
    "decode_part": 1e-6,  # s per part of the report that is decoded and merged
}
# The application of the predictions: three-dimensional halo exchange, one analysis rank per process, weak scaling.
APPLICATION: dict[str, float] = {
    "events": 1_000_000,  # per process
    "events_per_step": 52,  # computation 2, six MPI_Irecv and six MPI_Isend 36, MPI_Waitall 14
    "visited_per_step": 12,
    "messages_per_step": 6,
    "steps_per_collective": 10,  # one MPI_Allreduce on the world
    "passes": 3,
}
# What would have to change at 10^6, in this order.
CHANGES = {
    "tree": "collectives combined along a tree of ranks instead of at one home",
    "containers": "the locations of a node in one file",
    "definitions": "each rank knows its own communicators only",
}


def log2(number: float) -> int:
    return max(1, math.ceil(math.log2(max(2, number))))


def multiplied(factor: float, parts: Seconds) -> Seconds:
    return {name: factor * value for name, value in parts.items()}


class Costs:
    """Seconds per event in one process, from traces other than those of the check."""

    def __init__(self, measured: Json) -> None:
        costs = measured["model"]["costs"]
        halo, mix = costs["halo2d"], costs["mix"]
        self.kinds = {"halo2d": self.per_event(halo), "mix": self.per_event(mix)}
        self.bytes_per_event = halo["bytes"] / halo["events"]
        # Less what a process without a trace needs.
        self.visited_bytes = (halo["rank_memory"] - 8 * 2**20) / halo["visited"]
        small = costs["definitions"]
        # What is left of the small trace when its events are paid for: the cost of a process.
        of_halo = self.kinds["halo2d"]
        paid = {
            "open": 0,
            "scan": small["events"] * of_halo["scan"],
            "write": small["events"] * of_halo["write"],
            "publish": 0,
        }
        self.process = {
            name: max(0, small["phases"][name] - spent) / small["processes"] for name, spent in paid.items()
        }
        rows = measured["transport"]["definitions"]
        largest = rows[-1]
        self.decode = largest["seconds"] / largest["processes"]
        self.wire = largest["wire_bytes"] / largest["processes"]
        self.known = largest["peak_bytes"] / largest["processes"]

    @staticmethod
    def per_event(run: Mapping[str, Any]) -> Seconds:
        phases, visited = run["phases"], max(1, run["visited"])
        return {
            "scan": phases["scan"] / run["events"],
            "survey": phases["check"] / 2 / visited,
            # Per clock: the plain Lamport clock, which travels with the first pass, and those of the passes.
            "forward": phases["forward"] / visited / (run["passes"] + 1),
            "backward": phases["backward"] / visited,
            "write": phases["write"] / run["events"],
            "verify": phases["verify"] / visited,
        }


def grid(processes: int) -> tuple[int, int, int]:
    """Width, directed neighbour pairs and most neighbours of halo2d (src/simulate/patterns/halo.rs)."""
    width = next(width for width in range(1, processes + 1) if width * width >= processes)
    pairs = 0
    most = 0
    for rank in range(processes):
        row = rank // width * width
        neighbours = [
            rank - 1 >= row,
            rank + 1 < min(row + width, processes),
            rank - width >= 0,
            rank + width < processes,
        ]
        pairs += sum(neighbours)
        most = max(most, sum(neighbours))
    return width, pairs, most


def depth(run: Mapping[str, Any]) -> tuple[float, float]:
    """Dependent exchanges of one replay: (rounds of messages, collective operations) that one process goes through."""
    if run["pattern"] == "halo2d":
        return run["messages"] / grid(run["processes"])[1], 0
    return run["messages"] / run["processes"], run["collective_ends"] / run["processes"]


class Here:
    """This machine with more ranks than cores: costs of talking are measured with as many ranks."""

    def __init__(self, measured: Json, costs: Costs) -> None:
        self.costs, self.cores = costs, measured["transport"]["cores"]
        self.talk = {kind: {row["ranks"]: row for row in measured["transport"][kind]} for kind in ("mpi", "threads")}

    def predict(self, run: Mapping[str, Any]) -> Seconds:
        """Seconds per phase of a run, by what the trace and the costs say; nothing of the run's own times is used."""
        ranks, talk = run["ranks"], self.talk[run["transport"]][run["ranks"]]
        share = 1 / min(ranks, self.cores)
        cost, process = self.costs.kinds[run["pattern"]], self.costs.process
        exchange, reduce = talk["exchange"] * (ranks > 1), talk["allreduce"] * (ranks > 1)
        vote = talk["vote"] * (ranks > 1)
        step = talk["step"] * (ranks > 1)
        # All come together, then down the tree and back.
        merge = reduce + 2 * log2(ranks) * step
        rounds, collectives = depth(run)
        visited, events, processes = run["visited"], run["events"], run["processes"]
        # Nothing is replayed if no violation is left. The rehearsal of the canonical form tells the lower bound, but not with prefix
        # operations, which are in the mix.
        canonical = run["form"] == "canonical"
        replays = run["passes"] + canonical * (2 if run["pattern"] == "mix" else 1) if run["passes"] else 0
        clocks = max(replays, run["passes"] + 1) if run["passes"] else 0
        survey = EXCHANGES["survey"] * exchange + ALL_REDUCES["survey"] * reduce + MERGES["survey"] * merge
        # A collective goes to its home and back.
        replay = (rounds + 2 * collectives) * step + VOTES_PER_REPLAY * vote + reduce
        caps = EXCHANGES["caps"] * exchange + reduce
        if canonical:
            caps = (rounds + collectives) * step
        return {
            "open": processes * process["open"]
            + processes * self.costs.decode * (ranks - 1) * share
            + ALL_REDUCES["open"] * reduce
            + merge,
            "scan": (events * cost["scan"] + processes * process["scan"]) * share
            + EXCHANGES["scan"] * exchange
            + ALL_REDUCES["scan"] * reduce,
            "check": 2 * (visited * cost["survey"] * share + survey),
            "forward": clocks * visited * cost["forward"] * share + replays * replay,
            "backward": visited * cost["backward"] * share + caps if replays else 0.0,
            "write": (events * cost["write"] + processes * process["write"]) * share + ALL_REDUCES["write"] * reduce,
            "verify": visited * cost["verify"] * share + survey + MERGES["verify"] * merge + reduce,
        }


class Cluster:
    """A machine with a core for every rank."""

    def __init__(self, measured: Json, costs: Costs) -> None:
        self.costs, self.machine, self.application = costs, CLUSTER, APPLICATION
        two = next(row for row in measured["transport"]["mpi"] if row["ranks"] == 2)
        # Time of a rank per message of its own, sending or receiving.
        self.overhead: float = two["message"]
        self.rank_memory = two["peak_bytes"]
        # All processes of a node start at once; here they queue for the cores.
        rows = measured["transport"]["mpi"]
        many = max(rows, key=lambda row: int(row["ranks"]))
        self.start_here = many["start"] * measured["transport"]["cores"] / many["ranks"]

    def hop(self) -> float:
        return self.machine["latency"] + 2 * self.overhead

    def all_reduce(self, ranks: float) -> float:
        return 2 * log2(ranks) * self.hop()

    def merge(self, ranks: float, size: float) -> float:
        """Values of `size` bytes merged along a tree; the sum goes to all."""
        bandwidth = self.machine["node_bandwidth"] / self.machine["ranks_per_node"]
        return self.all_reduce(ranks) + 2 * log2(ranks) * (self.hop() + size / bandwidth + self.machine["decode_part"])

    def exchange(self, ranks: float, partners: float) -> float:
        """All messages, and two votes."""
        return 2 * partners * self.overhead + self.machine["latency"] + 2 * self.all_reduce(ranks)

    def workload(self) -> tuple[float, float, float]:
        """Steps, collective instances and synchronisation events of one process."""
        application = self.application
        steps = application["events"] / application["events_per_step"]
        instances = steps / application["steps_per_collective"]
        return steps, instances, steps * application["visited_per_step"] + 2 * instances

    def star(self, ranks: float, size: float, tree: bool) -> float:
        """Contributions of `size` bytes meet at one rank, which answers: directly, or along a binary tree."""
        bandwidth = self.machine["node_bandwidth"] / self.machine["ranks_per_node"]
        if tree:
            return 2 * log2(ranks) * (self.hop() + size / bandwidth)
        return 2 * (ranks * (self.overhead + size / bandwidth) + self.hop())

    def predict(self, ranks: float, changes: Collection[str] = ()) -> Parts:
        """Parts of every phase in seconds: {phase: {what: seconds}}; `changes` are those of `CHANGES` that are made."""
        machine, application, cost = self.machine, self.application, self.costs.kinds["halo2d"]
        tree, together = "tree" in changes, machine["ranks_per_node"] if "containers" in changes else 1
        nodes = max(1, ranks / machine["ranks_per_node"])
        steps, instances, visited = self.workload()
        partners = application["messages_per_step"]
        volume = ranks * application["events"] * self.costs.bytes_per_event
        read = volume / min(machine["file_read"], nodes * machine["file_node"])
        write = volume / min(machine["file_write"], nodes * machine["file_node"])
        bandwidth = machine["node_bandwidth"] / machine["ranks_per_node"]
        sent = steps * partners * 8 / bandwidth + self.exchange(ranks, partners)
        # Contributions of all instances, 24 bytes each.
        meet = self.star(ranks, 24 * instances, tree) + 4 * self.all_reduce(ranks)
        known = ranks if "definitions" not in changes else machine["ranks_per_node"] + 100 * log2(ranks)
        replay = {"formula": visited * cost["forward"], "messages": steps * (self.hop() + 2 * partners * self.overhead)}
        # One replay with the home (rehearsal and lower bound), the passes in the canonical form with MPI collectives.
        passes, dataflow = application["passes"], 1
        survey = {
            "formula": visited * cost["survey"],
            "messages": sent,
            "home": meet + self.star(ranks, 16, tree) / 2,
            "merges": MERGES["survey"] * self.merge(ranks, 40),
        }
        return {
            "start": {"launch": machine["launch"] + machine["launch_rank"] * ranks + self.start_here},
            "definitions": {
                "sizes of files": ranks / machine["open_rate"] + 6 * ranks / bandwidth + self.merge(ranks, 0),
                "read": ranks * self.costs.process["open"],
                "broadcast": 2 * known * self.costs.wire / bandwidth + log2(ranks) * self.hop(),
                "decode": known * self.costs.decode,
            },
            "scan": {
                "formula": application["events"] * cost["scan"],
                "file data": read,
                "open files": 2 * ranks / together / machine["open_rate"],
            },
            "matching": {
                "messages": 2 * self.exchange(ranks, partners),
                # Counts, checksums, questions, and an answer to each.
                "home": 3.5 * self.star(ranks, 24, tree),
            },
            "checks": multiplied(3, survey),
            "forward": {
                **multiplied(passes + dataflow, replay),
                "home": dataflow * instances * self.star(ranks, 40, tree),
                "MPI collectives": passes * instances * self.all_reduce(ranks),
            },
            "backward": {
                "formula": visited * cost["backward"],
                "messages": replay["messages"],
                "MPI collectives": instances * self.all_reduce(ranks),
            },
            "write": {
                "formula": application["events"] * cost["write"],
                "file data": read + write,
                "create files": 2 * ranks / together / machine["create_rate"],
                "open files": 4 * ranks / together / machine["open_rate"],
            },
            "report": {"merges": MERGES["report"] * self.merge(ranks, REPORT_BYTES)},
        }

    def memory(self, ranks: float) -> dict[str, float]:
        """Bytes on an ordinary rank, and what the home of the world and rank 0 hold beside them."""
        _, instances, visited = self.workload()
        return {
            "own synchronisation events": self.costs.visited_bytes * visited,
            "definitions": self.costs.known * ranks,
            "world communicator": 32 * ranks,
            "at home of the world": 24 * instances * ranks,
            "of MPI, at rest": self.rank_memory,
        }
