"""Markdown tables, and their places in the documentation.

What a script makes of a page stands between two comments that name it:

    <!-- costs: begin -->
    <!-- costs: end -->
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .command import complain, fail


def row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def heading(head: Sequence[str], words: int | None = None) -> str:
    """The two lines above the rows. The first `words` columns are aligned as text, the others as numbers; None: all as text."""
    words = len(head) if words is None else words
    return row(head) + "\n" + row(["---"] * words + ["---:"] * (len(head) - words))


def table(head: Sequence[str], rows: Iterable[Iterable[object]], words: int | None = None) -> str:
    return "\n".join([heading(head, words), *map(row, rows)])


def place(text: str, name: str) -> tuple[int, int]:
    """Where the text between the comments of a name begins and ends."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    start = text.find(begin)
    stop = text.find(end, start)
    if start < 0 or stop < 0:
        raise ValueError(f"no place for '{name}' ({begin.strip()} ... {end})")
    return start + len(begin), stop


def with_parts(text: str, parts: Mapping[str, str]) -> str:
    """A page in which each part stands between the comments that name it, instead of what stood there."""
    for name, part in parts.items():
        start, stop = place(text, name)
        text = text[:start] + part + "\n" + text[stop:]
    return text


@dataclass(frozen=True)
class Page:
    """A page of the documentation."""

    path: Path

    def with_parts(self, parts: Mapping[str, str]) -> str:
        try:
            return with_parts(self.path.read_text(encoding="utf-8"), parts)
        except ValueError as error:
            fail(f"{self.path.name} has {error}")

    def write(self, parts: Mapping[str, str]) -> None:
        self.path.write_text(self.with_parts(parts), encoding="utf-8")

    def has(self, parts: Mapping[str, str]) -> bool:
        return self.with_parts(parts) == self.path.read_text(encoding="utf-8")

    def update(self, parts: Mapping[str, str], *, write: bool, check: bool, advice: str) -> int:
        """Writes the parts, or compares them; the exit status. `advice` says what to do about a difference."""
        if write:
            self.write(parts)
        elif check and not self.has(parts):
            complain(advice)
            return 1
        return 0
