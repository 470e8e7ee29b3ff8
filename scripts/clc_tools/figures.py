"""Numbers as text, as the pages of the documentation have them, and shares of sorted values.

Times stand in several forms because the tables need different numbers of digits; a form is named after what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

Value = TypeVar("Value")


def duration(seconds: float) -> str:
    """Any time with three digits, zeros included: 0, 1.20 ns, 12.0 us, 120 ms."""
    if seconds == 0:
        return "0"
    units = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))
    unit, name = next((entry for entry in units if seconds < 999.5 * entry[0]), units[-1])
    value = seconds / unit
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {name}"


def short_duration(seconds: float) -> str:
    """Any time with three digits, without zeros at the end: 1.2 ns, 12 us, 0.12 s is 120 ms."""
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def rounded_error(seconds: float) -> str:
    """A clock error in ns or us, with no more digits than tell something: 120 ns, 1.2 us, 12 us."""
    name, value = ("ns", seconds * 1e9) if seconds < 999.5e-9 else ("us", seconds * 1e6)
    return f"{value:.{0 if value >= 9.95 or name == 'ns' else 1}f} {name}"


def run_time(seconds: float) -> str:
    """How long a run took: in seconds from a tenth of a second on."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds:.3f} s" if seconds >= 0.1 else short_duration(seconds)


def cost(seconds: float) -> str:
    """What something takes once or a million times: hours in seconds, and no more digits than a prediction deserves."""
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.2f} us" if seconds >= 1e-7 else f"{seconds * 1e9:.1f} ns"


def size(count: float) -> str:
    """Bytes."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def mebibytes(count: float) -> str:
    return f"{count / 2**20:.0f} MiB"


def percent(value: float) -> str:
    return f"{value:.2f} %" if value < 10 else f"{value:.0f} %"


def times(factor: float) -> str:
    return f"{factor:.2f} x"


def listed(values: Iterable[object]) -> str:
    """a, b and c"""
    *most, last = map(str, values)
    return f"{', '.join(most)} and {last}" if most else last


def quantile(ordered: Sequence[Value], percentage: int) -> Value:
    """The first of sorted values that has so many percent of them before it; the last one for 100."""
    return ordered[min(len(ordered) - 1, len(ordered) * percentage // 100)]
