"""One compared figure: ours, a peer's, and why they differ if they do.

An explanation is never taken on trust: a row that names a reason also gives what our data yields by the peer's rule
(``by_their_rule``), and only where that equals the peer's figure is the difference explained.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

TOLERANCE = 1e-6
"""Relative; what TraceLens itself allows in its tests."""

_PER_REASON = 3
"""So many explained rows are shown of each reason, those that differ most."""
ROUNDING = "its times are rounded floats"
EQUAL, EXPLAINED, DIFFERS = "equal", "explained", "DIFFERS"


@dataclass(frozen=True, slots=True)
class Row:
    """A quantity; None stands for "not there". ``rounding`` is the absolute error that the peer's own floats carry."""

    quantity: str
    ours: float | None
    theirs: float | None
    reason: str = ""
    by_their_rule: float | None = None
    rounding: float = 0.0

    @property
    def verdict(self) -> str:
        """Equal, explained (by a rule that yields the peer's figure, or by its rounding), or different."""
        if same(self.ours, self.theirs):
            return EQUAL
        if self.reason and same(self.by_their_rule, self.theirs, self.rounding):
            return EXPLAINED
        return EXPLAINED if self.rounding and same(self.ours, self.theirs, self.rounding) else DIFFERS

    @property
    def why(self) -> str:
        """What explains the difference, "" where there is none."""
        if self.verdict != EXPLAINED:
            return ""
        return self.reason if not same(self.ours, self.theirs, self.rounding) else ROUNDING


def same(ours: float | None, theirs: float | None, rounding: float = 0.0) -> bool:
    """Whether two figures are the same number; both absent counts as the same."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    return abs(ours - theirs) <= max(TOLERANCE * abs(theirs), rounding)


def table(title: str, rows: Iterable[Row], *, everything: bool = False) -> list[str]:
    """The rows as text: equal ones are counted, explained ones stand by reason, different ones each.

    Args:
        title: of the table.
        rows: its rows.
        everything: show every row.
    """
    rows = list(rows)
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in (EQUAL, EXPLAINED, DIFFERS)}
    lines = [f"{title}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items())]
    shown, left_out = [], []
    explained: dict[str, list[Row]] = {}
    for row in rows:
        if everything or row.verdict == DIFFERS:
            shown.append(row)
        elif row.verdict == EXPLAINED:
            explained.setdefault(row.why, []).append(row)
    for why, group in explained.items():
        group.sort(key=lambda row: -abs((row.ours or 0.0) - (row.theirs or 0.0)))
        shown += group[:_PER_REASON]
        if len(group) > _PER_REASON:
            left_out.append(f"  and {len(group) - _PER_REASON} rows that differ by less, explained: {why}")
    if shown:
        lines.append(f"  {'quantity':64}{'ours':>16}{'theirs':>16}{'difference':>14}  verdict")
    for row in shown:
        difference = None if row.ours is None or row.theirs is None else row.ours - row.theirs
        lines.append(
            f"  {shorten(row.quantity):64}{number(row.ours):>16}{number(row.theirs):>16}{number(difference):>14}"
            f"  {row.verdict}{': ' + row.why if row.why else ''}"
        )
    return lines + left_out


def number(value: float | None) -> str:
    """A figure with the digits that matter."""
    if value is None:
        return "absent"
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.7g}"


def shorten(text: str, width: int = 62) -> str:
    """A text of one line and at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."
