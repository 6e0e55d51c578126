"""Which set of remedies is best, within a budget of time.

What is likely to gain is put together at once and measured. Then all sets that differ from it by one remedy, without
it, with another one or with another one of its kind, race against it within the running script: a quad of each in
turns, and what is slower is soon out. What is better is put together, and has to hold a second time. The set is then
measured in fresh processes against the unchanged script; time for that is kept. Remedies alone come last.

Gains do not add up: what gains alone may gain nothing next to another one, and what gains nothing alone may be what
another one needs, as a half precision needs the memory format channels last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.metrics.loader.forecast import LoaderForecast
from tb_dlprof_plugin.model.trial_result import BUDGET_USED, INSIDE, OTHER_TRAININGS, BestSet, TriedRemedy
from tb_dlprof_plugin.trial.experiment import LOOK
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy, environment_of, one_of_each_group
from tb_dlprof_plugin.trial.loading import workers_needed
from tb_dlprof_plugin.trial.measuring import name_of
from tb_dlprof_plugin.trial.racing import SCREENING, SLOWER, Change, Chunk, Racing, names_of
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS
from tb_dlprof_plugin.trial.switched import OfScript
from tb_dlprof_plugin.trial.variant import Variant, VariantError

_FIRST = 0.5
"""Share of a gain that half of its interval may be, while it is only to be seen whether the first set gains."""
_ALONE = 1.5
"""Times a look, in which a gain can be certain."""
_RACE = 0.6
"""Of the time before the confirmation, for one race: what is put together after it has to hold."""
_SLIGHTLY = 1.0
"""Percent that one set has to gain more than another one that was confirmed, or of the step that page faults take."""
_SHARE_OF_CONFIRMATION, _SHARE_HERE = 0.6, 0.3
"""Of the budget, at most: where fresh processes would need more, the set is measured where it was found."""
_MEASURED = 1.5
"""Times the shortest measurement that is kept for one on a busy machine."""
_CONFIRMED_MORE, _CONFIRMED_MOST, _CPUS_OF_STARTS = 1.25, 2.0, 4
"""Times the start of the first process that two more take at the same time; the second where there are fewer CPUs."""
_LIKELY = 5.0
"""Percent above which all of an interval lies that says what is best so far, where nothing is certain."""
_AT_ONCE = 3
"""Remedies that are measured alone before it is seen again whether a process has started."""
_CPUS_IN_BACKGROUND = 8
"""From which on a process may compile while sets are compared."""
_COMPILES_S, _COMPILES_GPU_S = 10.0, 30.0
"""That a compilation in the running process may take, with what is compared then."""
_UNLIKELY = 3.0
"""Times that, for what is not expected to gain: it may try many kernels."""
_PACED_BY_GPU = 50.0
"""Percent that shorter kernels gain on a GPU alone that does not wait for the CPU."""
_WITHOUT_IT = "The best set is as fast without it."
_NO_MORE = "The best set is no faster with it."

_WORKERS_GROUP, _MEMORY, _FEWEST_LAUNCHES = "loader_workers", "host_memory_kept", "compile_reduce_overhead"


@dataclass
class Search(Racing):
    """One trial of a script.

    Attributes:
        expected: by name, percent that a remedy is expected to gain; below 0 it is not put into the first set.
        of_loader: what an earlier recording says about numbers of workers; None without one.
        kept_s: of the budget, for the confirmation.
    """

    expected: dict[str, float] = field(default_factory=dict)
    kept_s: float = 0.0
    of_loader: LoaderForecast | None = None
    _chosen: list[Remedy] = field(default_factory=list)
    _waits_for_cpu: bool = False
    """Whether what makes kernels shorter gained nothing."""
    _early: Variant | None = None
    """A fresh process with what is likely to gain, which starts while sets are compared."""
    _early_set: list[Remedy] = field(default_factory=list)
    _confirmed: TriedRemedy | None = None
    """The row of the last set that was measured in fresh processes."""
    _of_processes: list[TriedRemedy] = field(default_factory=list)
    """Rows that were measured in processes of their own."""
    _unsound: set[str] = field(default_factory=set)
    """Names of a set that trains something else from a fresh process's first step on, unless each was cleared."""
    _unchanged: Variant | None = None
    """The unchanged script in a fresh process, with another seed."""
    _due_s: float = 0.0
    """Of `clock`, when it should have started."""

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
            faults = self.page_faults_percent()
            self.expected[_MEMORY] = faults if faults > _SLIGHTLY else -1.0
        known = {row.remedy for row in self.rows if row.no_effect}
        ordered = sorted((one for one in candidates if one.name not in known), key=lambda one: -self._expects(one))
        likely = [one for one in ordered if one.name in first] if first else self._likely(ordered)
        self.kept_s = self._confirmation_s()
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
            self._start()
            self._start_elsewhere(likely, ordered)
            self._improve(ordered)
            if self._chosen and self.row_for(self._chosen).gain_percent is None and self.left_s > self.look_s:
                # It must not be lost where no fresh process comes in time.
                self._measure_set(self._chosen)
            self._alone_meanwhile(ordered)
            self._confirm([one for one in likely if not self._is_here(one)])
            self._forget_larger()
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
            and not self._unsound & set(row.remedy.split("+"))
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
            confirmed=any(row is one for one in self._of_processes) or self.laboratory is None,
        )

    def end_fresh(self) -> None:
        """End the processes that confirm a set. Never raises."""
        for one in (self._early, self._unchanged):
            if one is not None:
                one.end()
        self._early = self._unchanged = None
        self.end_idle()

    def end(self) -> None:
        """End all processes. Never raises."""
        self.end_fresh()
        self.end_host()

    def is_disturbed(self) -> bool:
        """Whether a fresh process is on its way."""
        return any(one is not None and one.alive and not one.ready for one in (self._early, self._unchanged))

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
        if others and self.ready and self.ready[0].cpu_count >= _CPUS_IN_BACKGROUND:
            found = one_of_each_group([*others, *self._chosen])
            self._start([*(one for one in found if one not in others), *(one for one in found if one in others)])

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

    def _measure_set(self, chosen: Sequence[Remedy], seconds: float = 0.0, share: float = SCREENING) -> TriedRemedy:
        """Its row, against the unchanged script."""
        row, variant = self.row_for(chosen), self.variant(chosen)
        try:
            self.measure(row, chosen, seconds or _ALONE * self.look_s, self.baseline, variant, share)
        finally:
            variant.end()
        if self.host is None:
            self._of_processes.append(row)
        self.listener.row(row)
        return row

    def _choose_first(self, likely: Sequence[Remedy], ordered: Sequence[Remedy]) -> None:
        """Choose what is likely to gain; where the GPU may wait for the CPU, what spares the CPU if that gains more."""
        sparing = one_of_each_group(
            one for one in ordered if self._may_gain(one) and self._is_here(one) and not one.of_kernels
        )
        best: list[Remedy] = []
        gained = 0.0
        for first in (likely, sparing) if self.ready and self.ready[0].cuda else (likely,):
            chosen = self._together([], tuple(first))
            if not chosen or names_of(chosen) == names_of(best):
                continue
            row = self.row_for(chosen)
            if row.gain_percent is None:
                row = self._measure_set(chosen, share=_FIRST)
            if row.gain_percent is None:
                # There was no time for it.
                self._chosen = chosen
                return
            if row.gain_percent > gained:
                best, gained, self._pace_ms = chosen, row.gain_percent, row.after_ms
            if gained > _PACED_BY_GPU:
                break
        self._chosen = best
        self._waits_for_cpu = not best or not any(one.of_kernels for one in best)

    def _improve(self, ordered: Sequence[Remedy]) -> None:
        """Leave out of the chosen set what it does not need, and add, or put in the place of another one of its group,
        what makes it better."""
        seen = {names_of(self._chosen)}
        while self._has_time():
            changes = next(
                (
                    new
                    for some in self._changes(ordered)
                    if (new := [one for one in some if self._set(one) not in seen])
                ),
                [],
            )
            gains = self.raced(self._chosen, changes, _RACE * (self.left_s - self.kept_s))
            if not gains:
                return
            seen |= {self._set(one) for one in gains}
            better = []
            for one, found in gains.items():
                if one.is_better(found) and (one.out or (found is not None and found.low > 0)):
                    better.append(one)
                elif found is not None and one.added:
                    self.note(one.added[0], stopped=_NO_MORE)
            # The best one last: it takes the place of others of its group.
            better.sort(key=lambda one: gains[one].percent)  # type: ignore[union-attr]
            if better and not self._takes(better) and len(better) > 1:
                self._takes(better[-1:])
            if self.clock() >= self._due_s:
                self._wait_for_unchanged()

    def _set(self, change: Change) -> frozenset[str]:
        return names_of(change.of(self._chosen))

    def _changes(self, ordered: Sequence[Remedy]) -> Iterator[list[Change]]:
        """Those of the chosen set by one remedy: what is likely to gain and what may be left out; then the others."""
        done = {row.remedy for row in self.rows if row.no_effect or row.error or row.verdict in OTHER_TRAININGS}
        done |= {row.remedy for row in self.rows if row.stopped in (_WITHOUT_IT, SLOWER, _NO_MORE)}
        done |= {one.name for one in self._chosen}
        others = [
            one
            for one in ordered
            if one.name not in done
            and one.samples == 1
            and one.changes is not Changes.TRAINING
            and self.switches([one])
        ]
        compiling = [one for one in others if one.compiles and self._can_compile(one)]
        likely = [one for one in others if self._may_gain(one) and (not one.compiles or one in compiling[:1])]
        less = sorted(self._chosen, key=self._expects) if len(self._chosen) > 1 else []
        yield [*(Change(added=(one,)) for one in likely), *(Change(out=(one,)) for one in less)]
        yield [Change(added=(one,)) for one in others if one not in likely and not one.compiles]
        yield [Change(added=(one,)) for one in compiling[:1]]

    def _can_compile(self, one: Remedy) -> bool:
        """Whether there is time for a compilation in the running process, and none in a process of its own."""
        takes_s = _COMPILES_GPU_S if self.ready and self.ready[0].cuda else _COMPILES_S
        least_s = takes_s if self._may_gain(one) else _UNLIKELY * takes_s
        return self._early is None and self.left_s - self.kept_s > least_s

    def _takes(self, changes: Sequence[Change]) -> bool:
        """Choose the set with these changes where it holds a second time that they make it better."""
        added = one_of_each_group(one for change in reversed(changes) for one in change.added)
        change = Change(tuple(one for change in changes for one in change.out), tuple(added))
        larger = change.of(self._chosen)
        if not larger or not self._has_time():
            return False
        if not change.is_better(self.raced(self._chosen, [change], LOOK * self.quad_s(self._chosen)).get(change)):
            return False
        for one in change.out:
            self.note(one, stopped=_WITHOUT_IT)
        self._chosen = larger
        return True

    def _has_time(self) -> bool:
        """Whether another set can be compared before the confirmation."""
        return self.left_s - self.kept_s > 1.3 * LOOK * self.quad_s(self._chosen)

    # --- fresh processes

    def _confirmation_s(self) -> float:
        """Seconds in which the final set is measured."""
        here = min(self.least_s, _SHARE_HERE * self.budget_s)
        if self.laboratory is None or self.host is None:
            return here
        fresh = self._starts_s() + (1 + (self._early is not None)) * _MEASURED * self.least_s
        return fresh if fresh <= _SHARE_OF_CONFIRMATION * self.budget_s else here

    def _starts_s(self, final: Sequence[Remedy] = ()) -> float:
        """Seconds of the starts of a confirmation; where the GPU has memory for one process, each turn is a start."""
        variables = environment_of(final)
        if self._unchanged is not None and self._unchanged.ready:
            # It has started, and the other one takes as long.
            return _CONFIRMED_MORE * max(self._unchanged.ready[0].since_start_s, self.fresh_s(variables))
        few = bool(self.ready) and self.ready[0].cpu_count < _CPUS_OF_STARTS
        more, turns = _CONFIRMED_MOST if few else _CONFIRMED_MORE, 5 if self.bench.exclusive else 1
        return turns * more * self.fresh_s(variables, max(turns, 2))

    def _start(self, likely: Sequence[Remedy] = ()) -> None:
        """Start the unchanged script in a fresh process, or one with what is likely to gain, in the background, where
        that disturbs nothing and there is time to measure it."""
        first = self.ready[0] if self.ready else None
        if first is None or self.laboratory is None or self.host is None or self.bench.exclusive:
            return
        room = self.fitting is None or self.fitting >= 2
        if not room or first.measures_kernels or self.left_s < self._starts_s(likely) + self.least_s:
            return
        one = self.fresh(likely) if likely else self.fresh_baseline()
        try:
            one.launch(self.start_timeout_s)
        except VariantError as error:
            self.notes.append(f"{error}.")
            return
        if likely:
            self._early, self._early_set = one, list(likely)
        else:
            self._unchanged, self._due_s = one, self.clock() + self.fresh_s()

    def _wait_for_unchanged(self) -> None:
        """Until it has started: what a start takes, and with that the time for the confirmation, are known then."""
        if self._unchanged is not None and not self._unchanged.ready:
            try:
                self.yardstick_of(self._unchanged)
            except VariantError as error:
                self.notes.append(f"The unchanged script in a fresh process: {error}.")
                self.end_fresh()
        self.kept_s = self._confirmation_s()

    def _confirm(self, of_processes: Sequence[Remedy]) -> None:
        """Measure the final set against the unchanged script, in fresh processes where there is time."""
        self._wait_for_unchanged()
        fresh = self.laboratory is not None and self.host is not None
        more = [one for one in of_processes if not self.switches([one])]
        # What started first; what was measured; then what was not, if there is time.
        for final in (self._early_set, list(self._chosen), [*self._chosen, *more] if more else []):
            is_early = final is self._early_set and self._early is not None
            enough_s = self.least_s / 2 + (0.0 if is_early else self._starts_s(final))
            known, best = self.row_for(final).gain_percent if final else None, self._confirmed
            less = best is not None and known is not None and known < (best.gain_percent or 0.0) + _SLIGHTLY
            if not fresh or not final or less or self.left_s < enough_s:
                continue
            row = self._in_fresh_processes(final, self._early if is_early else None)
            if row.verdict in OTHER_TRAININGS and len(final) > 1 and not is_early:
                final = self._cleared(final)
                if not final or self.left_s < enough_s:
                    return
                row = self._in_fresh_processes(final)
            if row.verdict in OTHER_TRAININGS and not is_early:
                break
            if row.is_gain and row is self._confirmed and not is_early:
                self._chosen = list(final)
        if (
            self._confirmed is None
            and self._chosen
            and not self.row_for(self._chosen).is_gain
            and self.left_s > self.look_s
        ):
            row = self._measure_set(self._chosen, max(self.left_s, self.look_s), 0.0)
            row.stopped = INSIDE if fresh else row.stopped

    def _cleared(self, final: Sequence[Remedy]) -> list[Remedy]:
        """Those of a set that train the same in a fresh process of their own."""
        cleared = []
        for one in final:
            if self.left_s < self._starts_s([one]) + self.least_s / 2:
                break
            row, variant = self.row_for([one]), self.fresh([one])
            try:
                ready = self.checked(row, [one], variant)
            except VariantError:
                ready = None
            finally:
                variant.end()
            if ready is not None and row.verdict not in OTHER_TRAININGS:
                self._unsound.discard(one.name)
                cleared.append(one)
        return cleared

    def _forget_larger(self) -> None:
        """Of sets that have what the best one does not need."""
        chosen = {one.name for one in self._chosen}
        if chosen and self.row_for(self._chosen).is_gain:
            early = {one.name for one in self._early_set}
            self.sets = [
                row
                for row in self.sets
                if not chosen < (names := set(row.remedy.split("+"))) or (early and names <= early)
            ]

    def _in_fresh_processes(self, final: Sequence[Remedy], started: Variant | None = None) -> TriedRemedy:
        if self.bench.exclusive or self.fitting == 1:
            self.end_host()
        variant = started or self.fresh(final)
        self.listener.phase(f"Fresh processes start: {name_of(final)}")
        try:
            unchanged = self._unchanged
            if unchanged is None:
                self._unchanged = unchanged = self.fresh_baseline()
                unchanged.launch(self.start_timeout_s)
            if started is not None:
                # Else the set of the running process is measured there.
                started.wait_at_most(max(self.left_s - 1.5 * _ALONE * self.look_s, 1.0))
            elif not self.bench.exclusive:
                variant.launch(self.start_timeout_s)
            if not unchanged.ready:
                self.yardstick_of(unchanged)
            return self._against(final, unchanged, variant)
        except VariantError as error:
            self.notes.append(f"{name_of(final)} in fresh processes: {error}.")
            return self.row_for(final)
        finally:
            variant.end()
            if self.bench.exclusive:
                self.end_fresh()

    def _against(self, final: Sequence[Remedy], unchanged: OfScript, variant: Variant) -> TriedRemedy:
        row = self.new_row(final)
        if self.bench.exclusive:
            unchanged.end()
        if self.checked(row, final, variant) is None:
            return self._said(row, final)
        if row.verdict in OTHER_TRAININGS:
            self._unsound |= {one.name for one in final}
            self.keep_row(row)
            self.listener.row(row)
            return row
        if row.verdict is not None:
            self._unsound -= {one.name for one in final}
        if not self.bench.exclusive and not self.bench.is_warm(unchanged):
            self.bench.warm_up(unchanged, self.start_timeout_s)
        measured = self.measure(row, final, max(self.left_s, self.least_s / 2), unchanged, variant, SCREENING)
        if measured is None:
            return self._said(row, final)
        self.confirm(row, measured, unchanged, variant)
        found = set(variant.ready[0].no_effect) if variant.ready else set()
        useful = [one for one in final if one.name not in found]
        if useful and len(useful) < len(final):
            row.remedy, row.title = name_of(useful), "; ".join(one.title for one in useful)
        inside = self.row_for(useful or final)
        if inside.is_gain and (row.gain_percent or 0.0) > 0 and row.quads < LEAST_QUADS:
            # Its processes came too late to say anything else.
            inside.stopped = INSIDE
            return inside
        self.keep_row(row)
        self._of_processes.append(row)
        before = self._confirmed
        if row.is_gain and (before is None or (row.gain_percent or 0.0) > (before.gain_percent or 0.0) + _SLIGHTLY):
            self._confirmed = row
        self.listener.row(row)
        return row

    def _said(self, row: TriedRemedy, final: Sequence[Remedy]) -> TriedRemedy:
        """The row of a fresh process that gave no figure, and why."""
        if row.error:
            self.notes.append(f"{name_of(final)} in a fresh process: {row.error}.")
        elif row.no_effect:
            self.keep_row(row)
        return row

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
        here = sorted((one for one in waiting if self.switches([one])), key=lambda one: one.compiles)
        if here and self.left_s > self.look_s:
            self.raced([], [Change(added=(one,)) for one in here], self.left_s)
        for one in waiting if self.laboratory is not None else ():
            row = self.row_for([one])
            if self.switches([one]) or self.left_s < 1.1 * (self.fresh_s(environment_of([one])) + self.least_s):
                continue
            row.verdict, row.stopped = None, ""
            variant = self.fresh([one])
            try:
                measured = self.measure(row, [one], self.least_s, self._other(), variant)
                self._of_processes.append(row)
                if measured is not None and row.is_gain:
                    self.confirm(row, measured, self._other(), variant)
            finally:
                variant.end()
            self.listener.row(row)

    def _is_known(self, row: TriedRemedy) -> bool:
        return row.gain_percent is not None or bool(row.no_effect or row.error) or row.verdict in OTHER_TRAININGS

    def _other(self) -> OfScript:
        """The unchanged script to measure a process against."""
        if self.host is None:
            return self.baseline
        if self._unchanged is None:
            self._unchanged = self.fresh_baseline()
            self.yardstick_of(self._unchanged)
        return self._unchanged


def by_gain(row: TriedRemedy) -> tuple[bool, bool, float]:
    """The largest gain first, then what has none."""
    return row.gain_percent is None, bool(row.not_tried), -(row.gain_percent or 0.0)


def _halves(chunk: Chunk) -> list[Chunk]:
    middle = (len(chunk) + 1) // 2
    return [half for half in (chunk[:middle], chunk[middle:]) if half]
