"""Which of two steps is faster: what headlines, colours, findings, counts and exit statuses all follow."""

from __future__ import annotations

from typing import Literal

FasterOrSlower = Literal["faster", "slower", "within noise", "unknown"]
"""Of a candidate against its base; "unknown" where a step is the recorded one of a single iteration."""

CANNOT_TELL: tuple[FasterOrSlower, ...] = ("within noise", "unknown")


def change_of(interval: tuple[float, float] | None) -> FasterOrSlower:
    """What the interval of a speedup says: nothing where it holds 1, or where there is none."""
    if interval is None:
        return "unknown"
    low, high = interval
    return "faster" if low > 1 else "slower" if high < 1 else "within noise"


def direction_text(change: FasterOrSlower) -> str:
    """The change as a sentence."""
    if change in CANNOT_TELL:
        return "Cannot tell which run is faster."
    return f"The candidate is {change}."
