"""A share of which a part is unknown, as the range in which it lies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareRange:
    """Percent: ``low`` if none of the unknown part counts, ``high`` if all of it does."""

    low: float
    high: float


TELLS_NOTHING_PERCENT = 90.0
"""Of the whole, unknown, from which a range is none. Ours: "3 to 98 %" says no more than that it is unknown."""


def share_range(counted_ns: float, unknown_ns: float, whole_ns: float) -> ShareRange | None:
    """Where the share of ``counted_ns`` lies; None where there is nothing, or too little is known of it."""
    if whole_ns <= 0 or 100.0 * unknown_ns >= TELLS_NOTHING_PERCENT * whole_ns:
        return None
    return ShareRange(100.0 * counted_ns / whole_ns, 100.0 * (counted_ns + unknown_ns) / whole_ns)
