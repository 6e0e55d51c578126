"""How a command prints sums over the selected iterations: per step by default, with ``--total`` as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_dlprof_plugin.cli.printing import UNKNOWN, time

if TYPE_CHECKING:
    from tb_dlprof_plugin.pages.common import SelectedRange


@dataclass(frozen=True)
class Sums:
    """Divides by ``iterations``, 1 for totals. ``words`` say what the figures are, for the line above a table."""

    iterations: int
    words: str

    def time(self, total_ns: float | None) -> str:
        """A sum of durations, or "unknown"."""
        return UNKNOWN if total_ns is None else time(total_ns / self.iterations)

    def count(self, total: int | None) -> str:
        """A sum of counts: an integer where it divides, else with one decimal."""
        if total is None:
            return UNKNOWN
        whole, rest = divmod(total, self.iterations)
        if not rest:
            return str(whole)
        mean = total / self.iterations
        return "<0.1" if mean < 0.05 else f"{mean:.1f}"

    def value(self, total: float) -> float:
        """A sum in another unit."""
        return total / self.iterations


def sums_of(selected: SelectedRange, total: bool) -> Sums:
    """Per step, unless totals are wanted or no step was found: then the whole recording is one."""
    count = selected.last - selected.first + 1
    if selected.found_by == "none":
        return Sums(1, "Total of the recording: no step was found in it.")
    if total:
        return Sums(1, f"Total of {count} iterations." if count > 1 else "Total of 1 iteration.")
    return Sums(
        count, f"Per step, mean of {count} iterations; --total prints sums." if count > 1 else "Of 1 iteration."
    )


AS_THEY_ARE = Sums(1, "")
