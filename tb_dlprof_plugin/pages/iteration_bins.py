"""Recorded iterations as bars: one each, or, where there are too many for a screen, the mean of several in a row."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tb_dlprof_plugin.profile_view import ProfileView, Selection

MOST_BARS = 1_000
"""About the columns of pixels that a chart has; bars of 10,000 iterations would not fit into a response of 1 MB."""


class IterationBar(msgspec.Struct, frozen=True):
    """One bar: the iterations ``index`` to ``last``, both included; the same where it stands for one.

    ``duration_ns`` and ``category_ns`` are means over them, ``shortest_ns`` and ``longest_ns`` of single iterations.
    ``category_ns`` is in the order of the page's categories and sums to the duration; None for a category that was not
    recorded. ``selected`` says whether any of them is.
    """

    index: int
    last: int
    number: int
    last_number: int
    start_ns: int
    duration_ns: int
    shortest_ns: int
    longest_ns: int
    category_ns: list[int | None]
    selected: bool


def bar_spans(count: int) -> list[tuple[int, int]]:
    """First and last index of the iterations of each bar: equally many in each but the last."""
    size = -(-count // MOST_BARS) or 1
    return [(first, min(first + size, count) - 1) for first in range(0, count, size)]


def bars_note(count: int) -> str:
    """What a bar represents if it is not one iteration; else empty."""
    spans = bar_spans(count)
    if len(spans) == count:
        return ""
    size = spans[0][1] + 1
    return (
        f"{count:,} iterations in {len(spans):,} bars: each is the mean of {size} in a row, the mark above it the "
        "longest of them."
    )


def iteration_bar(
    view: ProfileView,
    selection: Selection,
    span: tuple[int, int],
    category_sums_ns: Sequence[int | None],
    takes_rounding: int = -1,
) -> IterationBar:
    """The bar of some iterations from their sums by category; a known category takes the rounding."""
    iterations = view.profile.iterations
    first, last = span
    durations = iterations.duration_ns[first : last + 1]
    count = last - first + 1
    means = [None if value is None else value // count for value in category_sums_ns]
    known = [value for value in category_sums_ns if value is not None]
    rounded = means[takes_rounding]
    if rounded is not None:
        means[takes_rounding] = rounded + sum(known) // count - sum(value // count for value in known)
    return IterationBar(
        index=first,
        last=last,
        number=int(iterations.number[first]),
        last_number=int(iterations.number[last]),
        start_ns=int(iterations.start_ns[first]),
        duration_ns=int(durations.sum()) // count,
        shortest_ns=int(durations.min()),
        longest_ns=int(durations.max()),
        category_ns=means,
        selected=first <= selection.last and selection.first <= last,
    )
