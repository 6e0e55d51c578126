"""Sum, number, minimum and maximum of a time over instances: the columns Total, Avg., Min and Max of DLProf's
reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Ints


@dataclass(frozen=True, slots=True)
class Figure:
    """A time per row (ns): its sum, the number of instances for which it is known, the least and the most of one.

    ``total`` may be more than the instances have: the rest of a call that began before the selected iterations has no
    instance in them. ``low`` and ``high`` are undefined where ``count`` is 0.
    """

    total: Ints
    count: Ints
    low: Ints
    high: Ints

    def of(self, row: int) -> tuple[int | None, int | None, int | None, int | None]:
        """Total, average, minimum and maximum of a row; None where nothing is known."""
        total, count = int(self.total[row]), int(self.count[row])
        if not count:
            return (total or None, None, None, None)
        return (total, round(total / count), int(self.low[row]), int(self.high[row]))

    def ordered(self, rows: Ints) -> Figure:
        """The rows in another order."""
        return Figure(self.total[rows], self.count[rows], self.low[rows], self.high[rows])

    def merged(self, into: Ints, rows: int) -> Figure:
        """The figure of ``rows`` rows that each hold the instances of several; ``into`` has the new row of each."""
        low = np.full(rows, np.iinfo(np.int64).max, dtype=np.int64)
        high = np.zeros(rows, dtype=np.int64)
        has = self.count > 0
        np.minimum.at(low, into[has], self.low[has])
        np.maximum.at(high, into[has], self.high[has])
        return Figure(sums(into, self.total, rows), sums(into, self.count, rows), low, high)


def figure(row: Ints, time_ns: Ints, rows: int) -> Figure:
    """The figure of ``rows`` rows from the row and time of each instance."""
    low = np.full(rows, np.iinfo(np.int64).max, dtype=np.int64)
    high = np.zeros(rows, dtype=np.int64)
    np.minimum.at(low, row, time_ns)
    np.maximum.at(high, row, time_ns)
    return Figure(sums(row, time_ns, rows), np.bincount(row, minlength=rows).astype(np.int64), low, high)


def sums(row: Ints, values: Ints, rows: int) -> Ints:
    """Sum of the values of each row."""
    # bincount sums in float64, which is exact below 2**53 ns, 104 days.
    return np.bincount(row, weights=values, minlength=rows).astype(np.int64)
