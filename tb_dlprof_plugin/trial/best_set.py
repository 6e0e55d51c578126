"""The best set of remedies. Gains do not add up: what gains alone may gain nothing next to another one, and what gains
nothing alone may be what another one needs, as a half precision needs the memory format channels last.

So all that gains, and all that harms nothing, is put together first, and what the set does not need is left out again,
in halves while nothing of a half is needed (after Zeller and Hildebrandt, "Simplifying and isolating failure-inducing
input", 2002): with few remedies that matter, a set of n costs some log n measurements rather than n.
"""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.model.trial_result import TriedRemedy
from tb_dlprof_plugin.trial.inside.remedy import Remedy, one_of_each_group
from tb_dlprof_plugin.trial.measuring import Measuring, name_of
from tb_dlprof_plugin.trial.statistics import WORTH
from tb_dlprof_plugin.trial.variant import Variant, VariantError
from tb_dlprof_plugin.trial.verdict import OTHER_TRAININGS

_SCREENING = 0.1
_BUDGET_USED = "The budget was used before all sets were tried: give a larger --budget."

Chunk = tuple[Remedy, ...]


def find_set(
    measuring: Measuring, gains: Sequence[Remedy], harmless: Sequence[Remedy], sets: list[TriedRemedy]
) -> TriedRemedy | None:
    """The best set of more than one remedy, measured against the unchanged script.

    Args:
        measuring: measures.
        gains: remedies that gain alone, the largest gain first.
        harmless: those that neither gain nor cost much.
        sets: the row of the set is added.

    Returns:
        Its row; None where no set is a certain gain.
    """
    search = _SetSearch(measuring, gains, harmless)
    try:
        if not search.grow():
            return None
        search.shrink()
        return search.against_baseline(sets)
    except VariantError as error:
        measuring.notes.append(f"{name_of(search.chosen)}: {error}.")
        return None
    finally:
        search.end()


class _SetSearch:
    def __init__(self, measuring: Measuring, gains: Sequence[Remedy], harmless: Sequence[Remedy]) -> None:
        self._measuring = measuring
        self._gains = one_of_each_group(gains)
        self._harmless = one_of_each_group([*self._gains, *harmless])[len(self._gains) :]
        self.chosen: list[Remedy] = self._gains[:1]
        self._process: Variant | None = None
        """Of the chosen ones."""
        self._warm = False

    def grow(self) -> bool:
        """Choose more than the best one; whether that succeeded."""
        measuring, large = self._measuring, [*self._gains, *self._harmless]
        if not self._gains or len(large) < 2:
            return False
        if measuring.bench.exclusive or not self._has_time(2):
            # There is time for one set, of which nothing can be left out: each turn of exclusive processes is a start.
            self.chosen = self._gains
            return len(self._gains) > 1 and self._has_time(1)
        if measuring.fitting is not None and measuring.fitting < 2:
            measuring.baseline.end()
        if self._take(large) or (self._harmless and len(self._gains) > 1 and self._take(self._gains)):
            return True
        # Some exclude each other: one after the other.
        for one in large[1:]:
            if not self._has_time(1):
                break
            self._take([*self.chosen, one])
        return len(self.chosen) > 1

    def shrink(self) -> None:
        """Leave out what the chosen set does not need."""
        harmless = tuple(one for one in self.chosen if one in self._harmless)
        gains = [(one,) for one in reversed(self.chosen) if one not in self._harmless]
        waiting: list[Chunk] = [*_halves(harmless), *gains]
        while waiting and len(self.chosen) > 1 and self._process is not None and self._has_time(1):
            batch = waiting[: self._room(self.chosen)]
            again, needed = self._without(batch)
            waiting = [
                *again,
                *(half for one in needed if len(one) > 1 for half in _halves(one)),
                *waiting[len(batch) :],
            ]

    def against_baseline(self, sets: list[TriedRemedy]) -> TriedRemedy | None:
        """Measure the chosen set against the unchanged script, with what is left of the budget."""
        measuring = self._measuring
        if len(self.chosen) < 2:
            return None
        row = measuring.row_of(self.chosen)
        if self._process is None:
            self._process = measuring.variant(self.chosen)
        seconds = max(measuring.left_s - 2 * measuring.start_s, measuring.least_s)
        measured = measuring.measure(row, self.chosen, seconds, measuring.baseline, self._process)
        if measured is not None:
            measuring.confirm(row, measured, self._process)
        sets.append(row)
        measuring.listener.row(row)
        return row if row.is_gain and row.verdict not in OTHER_TRAININGS else None

    def end(self) -> None:
        """End its process."""
        if self._process is not None:
            self._process.end()

    def _take(self, larger: list[Remedy]) -> bool:
        """Choose a larger set where it gains over the chosen one."""
        measuring, others = self._measuring, []
        if self._process is None:
            sets = [self.chosen, larger] if self._room(larger) > 1 else [self.chosen]
            self._process, *others = measuring.start_together(sets)
        variant = others[0] if others else measuring.variant(larger)
        try:
            if not self._warm:
                measuring.warm_up(self._process)
                self._warm = True
            found = self._gain(larger, variant)
            if found is not None and found >= WORTH:
                self._choose(larger, variant)
                return True
            return False
        finally:
            if variant is not self._process:
                variant.end()

    def _without(self, batch: Sequence[Chunk]) -> tuple[list[Chunk], list[Chunk]]:
        """Leave out of the chosen set which of these costs least, if nothing; the others that cost nothing as long as
        all others are there, and those that are needed."""
        smaller = [[one for one in self.chosen if one not in chunk] for chunk in batch]
        costs_nothing: list[tuple[float, int]] = []
        needed: list[Chunk] = []
        variants = self._measuring.start_together(smaller)
        try:
            for number, chunk in enumerate(batch):
                found = self._gain(smaller[number], variants[number]) if smaller[number] and self._has_time(0) else None
                if found is None or found < -WORTH:
                    needed.append(chunk)
                    variants[number].end()
                else:
                    costs_nothing.append((found, number))
            if not costs_nothing:
                return [], needed
            _, least = max(costs_nothing)
            self._choose(smaller[least], variants[least])
            return [batch[number] for _, number in costs_nothing if number != least], needed
        finally:
            for one in variants:
                if one is not self._process:
                    one.end()

    def _choose(self, chosen: list[Remedy], process: Variant) -> None:
        if self._process is not None:
            self._process.end()
        self.chosen, self._process = chosen, process

    def _gain(self, candidates: list[Remedy], variant: Variant) -> float | None:
        """Percent that a set gains over the chosen one, at most 0 where no gain is certain at 95 %; None where it fails
        or trains something else."""
        measuring = self._measuring
        assert self._process is not None
        row = measuring.row_of(candidates)
        found = measuring.measure(row, candidates, 1.5 * measuring.least_s, self._process, variant, _SCREENING)
        if found is None or row.verdict in OTHER_TRAININGS:
            return None
        return found.gain.percent if found.gain.low > 0 else min(found.gain.percent, 0.0)

    def _room(self, candidates: Sequence[Remedy]) -> int:
        """How many sets of these may start at the same time."""
        if any(one.measures_kernels for one in candidates):
            return 1
        return self._measuring.room(1)

    def _has_time(self, starts: int) -> bool:
        """Whether so many more sets can be started and measured, and the final one measured."""
        measuring = self._measuring
        enough = measuring.left_s >= starts * measuring.start_s + (starts + 1) * measuring.least_s
        if not enough and _BUDGET_USED not in measuring.notes:
            measuring.notes.append(_BUDGET_USED)
        return enough


def _halves(chunk: Chunk) -> list[Chunk]:
    middle = (len(chunk) + 1) // 2
    return [half for half in (chunk[:middle], chunk[middle:]) if half]
