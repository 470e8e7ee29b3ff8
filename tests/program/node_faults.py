#!/usr/bin/python3
"""Faults of emulated nodes under a job that is watched: run by scripts/nodes on the first of them; says as JSON what the monitor said.

node_faults.py dead PROGRAM DIRECTORY APP     the third of four nodes loses its network and all of its processes
node_faults.py cut PROGRAM DIRECTORY          the first two of four nodes cannot reach the other two for a while
node_faults.py clocks PROGRAM DIRECTORY BAD   of four nodes, two clocks are set forward; BAD is tests/apps/bad_node.c
node_faults.py running PROGRAM DIRECTORY BAD  one gains a thousandth of the time, one stands still
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

NODES = 4
# Whatever takes longer has failed.
PATIENCE = 40.0
# Some clocks are compared with each other ten times a minute only, at random, and a word about one waits for all of them. Agents without a process stay for two minutes.
LONG = 90.0
# By their places in the files that bad_node.c reads.
CLOCKS = ("system time", "raw clock")
# What happens to the clocks of nodes: what they are set forward by, in nanoseconds, and what they gain from then on, in nanoseconds per second.
SET = {("node2", "raw clock"): (20_000_000, 0), ("node3", "system time"): (20_000_000, 0)}
RUNNING = {("node2", "raw clock"): (0, 1_000_000), ("node3", "system time"): (0, -1_000_000_000)}
# Questions that are asked a quarter of a second apart.
LOOKS = 20
Said = dict[str, Any]


class Job:
    """A job, as its agents are asked from one of the nodes."""

    def __init__(self, program: str, directory: Path) -> None:
        self.program, self.directory = program, directory
        self.environment = os.environ | {"CLC_REPLAY_MPI": "never", "CLC_REPLAY_JOBS": str(directory / "jobs")}
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> None:
        nothing = subprocess.DEVNULL
        self.children.append(
            subprocess.Popen(words, env=self.environment, stdin=nothing, stdout=nothing, stderr=nothing)
        )

    def record(self, *words: str) -> None:
        options = ("--monitor", "--interface", "10.77.0.0/16", "-o", str(self.directory / "run"))
        self.start(self.program, "record", *options, "--", *words)

    def sleep(self, seconds: int) -> None:
        """A job without a process of MPI, for which agents are started one by one."""
        self.record("sleep", str(seconds))
        begun = time.monotonic()
        while not (self.directory / "run.monitor/job.json").exists() and time.monotonic() - begun < PATIENCE:
            time.sleep(0.02)

    def why(self, node: int = 1) -> Said:
        words = [self.program, "watch", str(self.directory / "run.monitor"), "--why", "--json", "-"]
        done = subprocess.run([*on(node), *words], env=self.environment, capture_output=True, text=True, check=False)
        said: Said = json.loads(done.stdout) if done.stdout.startswith("{") else {"sentence": done.stderr}
        return {"verdict": "", "ranks": [], "agents": [], "ranks_to_blame": [], "status": done.returncode} | said

    def text(self) -> str:
        """What people read."""
        words = [self.program, "watch", str(self.directory / "run.monitor"), "--why"]
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False).stdout

    def until(self, what: Callable[[Said], bool], node: int = 1, patience: float = PATIENCE) -> Said:
        """What is said as soon as this is the case, and how long that took."""
        begun = time.monotonic()
        while True:
            said = self.why(node)
            said["after"] = time.monotonic() - begun
            if what(said):
                return said
            if said["after"] > patience:
                sys.exit(f"not in {patience} s: {said}")
            time.sleep(0.05)

    def soon(self, what: Callable[[Said], bool]) -> Said:
        """As `until`, but a question does not wait for the one before, whose answer takes longer if a node is silent."""
        begun = time.monotonic()

        def asked(number: int) -> Said:
            time.sleep(0.25 * number)
            said = self.why()
            return said | {"after": time.monotonic() - begun}

        with ThreadPoolExecutor(LOOKS) as pool:
            answers = sorted(pool.map(asked, range(LOOKS)), key=lambda said: said["after"])
        return next((said for said in answers if what(said)), answers[-1])

    def end(self) -> None:
        for child in self.children:
            child.kill()


def on(node: int) -> list[str]:
    """What runs a command on a node, as launchers do."""
    return [] if node == 1 else [os.environ["OMPI_MCA_plm_rsh_agent"], f"node{node}"]  # noqa: SIM112


def do(node: int, *words: str) -> None:
    subprocess.run([*on(node), *words], check=True)


def short(said: Said) -> Said:
    known = {agent["host"]: {m["host"]: m["liveness"] for m in agent["members"]} for agent in said["agents"]}
    names = ("verdict", "sentence", "ranks_to_blame", "status", "after")
    return {name: said.get(name) for name in names} | {"known": known}


def all_meet(said: Said) -> bool:
    """Every agent knows all others as living ones."""
    agents = said["agents"]
    return len(agents) == NODES and all(
        sum(member["liveness"] == "alive" for member in agent["members"]) == NODES - 1 for agent in agents
    )


def calls_dead(said: Said, node: str) -> bool:
    return any(m["host"] == node and m["liveness"] == "dead" for agent in said["agents"] for m in agent["members"])


def dead(job: Job, app: str) -> Said:
    job.record("mpirun.openmpi", "-n", str(NODES), app, "moves", "60")
    before = job.until(lambda said: all_meet(said) and len(said["ranks"]) == NODES and said["verdict"] == "moves")
    file = next(
        about
        for about in (json.loads(path.read_text()) for path in (job.directory / "run.monitor/agents").glob("*.json"))
        if about["host"] == "node3"
    )
    ranks = [row["process"] for row in before["ranks"] if row["host"] == "node3"]
    # Without the network nothing says goodbye, as when the power fails.
    do(3, "ip", "link", "set", "eth0", "down")
    for process in (file["process"], *ranks):
        os.kill(process, 9)
    named = job.soon(lambda said: said["verdict"] == "failed" and calls_dead(said, "node3"))
    return {"rank": [row["rank"] for row in before["ranks"] if row["host"] == "node3"], "named": short(named)}


def cut(job: Job) -> Said:
    job.sleep(90)
    for node in range(1, NODES + 1):
        job.start(*on(node), job.program, "agent", str(job.directory / "run.monitor"))
    before = job.until(all_meet)
    halves = ((1, 2), (3, 4))

    def routes(verb: str) -> None:
        for near, far in (halves, halves[::-1]):
            for node in near:
                for other in far:
                    do(node, "ip", "route", verb, "blackhole", f"10.77.0.{other}/32")

    routes("add")
    here = job.until(lambda said: all(calls_dead(said, node) for node in ("node3", "node4")))
    there = job.until(lambda said: all(calls_dead(said, node) for node in ("node1", "node2")), node=3)
    routes("del")
    healed = job.until(all_meet)
    # For some seconds nobody is called dead again.
    later, begun = [], time.monotonic()
    while time.monotonic() - begun < 6.0:
        later.append(short(job.why()))
    parts = {"before": before, "here": here, "there": there, "healed": healed}
    return {name: short(said) for name, said in parts.items()} | {"later": later}


def clocks(job: Job, bad: str) -> Said:
    return spoilt(job, bad, SET)


def running(job: Job, bad: str) -> Said:
    return spoilt(job, bad, RUNNING)


def spoilt(job: Job, bad: str, faults: dict[tuple[str, str], tuple[int, int]]) -> Said:
    files = job.directory / "clocks"
    files.mkdir()
    for each in range(1, NODES + 1):
        (files / f"node{each}").write_bytes(bytes(32))
    job.sleep(200)
    for each in range(1, NODES + 1):
        preloaded = ("env", f"LD_PRELOAD={bad}", f"BAD_NODE_CLOCKS={files}")
        job.start(*on(each), *preloaded, job.program, "agent", str(job.directory / "run.monitor"))

    def compared(said: Said) -> bool:
        """All agents have compared all clocks, some of them several times."""
        return all_meet(said) and all(len(agent["clocks"]["distances"]) == NODES for agent in said["agents"])

    job.until(compared, patience=LONG)
    time.sleep(6.0)
    before = job.why()

    def named(said: Said) -> bool:
        return len(said["agents"]) == NODES and all(
            set(faults) <= {(remark["host"], remark["clock"]) for remark in agent["remarks"]}
            for agent in said["agents"]
        )

    for (node, clock), (ahead, gained) in faults.items():
        with (files / node).open("r+b", buffering=0) as file:
            file.seek(16 * CLOCKS.index(clock))
            file.write(struct.pack("=qq", ahead, gained))
    said = job.until(named, patience=LONG)
    text = job.text()
    # All that was sent until now is in the logs a second later.
    time.sleep(3.0)
    return {"before": remarks(before), "text": text, "after": said["after"], "remarks": remarks(said)}


def remarks(said: Said) -> Said:
    """What each agent says of clocks."""
    return {
        agent["host"]: [[remark["host"], remark["clock"], remark["what"]] for remark in agent["remarks"]]
        for agent in said["agents"]
    }


def main() -> None:
    what, program, directory, *rest = sys.argv[1:]
    job = Job(program, Path(directory))
    try:
        faults: dict[str, Callable[..., Said]] = {"dead": dead, "cut": cut, "clocks": clocks, "running": running}
        print(json.dumps(faults[what](job, *rest)))
    finally:
        job.end()


if __name__ == "__main__":
    main()
