"""Which set of remedies is best, within a budget of time.

What is likely to gain is put together at once and measured. Then all sets that differ from it by one remedy, without
it, with another one or with another one of its kind, race against it within the running script: a quad of each in
turns, and what is slower is soon out. What is better is put together, and has to hold a second time. The set is then
measured in fresh processes against the unchanged script; time for that is kept. Remedies alone come last.

Gains do not add up: what gains alone may gain nothing next to another one, and what gains nothing alone may be what
another one needs, as a half precision needs the memory format channels last.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.metrics.loader.forecast import LoaderForecast
from tb_dlprof_plugin.model.trial_result import BUDGET_USED, OTHER_TRAININGS, BestSet, TriedRemedy
from tb_dlprof_plugin.trial.confirming import MEASURED, Confirming
from tb_dlprof_plugin.trial.experiment import LOOK
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy, environment_of, one_of_each_group
from tb_dlprof_plugin.trial.loading import workers_needed
from tb_dlprof_plugin.trial.racing import ABOUT, SLOWER, Change, Chunk, names_of
from tb_dlprof_plugin.trial.variant import VariantError

_FIRST = 0.5
"""Share of a gain that half of its interval may be, while it is only to be seen whether the first set gains."""
_RACE = 0.6
"""Of the time before the confirmation, for one race: what is put together after it has to hold."""
_WORTH_SPARING = 1.0
"""Percent of the step that page faults or the garbage collector take from which on sparing them is likely to gain: a
frozen heap alone makes full collections more frequent."""
_LIKELY = 5.0
"""Percent above which all of an interval lies that says what is best so far, where nothing is certain."""
_AT_ONCE = 3
"""Remedies that are measured alone before it is seen again whether a process has started."""
_CPUS_IN_BACKGROUND = 8
"""From which on a process may compile while sets are compared on a GPU. Steps on the CPU need all of them: next to a
compilation one thread seemed to gain 94 % where it costs 62 (two CPUs, torch 2.13)."""
_WAITED = 0.25
"""Of the budget, that a start may take for which a race on the CPU waits."""
_COMPILES_S = 30.0
"""That a compilation in the running process may take, with what is compared then: 28 and 31 s for two small models on
two CPUs (torch 2.13)."""
_UNLIKELY = 3.0
"""Times that, for what is not expected to gain: it may try many kernels."""
_PACED_BY_GPU = 50.0
"""Percent that shorter kernels gain on a GPU alone that does not wait for the CPU."""
_MUCH_PADDING = 10.0
"""Percent of the places of sequences from which on packing is worth a sentence."""
_PADDING = (
    "{:.0f} % of the places in its batches are padding: batches of sequences that are about as long, or sequences "
    "packed one behind the other, compute less. It is not tried, as it is another order of the data."
)
_WITHOUT_IT = "Other remedies are as fast without it."
_NO_MORE = "Other remedies are no faster with it."

_WORKERS_GROUP, _FEWEST_LAUNCHES = "loader_workers", "compile_reduce_overhead"
_MEMORY, _GARBAGE = "host_memory_kept", "frozen_garbage"
_WHOLE, _BLOCKS, _TF32, _PRECISION = "compile", "compile_blocks", "tf32", "precision"
_LONGER = 1.3
"""Times the start of a process that compiles, for the start of one that compiles something like it."""


@dataclass
class Search(Confirming):
    """One trial of a script.

    Attributes:
        expected: by name, percent that a remedy is expected to gain; below 0 it is not put into the first set.
        of_loader: what an earlier recording says about numbers of workers; None without one.
    """

    expected: dict[str, float] = field(default_factory=dict)
    of_loader: LoaderForecast | None = None
    _waits_for_cpu: bool = False
    """Whether what makes kernels shorter gained nothing."""
    _first: list[Remedy] = field(default_factory=list)
    """What is likely to gain and works together, whether it gained or not."""
    _as_fast_without: set[str] = field(default_factory=set)
    """Names of remedies without which a set was about as fast."""
    _compiled: list[Remedy] = field(default_factory=list)
    """The best set that started in a process of its own while others were compared, with what it gains."""
    _compiled_percent: float = -math.inf
    _elsewhere: list[frozenset[str]] = field(default_factory=list)
    """All of these sets."""

    def run(self, candidates: Sequence[Remedy], expected: Mapping[str, float], first: Sequence[str] = ()) -> BestSet:
        """Find the best set, then measure remedies alone while the budget lasts; what is best.

        Args:
            candidates: remedies that may be tried.
            expected: by name, percent of the step's time that one is expected to gain.
            first: names of a set that was best before, with which the search begins.

        Raises:
            VariantError: the unchanged script fails.
        """
        self.expected = {**expected, **self._workers(candidates)}
        if self.host is not None and self.laboratory is not None:
            for name, percent in ((_MEMORY, self.page_faults_percent()), (_GARBAGE, self.collecting_percent())):
                self.expected[name] = percent if percent > _WORTH_SPARING else -1.0
            padding = self.padding_percent()
            if padding > _MUCH_PADDING:
                self.notes.append(_PADDING.format(padding))
        known = {row.remedy for row in self.rows if row.no_effect}
        ordered = sorted((one for one in candidates if one.name not in known), key=lambda one: -self._expects(one))
        likely = [one for one in ordered if one.name in first] if first else self._likely(ordered)
        self.kept_s = self.confirmation_s()
        try:
            if self.host is None and self.laboratory is not None:
                # Ranks are processes of their own, and so is the yardstick.
                self.listener.phase("The unchanged script with another seed")
                other_seed = self.fresh_baseline()
                try:
                    other_seed.launch(self.start_timeout_s)
                    self.yardstick_of(other_seed)
                finally:
                    other_seed.end()
            self._choose_first([one for one in likely if self._is_here(one)], ordered)
            if self.on_gpu:
                self.start_fresh()
            elif self.fresh_s() <= _WAITED * self.budget_s and self.start_fresh():
                self.wait_for_unchanged()
            self._start_elsewhere(likely, ordered)
            self._improve(ordered)
            if self.chosen and self.row_for(self.chosen).gain_percent is None and self.left_s > self.look_s:
                # It must not be lost where no fresh process comes in time.
                self.measure_set(self.chosen)
            self._alone_meanwhile(ordered)
            self.confirm_chosen([one for one in likely if not self._is_here(one)])
            self.forget_larger()
            self.kept_s = MEASURED * self.least_s
            while self._next_elsewhere(ordered):
                self._alone_meanwhile(ordered)
            self._alone(ordered)
        finally:
            self.end_fresh()
            for one in ordered:
                row = self.row_for([one])
                if row.gain_percent is None and not (row.no_effect or row.error or row.stopped or row.verdict):
                    row.not_tried = BUDGET_USED
            self.rows.sort(key=by_gain)
        return self.best()

    def best(self) -> BestSet:
        """The largest certain gain so far that trains the same; else the one that is likely."""
        found = [
            row
            for row in (*self.rows, *self.sets)
            if row.verdict not in OTHER_TRAININGS
            and row.samples == 1
            and (self._is_of_processes(row) or not self._unsound & row.names)
            and (row.is_gain or (row.quads > 1 and (row.low_percent or 0.0) > _LIKELY))
        ]
        found = [row for row in found if row.is_gain] or found
        if not found:
            return BestSet()
        row = max(found, key=lambda one: one.gain_percent or 0.0)
        sure = self._confirmed
        if sure in found and (row.low_percent or 0.0) <= (sure.gain_percent or 0.0):
            # Where no other set is certainly better, the one that was measured in fresh processes.
            row = sure
        return BestSet(
            remedies=row.remedy.split("+"),
            gain_percent=row.gain_percent,
            low_percent=row.low_percent,
            high_percent=row.high_percent,
            verdict=row.verdict,
            verdict_text=row.verdict_text,
            memory_bytes=row.memory_bytes,
            confirmed=self._is_of_processes(row) or self.laboratory is None,
        )

    def _is_of_processes(self, row: TriedRemedy) -> bool:
        return any(row is one for one in self._of_processes)

    def _workers(self, candidates: Sequence[Remedy]) -> dict[str, float]:
        """What remedies of the number of DataLoader workers are expected to gain: only the one that is needed is
        tried."""
        of_workers = [one for one in candidates if one.group == _WORKERS_GROUP]
        if self.host is None or not of_workers:
            return {}
        loading = self.loading()
        cpu_count = self.ready[0].cpu_count if self.ready else os.cpu_count() or 1
        counts = [int(one.name.rpartition("_")[2]) for one in of_workers]
        needed = None if loading is None else workers_needed(loading, cpu_count, counts, self.of_loader)
        if loading is None:
            why = "The script makes no DataLoader."
        elif needed is None:
            why = f"A step waits {1e3 * loading.wait_s:.2g} of {1e3 * loading.step_s:.2g} ms for its batch."
        else:
            why = f"By the loader's own times {needed[0]} are needed."
        for one in of_workers:
            if needed is None or one.name != f"{_WORKERS_GROUP}_{needed[0]}":
                self.note(one, no_effect=why)
            else:
                self.forecasts = {**self.forecasts, one.name: needed[1]}
        return {} if needed is None else {f"{_WORKERS_GROUP}_{needed[0]}": needed[1]}

    def _expects(self, one: Remedy) -> float:
        return self.expected.get(one.name, one.usual_percent)

    def _may_gain(self, one: Remedy) -> bool:
        return self._expects(one) > 0 and one.samples == 1 and one.changes is not Changes.TRAINING

    def _likely(self, ordered: Sequence[Remedy]) -> list[Remedy]:
        """What is put together first."""
        return one_of_each_group(filter(self._may_gain, ordered))

    def _is_here(self, one: Remedy) -> bool:
        """Whether it is in the first set: what compiles is not where a start is slow, but in a process of its own."""
        if self.host is None:
            return True
        return self.switches([one]) and not (one.compiles and self.laboratory is not None)

    def _start_elsewhere(self, likely: Sequence[Remedy], ordered: Sequence[Remedy]) -> None:
        """The chosen set, with what is likely to gain and not switched, starts in a process of its own while sets are
        compared, where CPUs are free: it may compile for long."""
        others = [one for one in likely if not self._is_here(one)]
        if self._waits_for_cpu:
            others = [*(one for one in ordered if one.name == _FEWEST_LAUNCHES), *others]
        if others and self.on_gpu and self.ready[0].cpu_count >= _CPUS_IN_BACKGROUND:
            found = one_of_each_group([*others, *self.chosen])
            self.start_fresh([*(one for one in found if one not in others), *(one for one in found if one in others)])

    def _next_elsewhere(self, ordered: Sequence[Remedy]) -> bool:
        """Measure the set that has started in a process of its own, and start the next one that compiles like the best
        of them, or in more precision where it trains otherwise, if there is time for one that takes about as long;
        whether one is on its way."""
        row = self.early_row if self._early is None else self.measure_early()
        if row is None or row.start_s is None:
            return False
        self._elsewhere.append(names_of(self._early_set))
        if row.verdict in OTHER_TRAININGS:
            others: Iterable[list[Remedy]] = [self._without_half(self._early_set, ordered)]
        elif row.gain_percent is None:
            return False
        else:
            if row.gain_percent > self._compiled_percent:
                self._compiled = [one for one in self._early_set if one.name in row.names]
                self._compiled_percent = row.gain_percent
            others = self._like_compiled(ordered)
        likely = next((one for one in others if names_of(one) not in self._elsewhere), [])
        enough = self.left_s - self.kept_s > _LONGER * row.start_s
        return bool(likely) and enough and self.start_fresh(likely)

    def _like_compiled(self, ordered: Sequence[Remedy]) -> Iterator[list[Remedy]]:
        """Like the best set that was compiled: the model in place of its blocks. Where compiling gains: with shorter
        kernels, if the CPU set the pace before; another precision, if both were as fast without it; what was found
        since; what compiles otherwise."""
        best, others = self._compiled, [one for one in ordered if one.compiles and self._may_gain(one)]
        kinds = [one for one in best if one.compiles]
        if any(one.name == _BLOCKS for one in kinds):
            yield from (Change(added=(one,)).of(best) for one in others if one.name == _WHOLE)
        found_percent = (self.row_for(self.chosen).gain_percent or 0.0) if self.chosen else 0.0
        if not kinds or self._compiled_percent <= found_percent:
            return
        if self._waits_for_cpu and names_of(self._first) - names_of(best):
            yield one_of_each_group([*best, *self._first])
        if any(one.group == _PRECISION and one.name in self._as_fast_without for one in best):
            yield self._without_half(best, ordered)
        if names_of(self.chosen) - names_of(best):
            yield one_of_each_group([*kinds, *self.chosen])
        yield from (Change(added=(one,)).of(best) for one in others)

    def _without_half(self, base: Sequence[Remedy], ordered: Sequence[Remedy]) -> list[Remedy]:
        """With TF32 in the place of a half precision; the same set where it has none."""
        half = tuple(one for one in base if one.group == _PRECISION)
        tf32 = tuple(one for one in ordered if one.name == _TF32 and one not in base and self._may_gain(one))
        return Change(out=half, added=tf32 if half else ()).of(base)

    # --- sets in the running process

    def _together(self, base: list[Remedy], chunk: Chunk) -> list[Remedy]:
        """The base with what of the chunk works and trains the same; halves of it where all of it does not."""
        if not chunk or self.left_s < self.kept_s:
            return base
        larger = [*base, *chunk]
        row, variant = self.new_row(larger), self.variant(larger)
        ready = self.checked(row, larger, variant)
        if ready is None or row.verdict in OTHER_TRAININGS or self.bench.exclusive:
            variant.end()
        else:
            self.keep_idle([one for one in larger if one.name not in ready.no_effect], variant)
        if ready is not None and self.is_slow(ready):
            if len(chunk) == 1:
                self.note(chunk[0], stopped=SLOWER)
                return base
        elif ready is not None and row.verdict not in OTHER_TRAININGS:
            for one in larger:
                if one.name in ready.no_effect:
                    self.note(one, no_effect=ready.no_effect[one.name])
            return [one for one in larger if one.name not in ready.no_effect]
        if row.no_effect:
            for one in chunk:
                self.note(one, no_effect=row.no_effect if len(chunk) == 1 else "It changes nothing here.")
            return base
        if row.not_tried:
            return base
        if len(chunk) == 1:
            row.remedy = chunk[0].name
            self.note(chunk[0], error=row.error, verdict=row.verdict, verdict_text=row.verdict_text)
            return base
        first, second = _halves(chunk)
        return self._together(self._together(base, first), second)

    def _choose_first(self, likely: Sequence[Remedy], ordered: Sequence[Remedy]) -> None:
        """Choose what is likely to gain; where the GPU may wait for the CPU, what spares the CPU if that gains more."""
        sparing = one_of_each_group(
            one for one in ordered if self._may_gain(one) and self._is_here(one) and not one.of_kernels
        )
        best: list[Remedy] = []
        gained = 0.0
        for first in (likely, sparing) if self.on_gpu else (likely,):
            chosen = self._together([], tuple(first))
            self._first = self._first or chosen
            if not chosen or names_of(chosen) == names_of(best):
                continue
            row = self.row_for(chosen)
            if row.gain_percent is None:
                row = self.measure_set(chosen, share=_FIRST)
            if row.gain_percent is None:
                # There was no time for it.
                self.chosen = chosen
                return
            if row.gain_percent > gained:
                best, gained, self._pace_ms = chosen, row.gain_percent, row.after_ms
            if gained > _PACED_BY_GPU:
                break
        self.chosen = best
        self._waits_for_cpu = not best or not any(one.of_kernels for one in best)

    def _improve(self, ordered: Sequence[Remedy]) -> None:
        """Leave out of the chosen set what it does not need, and add, or put in the place of another one of its group,
        what makes it better."""
        seen = {names_of(self.chosen)}
        while self._has_time():
            changes = next(
                (
                    new
                    for some in self._changes(ordered)
                    if (new := [one for one in some if self._set(one) not in seen])
                ),
                [],
            )
            gains = self.raced(self.chosen, changes, _RACE * (self.left_s - self.kept_s))
            if not gains:
                return
            seen |= {self._set(one) for one in gains}
            better = []
            for one, found in gains.items():
                if found is not None and abs(found.percent) < ABOUT:
                    self._as_fast_without |= names_of(one.out)
                if one.is_better(found) and (one.out or (found is not None and found.low > 0)):
                    better.append(one)
                elif found is not None and one.added:
                    self.note(one.added[0], stopped=_NO_MORE)
            # The best one last: it takes the place of others of its group.
            better.sort(key=lambda one: gains[one].percent)  # type: ignore[union-attr]
            if better and not self._takes(better) and len(better) > 1:
                self._takes(better[-1:])
            if self.clock() >= self._due_s:
                self.wait_for_unchanged()
            if self._early is not None and not self._early.starts_still and self._has_time():
                self._next_elsewhere(ordered)

    def _set(self, change: Change) -> frozenset[str]:
        return names_of(change.of(self.chosen))

    def _changes(self, ordered: Sequence[Remedy]) -> Iterator[list[Change]]:
        """Those of the chosen set by one remedy: what is likely to gain and what may be left out; then the others."""
        done = {row.remedy for row in self.rows if row.no_effect or row.error or row.verdict in OTHER_TRAININGS}
        done |= {row.remedy for row in self.rows if row.stopped in (_WITHOUT_IT, SLOWER, _NO_MORE)}
        done |= {one.name for one in self.chosen}
        others = [
            one
            for one in ordered
            if one.name not in done
            and one.samples == 1
            and one.changes is not Changes.TRAINING
            and self.switches([one])
        ]
        compiling = [one for one in others if one.compiles and self._can_compile(one)]
        likely = [one for one in others if self._expects(one) >= 0 and not one.compiles]
        less = sorted(self.chosen, key=self._expects) if len(self.chosen) > 1 else []
        yield [*(Change(added=(one,)) for one in likely), *(Change(out=(one,)) for one in less)]
        # Its first steps take long: they would keep the others from the race.
        yield [Change(added=(one,)) for one in compiling[:1] if self._may_gain(one)]
        yield [Change(added=(one,)) for one in others if one not in likely and not one.compiles]
        yield [Change(added=(one,)) for one in compiling[:1]]

    def _can_compile(self, one: Remedy) -> bool:
        """Whether there is time for a compilation in the running process, and none in a process of its own."""
        least_s = _COMPILES_S if self._may_gain(one) else _UNLIKELY * _COMPILES_S
        return self._early is None and self.left_s - self.kept_s > least_s

    def _takes(self, changes: Sequence[Change]) -> bool:
        """Choose the set with these changes where it holds a second time that they make it better."""
        added = one_of_each_group(one for change in reversed(changes) for one in change.added)
        change = Change(tuple(one for change in changes for one in change.out), tuple(added))
        larger = change.of(self.chosen)
        if not larger or not self._has_time():
            return False
        if not change.is_better(self.raced(self.chosen, [change], LOOK * self.quad_s(self.chosen)).get(change)):
            return False
        for one in change.out:
            self.note(one, stopped=_WITHOUT_IT)
        self.chosen = larger
        return True

    def _has_time(self) -> bool:
        """Whether another set can be compared before the confirmation."""
        return self.left_s - self.kept_s > 1.3 * LOOK * self.quad_s(self.chosen)

    # --- remedies alone

    def _alone_meanwhile(self, ordered: Sequence[Remedy]) -> None:
        """While a process with the likely set starts: what gains nothing is known then; the rest comes later."""
        here = [one for one in ordered if not (one.compiles or self._is_known(self.row_for([one])))]
        here = [one for one in here if self.switches([one])]
        while here and self._early is not None and self._early.starts_still and self._has_time():
            some, here = here[:_AT_ONCE], here[_AT_ONCE:]
            self.raced([], [Change(added=(one,)) for one in some], self.left_s - self.kept_s)

    def _alone(self, ordered: Sequence[Remedy]) -> None:
        """Each against the unchanged script, while the budget lasts."""
        waiting = [one for one in ordered if not self._is_known(self.row_for([one]))]
        here = [one for one in waiting if self.switches([one])]
        shortly = [Change(added=(one,)) for one in here if not one.compiles]
        if shortly and self.left_s > self.look_s:
            self.raced([], shortly, self.left_s)
        self.kept_s = 0.0
        for one in here:
            if one.compiles and self._can_compile(one):
                self.raced([], [Change(added=(one,))], self.left_s)
        for one in waiting if self.laboratory is not None else ():
            row = self.row_for([one])
            if self.switches([one]) or self.left_s < 1.1 * (self.fresh_s(environment_of([one])) + self.least_s):
                continue
            row.verdict, row.stopped = None, ""
            variant = self.fresh([one])
            try:
                unchanged = self.unchanged_script()
                measured = self.measure(row, [one], self.least_s, unchanged, variant)
                self._of_processes.append(row)
                if measured is not None and row.is_gain:
                    self.confirm(row, measured, unchanged, variant)
            except VariantError as error:
                row.error = str(error)
            finally:
                variant.end()
            self.listener.row(row)

    def _is_known(self, row: TriedRemedy) -> bool:
        return row.gain_percent is not None or bool(row.no_effect or row.error) or row.verdict in OTHER_TRAININGS


def by_gain(row: TriedRemedy) -> tuple[bool, bool, float]:
    """The largest gain first, then what has none."""
    return row.gain_percent is None, bool(row.not_tried), -(row.gain_percent or 0.0)


def _halves(chunk: Chunk) -> list[Chunk]:
    middle = (len(chunk) + 1) // 2
    return [half for half in (chunk[:middle], chunk[middle:]) if half]
