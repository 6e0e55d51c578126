"""Which set of remedies is best, within a budget of time.

What is likely to gain is put together at once and measured. What the set does not need is left out, by halves while
nothing of a half is needed (after Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002):
with few remedies that matter, a set of n costs some log n measurements. What may be better is added, or takes the place
of another one. The set is then measured in fresh processes against the unchanged script. Remedies alone come last.

Gains do not add up: what gains alone may gain nothing next to another one, and what gains nothing alone may be what
another one needs, as a half precision needs the memory format channels last.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.metrics.loader.forecast import LoaderForecast
from tb_dlprof_plugin.model.trial_result import BUDGET_USED, INSIDE, OTHER_TRAININGS, BestSet, TriedRemedy
from tb_dlprof_plugin.trial.experiment import LOOK
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy, one_of_each_group
from tb_dlprof_plugin.trial.loading import workers_needed
from tb_dlprof_plugin.trial.measuring import Measuring, name_of
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS, WORTH
from tb_dlprof_plugin.trial.switched import OfScript
from tb_dlprof_plugin.trial.variant import Variant, VariantError

_SCREENING = 0.1
"""Share of a gain that half of its interval may be, while it is only to be seen which set is better."""
_ALONE = 1.5
"""Times a look, in which a gain of one remedy can be certain."""
_UNSURE = 3.0
"""Percent that a smaller set has to be faster at most, on a busy machine, before anything is left out."""
_NEEDLESS = 1.0
"""Percent of the step that a remedy of a set may cost when it is left out."""
_SHARE_OF_CONFIRMATION, _SHARE_HERE = 0.6, 0.3
"""Of the budget, at most: where fresh processes would need more, the set is measured where it was found."""
_MEASURED = 1.5
"""Times the shortest measurement that is kept for one on a busy machine."""
_MEASURED_EARLY = 2.0
"""The same for all that is likely to gain, in a fresh process."""
_CONFIRMED_MORE = 1.25
"""Times the start of the first process that two more take at the same time."""
_LIKELY = 5.0
"""Percent above which all of an interval lies that says what is best so far, where nothing is certain."""
_DISTURBED = 1.4
"""Times the step before fresh processes started."""
_SLOW_START_S, _CPUS_IN_BACKGROUND = 8.0, 8
"""From which on fresh processes start while sets are compared, where there are so many CPUs."""
_WITHOUT_IT = "The best set is as fast without it."
_SLOWER = "Its first steps take much longer."
_NO_MORE = "The best set is no faster with it."

_WORKERS_GROUP, _MEMORY = "loader_workers", "host_memory_kept"

Chunk = tuple[Remedy, ...]


@dataclass
class Search(Measuring):
    """One trial of a script.

    Attributes:
        rows: of single remedies: measured, or why not.
        sets: of several, measured against the unchanged script.
        expected: by name, percent that a remedy is expected to gain; below 0 it is not put into the first set.
        forecasts: by name, percent that the advice on an earlier recording expects.
        of_loader: what an earlier recording says about numbers of workers; None without one.
        kept_s: of the budget, for the confirmation.
    """

    rows: list[TriedRemedy] = field(default_factory=list)
    sets: list[TriedRemedy] = field(default_factory=list)
    expected: dict[str, float] = field(default_factory=dict)
    kept_s: float = 0.0
    forecasts: Mapping[str, float] = field(default_factory=dict)
    of_loader: LoaderForecast | None = None
    _chosen: list[Remedy] = field(default_factory=list)
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
            self.expected[_MEMORY] = faults if faults > _NEEDLESS else -1.0
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
            here = [one for one in likely if self._is_here(one)]
            self._chosen = self._together([], tuple(here)) if here else []
            self._start_early([*self._chosen, *(one for one in likely if one not in here)])
            if self._chosen and self._row([*self._chosen]).gain_percent is None:
                row = self._measure_set(self._chosen, _ALONE * self.look_s, _SCREENING)
                if self._early is not None and (row.before_ms or 0.0) > _DISTURBED * self.baseline_step_ms:
                    self._measure_undisturbed(row)
            self._leave_out()
            self._add([one for one in ordered if one not in self._chosen and one.samples == 1])
            self._confirm([one for one in likely if not self._is_here(one)])
            self._forget_larger()
            self._alone(ordered)
        finally:
            self.end_fresh()
            for one in ordered:
                row = self._row([one])
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
                self._note(one, no_effect=why)
            else:
                self.forecasts = {**self.forecasts, one.name: needed[1]}
        return {} if needed is None else {f"{_WORKERS_GROUP}_{needed[0]}": needed[1]}

    def _expects(self, one: Remedy) -> float:
        return self.expected.get(one.name, one.usual_percent)

    def _likely(self, ordered: Sequence[Remedy]) -> list[Remedy]:
        """What is put together first."""
        return one_of_each_group(
            one
            for one in ordered
            if self._expects(one) > 0 and one.samples == 1 and one.changes is not Changes.TRAINING
        )

    def _is_here(self, one: Remedy) -> bool:
        """Whether it is in the first set: what compiles is not where a start is slow, but in a process of its own."""
        if self.host is None:
            return True
        return self.switches([one]) and not (one.group == "compile" and self.laboratory is not None)

    # --- sets in the running process

    def _together(self, base: list[Remedy], chunk: Chunk) -> list[Remedy]:
        """The base with what of the chunk works and trains the same; halves of it where all of it does not."""
        if not chunk or self.left_s < self.kept_s:
            return base
        larger = [*base, *chunk]
        row, variant = self._new_row(larger), self.variant(larger)
        ready = self.checked(row, larger, variant)
        if ready is None or row.verdict in OTHER_TRAININGS or self.bench.exclusive:
            variant.end()
        else:
            self.keep_idle([one for one in larger if one.name not in ready.no_effect], variant)
        if ready is not None and self.is_slow(ready):
            if len(chunk) == 1:
                self._note(chunk[0], stopped=_SLOWER)
                return base
        elif ready is not None and row.verdict not in OTHER_TRAININGS:
            for one in larger:
                if one.name in ready.no_effect:
                    self._note(one, no_effect=ready.no_effect[one.name])
            return [one for one in larger if one.name not in ready.no_effect]
        if row.no_effect:
            for one in chunk:
                self._note(one, no_effect=row.no_effect if len(chunk) == 1 else "It changes nothing here.")
            return base
        if row.not_tried:
            return base
        if len(chunk) == 1:
            row.remedy = chunk[0].name
            self._note(chunk[0], error=row.error, verdict=row.verdict, verdict_text=row.verdict_text)
            return base
        first, second = _halves(chunk)
        return self._together(self._together(base, first), second)

    def _measure_set(self, chosen: Sequence[Remedy], seconds: float, share: float) -> TriedRemedy:
        """Its row, against the unchanged script."""
        row, variant = self._row(chosen), self.variant(chosen)
        try:
            self.measure(row, chosen, seconds, self.baseline, variant, share)
        finally:
            variant.end()
        if self.host is None:
            self._of_processes.append(row)
        self.listener.row(row)
        return row

    def _leave_out(self) -> None:
        """Leave out what the chosen set does not need, first what was expected to gain least."""
        chosen = sorted(self._chosen, key=self._expects)
        waiting = _halves(tuple(chosen)) if len(chosen) > 1 else []
        while waiting and len(self._chosen) > 1 and self._has_time():
            chunk = tuple(one for one in waiting.pop(0) if one in self._chosen)
            if not chunk:
                continue
            if len(chunk) == len(self._chosen):
                waiting = [*_halves(chunk), *waiting]
                continue
            rest = [one for one in self._chosen if one not in chunk]
            gained = self._gain_over_chosen(rest)
            if gained is not None and gained >= -_NEEDLESS:
                for one in chunk:
                    self._note(one, stopped=_WITHOUT_IT)
                self._chosen = rest
            elif len(chunk) > 1:
                waiting = [*_halves(chunk), *waiting]

    def _add(self, others: Sequence[Remedy]) -> None:
        """Add, or put in the place of another one of its group, what makes the chosen set better."""
        done = {row.remedy for row in self.rows if row.no_effect or row.error or row.verdict in OTHER_TRAININGS}
        done |= {row.remedy for row in self.rows if row.stopped in (_WITHOUT_IT, _SLOWER)}
        for one in others:
            if one.name in done or not self.switches([one]) or one.changes is Changes.TRAINING:
                continue
            if self._early is not None and one.group == "compile":
                continue
            if not self._has_time():
                return
            larger = [*(other for other in self._chosen if not one.group or other.group != one.group), one]
            gained = self._gain_over_chosen(larger, one)
            if gained is not None and gained > WORTH:
                # One of many looks: it has to hold a second time.
                gained = self._gain_over_chosen(larger, one) if self._has_time() else None
            if gained is not None and gained > WORTH:
                self._chosen = larger
            elif gained is not None:
                self._note(one, stopped=_NO_MORE)

    def _gain_over_chosen(self, candidates: list[Remedy], added: Remedy | None = None) -> float | None:
        """Percent that a set gains over the chosen one, less what is unsure; of an added remedy only what is certain at
        95 %. None where it fails, changes nothing or trains something else."""
        row, variant = self._new_row(candidates), self.variant(candidates)
        chosen = self.variant(self._chosen) if self._chosen else self.baseline
        try:
            measured = self.measure(row, candidates, self.look_s, chosen, variant, _SCREENING, LOOK)
        finally:
            variant.end()
            if chosen is not self.baseline:
                self.keep_idle(self._chosen, chosen)
        alone = added is not None and not self._chosen
        if measured is None or row.verdict in OTHER_TRAININGS:
            if added is not None and not row.not_tried:
                self._note(added, error=row.error, no_effect=row.no_effect, verdict=row.verdict,
                           verdict_text=row.verdict_text)  # fmt: skip
            return None
        if alone:
            self._keep(row)
        if added is None:
            # Where it cannot be seen what is needed, more stays in the set.
            return measured.gain.percent - min(measured.gain.half_width / 2, _UNSURE)
        return measured.gain.percent if measured.gain.low > 0 else min(measured.gain.percent, 0.0)

    def _has_time(self) -> bool:
        """Whether one more set can be measured before the confirmation."""
        return self.left_s - self.kept_s > 1.3 * self.look_s

    # --- fresh processes

    def _confirmation_s(self) -> float:
        """Seconds in which the final set is measured."""
        here = min(self.least_s, _SHARE_HERE * self.budget_s)
        if self.laboratory is None or self.host is None:
            return here
        fresh = self._starts_s + _MEASURED * self.least_s
        return fresh if fresh <= _SHARE_OF_CONFIRMATION * self.budget_s else here

    @property
    def _starts_s(self) -> float:
        """Seconds of the starts of a confirmation; where the GPU has memory for one process, each turn is a start."""
        return (5 if self.bench.exclusive else 1) * _CONFIRMED_MORE * self.start_s

    def _start_early(self, likely: Sequence[Remedy]) -> None:
        """Start a fresh process with all that is likely to gain, and one without, where that takes long and disturbs
        nothing."""
        first = self.ready[0] if self.ready else None
        if first is None or self.laboratory is None or self.host is None or len(likely) < 1:
            return
        room = self.fitting is None or self.fitting >= 2
        slow = self.start_s > _SLOW_START_S and first.cpu_count >= _CPUS_IN_BACKGROUND
        late = self.left_s < self._starts_s + self.least_s
        if late or not slow or not room or self.bench.exclusive or first.measures_kernels:
            return
        self._early, self._early_set = self.fresh(likely), list(likely)
        self._unchanged = self.fresh_baseline()
        for one in (self._early, self._unchanged):
            try:
                one.launch(self.start_timeout_s)
            except VariantError as error:
                self.notes.append(f"{error}.")
                self.end_fresh()
                return
        # What has started needs its measurement alone, which claims the most.
        self.kept_s = _MEASURED_EARLY * self.least_s

    def _measure_undisturbed(self, row: TriedRemedy) -> None:
        """A start takes CPUs: a step that these pace is measured without it, and what was measured is no result."""
        self.end_fresh()
        self._early_set = []
        self.kept_s = self._confirmation_s()
        (self.rows if len(self._chosen) == 1 else self.sets).remove(row)
        self._measure_set(self._chosen, _ALONE * self.look_s, _SCREENING)

    def _confirm(self, of_processes: Sequence[Remedy]) -> None:
        """Measure the final set against the unchanged script, in fresh processes where there is time."""
        if self._early is not None:
            if self._chosen and not self.best().remedies and self.left_s > 1.5 * _ALONE * self.look_s:
                # It must not be lost where the larger set does not come to its steps in time.
                self._measure_set(self._chosen, _ALONE * self.look_s, _SCREENING)
            row = self._confirm_early()
            ours = self._row(self._chosen).gain_percent if self._chosen else None
            if row is not None and row.is_gain and (ours or 0.0) < (row.gain_percent or 0.0) + _NEEDLESS:
                return
        more = [one for one in of_processes if self.host is not None and not self.switches([one])]
        # What was measured first; then what was not, if there is time.
        sets = [final for final in (self._chosen, [*self._chosen, *more] if more else []) if final]
        enough_s = self._starts_s + self.least_s / 2
        if self.laboratory is not None and self.host is not None and self.left_s > enough_s:
            for final in sets:
                if self.left_s < enough_s:
                    break
                row = self._in_fresh_processes(final)
                if row.verdict in OTHER_TRAININGS and len(final) > 1:
                    final = self._cleared(final)
                    if not final or self.left_s < enough_s:
                        return
                    row = self._in_fresh_processes(final)
                if row.verdict in OTHER_TRAININGS:
                    break
                if row.is_gain and (row is self._confirmed or not self._chosen):
                    self._chosen = list(final)
            if self._confirmed is not None:
                return
        if self._chosen and not self._row(self._chosen).is_gain and self.left_s > self.look_s:
            row = self._measure_set(self._chosen, max(self.left_s, self.look_s), 0.0)
            row.stopped = INSIDE if self.laboratory is not None and self.host is not None else row.stopped

    def _cleared(self, final: Sequence[Remedy]) -> list[Remedy]:
        """Those of a set that train the same in a fresh process of their own."""
        cleared = []
        for one in final:
            if self.left_s < self.start_s + self.least_s / 2:
                break
            row, variant = self._row([one]), self.fresh([one])
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
        if chosen and self._row(self._chosen).is_gain:
            early = {one.name for one in self._early_set}
            self.sets = [
                row
                for row in self.sets
                if not chosen < (names := set(row.remedy.split("+"))) or (early and names <= early)
            ]

    def _confirm_early(self) -> TriedRemedy | None:
        """What the process that was started first gains."""
        early, unchanged = self._early, self._unchanged
        assert early is not None
        assert unchanged is not None
        self.listener.phase(f"Fresh processes start: {name_of(self._early_set)}")
        # Else the set of the running process is measured there.
        longest = self.left_s - 1.5 * _ALONE * self.look_s
        try:
            for one in (unchanged, early):
                one.wait_at_most(max(longest, 1.0))
            self.yardstick_of(unchanged)
            early.arrived()
        except VariantError as error:
            self.notes.append(f"{name_of(self._early_set)} in a fresh process: {error}.")
            return None
        return self._against(self._early_set, unchanged, early)

    def _in_fresh_processes(self, final: Sequence[Remedy]) -> TriedRemedy:
        if self.bench.exclusive or self.fitting == 1:
            self.end_host()
        variant = self.fresh(final)
        try:
            unchanged = self._unchanged
            if unchanged is None:
                self._unchanged = unchanged = self.fresh_baseline()
                self.listener.phase(f"Fresh processes start: {name_of(final)}")
                unchanged.launch(self.start_timeout_s)
                if not self.bench.exclusive:
                    variant.launch(self.start_timeout_s)
                self.yardstick_of(unchanged)
            return self._against(final, unchanged, variant)
        except VariantError as error:
            self.notes.append(f"{name_of(final)} in fresh processes: {error}.")
            return self._row(final)
        finally:
            variant.end()
            if self.bench.exclusive:
                self.end_fresh()

    def _against(self, final: Sequence[Remedy], unchanged: OfScript, variant: Variant) -> TriedRemedy:
        row = self._new_row(final)
        if self.bench.exclusive:
            unchanged.end()
        if self.checked(row, final, variant) is not None and row.verdict in OTHER_TRAININGS:
            self._unsound |= {one.name for one in final}
            self._keep(row)
            self.listener.row(row)
            return row
        if not self.bench.exclusive and not self.bench.is_warm(unchanged):
            self.bench.warm_up(unchanged, self.start_timeout_s)
        measured = self.measure(row, final, max(self.left_s, self.least_s / 2), unchanged, variant)
        if measured is not None:
            self.confirm(row, measured, unchanged, variant)
        if row.error:
            self.notes.append(f"{name_of(final)} in a fresh process: {row.error}.")
        found = set(variant.ready[0].no_effect) if variant.ready else set()
        useful = [one for one in final if one.name not in found]
        if useful and len(useful) < len(final):
            row.remedy, row.title = name_of(useful), "; ".join(one.title for one in useful)
        inside = self._row(useful or final)
        if inside.is_gain and (row.gain_percent or 0.0) > 0 and row.quads < LEAST_QUADS:
            # Its processes came too late to say anything else.
            inside.stopped = INSIDE
            return inside
        self._keep(row)
        self._of_processes.append(row)
        before = self._confirmed
        if row.is_gain and (before is None or (row.gain_percent or 0.0) > (before.gain_percent or 0.0) + _NEEDLESS):
            self._confirmed = row
        self.listener.row(row)
        return row

    # --- remedies alone

    def _alone(self, ordered: Sequence[Remedy]) -> None:
        """Each against the unchanged script, while the budget lasts."""
        for one in ordered:
            row = self._row([one])
            known = row.gain_percent is not None or row.no_effect or row.error
            if known or row.verdict in OTHER_TRAININGS:
                continue
            here = self.switches([one])
            needed = _ALONE * self.look_s if here else self.start_s + self.least_s
            if self.left_s < 1.1 * needed or (not here and self.laboratory is None):
                if not row.stopped and row.verdict is None:
                    row.not_tried = BUDGET_USED
                self._keep(row)
                continue
            row.verdict, row.stopped = None, ""
            variant = self.variant([one])
            try:
                measured = self.measure(row, [one], needed if here else self.least_s, self._other_of(here), variant)
                if not here:
                    self._of_processes.append(row)
                if measured is not None and isinstance(variant, Variant) and row.is_gain:
                    self.confirm(row, measured, self._other_of(here), variant)
            finally:
                variant.end()
            self._keep(row)
            self.listener.row(row)

    def _other_of(self, here: bool) -> OfScript:
        """The unchanged script to measure against."""
        if here or self.host is None:
            return self.baseline
        if self._unchanged is None:
            self._unchanged = self.fresh_baseline()
            self.yardstick_of(self._unchanged)
        return self._unchanged

    # --- rows

    def _new_row(self, candidates: Sequence[Remedy]) -> TriedRemedy:
        row = self.row_of(candidates)
        if len(candidates) == 1:
            row.forecast_percent = self.forecasts.get(row.remedy)
        return row

    def _row(self, candidates: Sequence[Remedy]) -> TriedRemedy:
        """The row of a remedy or a set, which is made where there is none."""
        rows = self.rows if len(candidates) == 1 else self.sets
        names = {one.name for one in candidates}
        found = next((row for row in rows if set(row.remedy.split("+")) == names), None)
        if found is None:
            found = self._new_row(candidates)
            rows.append(found)
        return found

    def _keep(self, row: TriedRemedy) -> None:
        """In the place of the row of the same remedies."""
        names = set(row.remedy.split("+"))
        rows = self.rows if len(names) == 1 else self.sets
        rows[:] = [*(one for one in rows if set(one.remedy.split("+")) != names), row]

    def _note(self, one: Remedy, **values: object) -> None:
        """Say in the row of a remedy why it has no figure."""
        row = self._row([one])
        for name, value in values.items():
            setattr(row, name, value)


def by_gain(row: TriedRemedy) -> tuple[bool, bool, float]:
    """The largest gain first, then what has none."""
    return row.gain_percent is None, bool(row.not_tried), -(row.gain_percent or 0.0)


def _halves(chunk: Chunk) -> list[Chunk]:
    middle = (len(chunk) + 1) // 2
    return [half for half in (chunk[:middle], chunk[middle:]) if half]
