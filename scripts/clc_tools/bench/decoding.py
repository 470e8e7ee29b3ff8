"""Part of scripts/bench: decoding every event of a trace with all its fields, by the crate clc-otf2, by libotf2, and by otf2-print."""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from .. import reports
from ..command import fail
from ..reports import Json
from ..runner import ROOT, output
from .session import Figures, Job, Session

READER = Path(__file__).with_name("libotf2_events.c")
# The arguments that every callback has before the fields of its record.
COMMON = 5
CALLBACK = re.compile(
    r"typedef OTF2_CallbackCode\s*\(\s*\*\s*OTF2_EvtReaderCallback_(\w+)\s*\)\s*\((.*?)\)\s*;", re.DOTALL
)
EVENT_LINE = re.compile(r"([A-Z][A-Z_]*) +\d+ +\d+( |$)")


def callbacks(headers: str) -> str:
    """C: a callback for each record of the preprocessed headers, which counts it and takes all its fields, and a function that registers all."""
    made: list[tuple[str, str]] = []
    for name, arguments in CALLBACK.findall(headers):
        declared = [" ".join(argument.split()) for argument in arguments.split(",")]
        taken = []
        for argument in declared[COMMON:]:
            field = re.search(r"(\w+)$", argument)
            if not field:
                raise ValueError(f"argument of {name} without a name: {argument}")
            value = field[1]
            # Of lists and of values of several types the first byte is enough: the reader has decoded all of them.
            if "*" in argument:
                taken.append(f"({value} != NULL ? *(const unsigned char *){value} : 0)")
            elif argument.startswith("OTF2_AttributeValue"):
                taken.append(f"{value}.uint64")
            else:
                taken.append(f"(uint64_t){value}")
        # In the order of `COMMON`, time is the second.
        time = declared[1].split()[-1]
        body = f"event_counts[{len(made)}]++; sum_of_times += {time}; taken = {' + '.join(taken) or '0'};"
        made.append(
            (
                name,
                f"static OTF2_CallbackCode on_{name}({', '.join(declared)}) {{ {body} return OTF2_CALLBACK_SUCCESS; }}",
            )
        )
    if not made:
        raise ValueError("no callbacks in the headers of OTF2")
    names = ", ".join(f'"{name}"' for name, _ in made)
    registered = "\n".join(f"    OTF2_EvtReaderCallbacks_Set{name}Callback(callbacks, on_{name});" for name, _ in made)
    return "\n".join(
        (
            f"static uint64_t event_counts[{len(made)}];",
            f"static const char *const event_names[] = {{{names}}};",
            *(function for _, function in made),
            f"static void register_callbacks(OTF2_EvtReaderCallbacks *callbacks) {{\n{registered}\n}}",
            "",
        )
    )


def compiled(work: Path) -> Path | None:
    """The program for libotf2, or nothing where its headers are not installed."""
    if not shutil.which("otf2-config") or not shutil.which("cc"):
        return None
    flags = {name: output(["otf2-config", f"--{name}"]).split() for name in ("cflags", "ldflags", "libs")}
    include = work / "include.c"
    include.write_text("#include <otf2/otf2.h>\n")
    (work / "callbacks.h").write_text(callbacks(output(["cc", "-E", "-P", *flags["cflags"], include])))
    program = work / "libotf2_events"
    output(
        ["cc", "-O2", "-Wall", f"-I{work}", *flags["cflags"], READER, "-o", program, *flags["ldflags"], *flags["libs"]]
    )
    return program


def example(name: str) -> str:
    """Builds an example of the crate, if need be; the executable."""
    build = ["cargo", "build", "--release", "--locked", "-p", "clc-otf2", "--example", name]
    built = subprocess.run(
        [*build, "--message-format=json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    artifacts: list[Json] = [reports.parse(line) for line in built.stdout.splitlines() if line.startswith("{")]
    return str(next(a["executable"] for a in artifacts if a.get("executable") and a["target"]["name"] == name))


def counted(said: str) -> dict[str, int]:
    """What both readers say: records by name, and the sum of all times."""
    return {name: int(count) for name, count in map(str.split, said.splitlines())}


def printed(anchor: Path) -> dict[str, int]:
    """Events by the name that otf2-print gives them."""
    found: collections.Counter[str] = collections.Counter()
    with subprocess.Popen(["otf2-print", anchor], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        for line in child.stdout:
            if event := EVENT_LINE.match(line):
                found[event[1]] += 1
    if child.returncode != 0:
        fail(f"otf2-print {anchor}: exit status {child.returncode}")
    return dict(found)


def in_capitals(record: str) -> str:
    """The name of a record as otf2-print has it: MpiIsendComplete is MPI_ISEND_COMPLETE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", record).upper()


def same_events(found: Mapping[str, Mapping[str, int]]) -> int:
    """Fails unless all have counted the same events of each record, and both readers the same times; their number."""
    ours = found["clc-otf2"]
    number = sum(count for name, count in ours.items() if name != "times")
    if found.get("libotf2", ours) != ours:
        fail(f"libotf2 and clc-otf2 read different events: {found}")
    capitals = {in_capitals(name): count for name, count in ours.items() if name != "times"}
    if found.get("otf2-print", capitals) != capitals:
        fail(f"otf2-print and clc-otf2 read different events: {found}")
    return number


def decoding(bench: Session) -> Figures:
    """One thread each, in turn. Without clock offsets in the trace, since libotf2 applies them to the times that it hands out."""
    events = "50k" if bench.quick else "200k"
    trace = bench.trace("decoding", ranks=8, events=events, pattern="solver", ranks_per_node=1, measurements=0)
    anchor = next(trace.glob("*.otf2"))
    commands: dict[str, list[object]] = {"clc-otf2": [example("decode_events"), trace]}
    said = {"clc-otf2": counted(output(commands["clc-otf2"]))}
    if program := compiled(bench.work):
        commands["libotf2"] = [program, anchor]
        said["libotf2"] = counted(output(commands["libotf2"]))
    else:
        bench.row("decoding: libotf2 is not measured", "not installed", "headers: scripts/setup.sh")
    if shutil.which("otf2-print"):
        commands["otf2-print"] = [shutil.which("otf2-print"), anchor]
        said["otf2-print"] = printed(anchor)
    else:
        bench.row("decoding: otf2-print is not measured", "not installed", "scripts/setup.sh")
    number = same_events(said)

    def job(command: list[object]) -> Job:
        return lambda: bench.run(command)

    jobs = {name: job(command) for name, command in commands.items()}
    # They are short.
    runs = bench.interleaved(jobs, 3 * bench.rounds)
    for name, run in runs.items():
        bench.row(
            f"all fields of {number:,} events: {name}",
            f"{run['wall']:.3f} s",
            f"{number / run['wall'] / 1e6:.1f} million/s",
        )
    bench.drop(trace)
    return {"events": number, "processes": 8, "records": said["clc-otf2"], "runs": runs}
