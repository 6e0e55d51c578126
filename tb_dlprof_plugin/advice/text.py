"""Formatting that the texts of several rules use."""

from __future__ import annotations

from collections.abc import Sequence

NO_LAUNCHES = "The calls that launch work on the GPU were not recorded: how much shorter a step gets is unknown."
NOTHING_ELIGIBLE = "No kernel of the selected iterations is work for Tensor Cores."


def ms(time_ns: float, digits: int = 2) -> str:
    """ "1.25 ms"."""
    return f"{time_ns / 1e6:.{digits}f} ms"


def milliseconds(launches_ns: int) -> str:
    """ "1.25 ms", "38 us" for less than a tenth of one."""
    return ms(launches_ns) if launches_ns >= 100_000 else f"{launches_ns / 1e3:.0f} us"


def listed(names: Sequence[str], most: int = 3) -> str:
    """ "a, b, c and 4 more" of the different names, in their order."""
    different = list(dict.fromkeys(name for name in names if name))
    shown = ", ".join(different[:most])
    return f"{shown} and {len(different) - most} more" if len(different) > most else shown
