"""Reads OTF2 archives through the text that otf2-print writes: the one reader that the tests trust.

otf2-print applies clock offsets and id mappings, so times and ids here are global ones.
"""

import re
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

EVENT = re.compile(r"^([A-Z][A-Z0-9_]*) +(\d+) +(\d+)(?:  (.*))?$")
NAME = r'"(?:[^"\\]|\\.)*"'


class Event(NamedTuple):
    """One line of otf2-print; `text` has the fields, and the attributes where the event has any."""

    kind: str
    location: int
    time: int
    text: str


class Unreadable(Exception):
    """otf2-print failed."""


def run(*arguments: str) -> Iterator[str]:
    """The lines that otf2-print writes; raises Unreadable at the end if it failed."""
    process = subprocess.Popen(
        ["otf2-print", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    )
    assert process.stdout is not None
    with process:
        yield from (line.rstrip("\n") for line in process.stdout)
    if process.returncode != 0:
        raise Unreadable(f"otf2-print {' '.join(arguments)}: exit status {process.returncode}")


def events(anchor: str) -> Iterator[Event]:
    """All events in otf2-print's order: by time, and in file order within a location.

    Snapshots, which repeat events, come in a section of their own and are left out.
    """
    pending, section = None, ""
    for line in run("--", anchor):
        if line.startswith("=== "):
            section = line
        if "Snapshots" in section:
            continue
        match = EVENT.match(line)
        if match:
            if pending:
                yield pending
            pending = Event(match[1], int(match[2]), int(match[3]), (match[4] or "").strip())
        elif pending and line.strip():
            pending = pending._replace(text=pending.text + " | " + line.strip())
    if pending:
        yield pending


def numbers(text: str) -> dict[str, str]:
    """The fields of an event or definition by name, with references reduced to their numbers.

    'Receiver: 1 ("P#1" <7>), Communicator: "world" <0>, Tag: 3' -> {Receiver: 1, Communicator: 0, Tag: 3}
    """
    fields = {}
    text = text.split(" | ")[0]  # attributes are not fields
    for part in re.split(r", (?=[A-Z][A-Za-z .#]*: )", re.sub(rf" \({NAME} <\d+>\)", "", text)):
        key, _, value = part.partition(": ")
        reference = re.fullmatch(rf"{NAME} <(\d+)>", value)
        fields[key] = reference[1] if reference else value
    return fields
