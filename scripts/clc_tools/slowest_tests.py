"""The tests that took longest, from the reports of cargo-nextest.

    scripts/slowest_tests JUNIT.XML...    the ten slowest of all of them, and how long all took one after the other

`make test` ends with it where cargo-nextest is installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from .command import fail, parser

SHOWN = 10


class Test(NamedTuple):
    seconds: float
    name: str


def tests(report: Path) -> list[Test]:
    """All tests of a report, with the name of the test binary in front, and that of the report where it tells something."""
    try:
        cases = ElementTree.parse(report).getroot().iter("testcase")
        return [
            Test(float(case.get("time", "0")), f"{case.get('classname')} {case.get('name')} ({report.stem})")
            for case in cases
        ]
    except (OSError, ElementTree.ParseError, ValueError) as error:
        fail(f"{report}: {error}")


def slowest(all_tests: Iterable[Test], shown: int = SHOWN) -> list[str]:
    """A line for all, and one for each of the slowest, the slowest first."""
    ordered = sorted(all_tests, reverse=True)
    first = f"{len(ordered):,} tests, {sum(test.seconds for test in ordered):.0f} s one after the other; the slowest:"
    return [first, *(f"{test.seconds:8.1f} s  {test.name}" for test in ordered[:shown])]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser(__doc__)
    options.add_argument("reports", nargs="+", type=Path, metavar="JUNIT.XML")
    found = [test for report in options.parse_args(arguments).reports for test in tests(report)]
    if not found:
        fail("the reports have no tests")
    print("\n".join(slowest(found)))
    return 0
