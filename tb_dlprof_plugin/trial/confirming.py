"""Measures the best set in fresh processes, against the unchanged script in another one; time for that is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.model.trial_result import INSIDE, OTHER_TRAININGS, TriedRemedy
from tb_dlprof_plugin.trial.inside.remedy import Remedy, environment_of
from tb_dlprof_plugin.trial.measuring import name_of
from tb_dlprof_plugin.trial.racing import SCREENING, Racing, names_of
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS
from tb_dlprof_plugin.trial.switched import OfScript
from tb_dlprof_plugin.trial.variant import Variant, VariantError

_ALONE = 1.5
"""Times a look, in which a gain can be certain."""
_SLIGHTLY = 1.0
"""Percent that one set has to gain more than another one that was confirmed."""
_SHARE_OF_CONFIRMATION, _SHARE_HERE = 0.6, 0.3
"""Of the budget, at most: where fresh processes would need more, the set is measured where it was found."""
MEASURED = 1.5
"""Times the shortest measurement that is kept for one on a busy machine."""
_CONFIRMED_MORE, _CONFIRMED_MOST, _CPUS_OF_STARTS = 1.25, 2.0, 4
"""Times the start of the first process that two more take at the same time; the second where there are fewer CPUs."""


@dataclass
class Confirming(Racing):
    """Fresh processes of a trial.

    Attributes:
        kept_s: of the budget, for the confirmation.
        chosen: the best set so far.
        early_row: of the last set whose process started while others were compared; None without one.
    """

    kept_s: float = 0.0
    chosen: list[Remedy] = field(default_factory=list)
    early_row: TriedRemedy | None = None
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

    def measure_set(self, chosen: Sequence[Remedy], seconds: float = 0.0, share: float = SCREENING) -> TriedRemedy:
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

    def confirmation_s(self) -> float:
        """Seconds in which the final set is measured."""
        here = min(self.least_s, _SHARE_HERE * self.budget_s)
        if self.laboratory is None or self.host is None:
            return here
        fresh = self._starts_s() + (1 + (self._early is not None)) * MEASURED * self.least_s
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

    def start_fresh(self, likely: Sequence[Remedy] = ()) -> bool:
        """Start the unchanged script in a fresh process, or one with what is likely to gain, in the background, where
        that disturbs nothing and there is time to measure it; whether it has."""
        first = self.ready[0] if self.ready else None
        if first is None or self.laboratory is None or self.host is None or self.bench.exclusive:
            return False
        room = self.fitting is None or self.fitting >= 2
        if not room or first.measures_kernels or self.left_s < self._starts_s(likely) + self.least_s:
            return False
        one = self.fresh(likely) if likely else self.fresh_baseline()
        try:
            one.launch(self.start_timeout_s)
        except VariantError as error:
            self.notes.append(f"{error}.")
            return False
        if likely:
            self._early, self._early_set = one, list(likely)
        else:
            self._unchanged, self._due_s = one, self.clock() + self.fresh_s()
        return True

    def wait_for_unchanged(self) -> None:
        """Until it has started: what a start takes, and with that the time for the confirmation, are known then."""
        if self._unchanged is not None and not self._unchanged.ready:
            try:
                self.yardstick_of(self._unchanged)
            except VariantError as error:
                self.notes.append(f"The unchanged script in a fresh process: {error}.")
                self.end_fresh()
        self.kept_s = self.confirmation_s()

    def measure_early(self) -> TriedRemedy | None:
        """The row of what has started while sets were compared; None where nothing has."""
        early, self._early = self._early, None
        self.early_row = None if early is None else self._in_fresh_processes(self._early_set, early)
        return self.early_row

    def confirm_chosen(self, of_processes: Sequence[Remedy]) -> None:
        """Measure the final set against the unchanged script, in fresh processes where there is time."""
        self.wait_for_unchanged()
        fresh = self.laboratory is not None and self.host is not None
        more = [one for one in of_processes if not self.switches([one])]
        if self.left_s > self.least_s / 2:
            self.measure_early()
        # What was measured; then what was not, if there is time.
        for final in (list(self.chosen), [*self.chosen, *more] if more else []):
            enough_s = self.least_s / 2 + self._starts_s(final)
            known, best = self.row_for(final).gain_percent if final else None, self._confirmed
            less = best is not None and known is not None and known < (best.gain_percent or 0.0) + _SLIGHTLY
            if not fresh or not final or less or self.left_s < enough_s:
                continue
            row = self._in_fresh_processes(final)
            if row.verdict in OTHER_TRAININGS and len(final) > 1:
                final = self._cleared(final)
                if not final or self.left_s < enough_s:
                    return
                row = self._in_fresh_processes(final)
            if row.verdict in OTHER_TRAININGS:
                break
            if row.is_gain and row is self._confirmed:
                self.chosen = list(final)
        if (
            self._confirmed is None
            and self.chosen
            and not self.row_for(self.chosen).is_gain
            and self.left_s > self.look_s
        ):
            row = self.measure_set(self.chosen, max(self.left_s, self.look_s), 0.0)
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
            finally:
                variant.end()
            if ready is not None and row.verdict not in OTHER_TRAININGS:
                self._unsound.discard(one.name)
                cleared.append(one)
        return cleared

    def forget_larger(self) -> None:
        """Of sets that have what the best one does not need."""
        chosen = {one.name for one in self.chosen}
        if chosen and self.row_for(self.chosen).is_gain:
            early = {one.name for one in self._early_set}
            self.sets = [row for row in self.sets if not chosen < row.names or (early and row.names <= early)]

    def _in_fresh_processes(self, final: Sequence[Remedy], started: Variant | None = None) -> TriedRemedy:
        if self.bench.exclusive or self.fitting == 1:
            self.end_host()
        variant = started or self.fresh(final)
        self.listener.phase(f"Fresh processes start: {name_of(final)}")
        try:
            self._launched_unchanged()
            if started is not None:
                # Else the set of the running process is measured there.
                started.wait_at_most(max(self.left_s - 1.5 * _ALONE * self.look_s, 1.0))
            elif not self.bench.exclusive:
                variant.launch(self.start_timeout_s)
            return self._against(final, self.unchanged_script(), variant)
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
            # What was not compared in the running process may be why.
            added = [one for one in final if one.compiles or not self.switches([one])]
            self._unsound |= {one.name for one in added or final}
            self.notes.append(f"{name_of(final)} in a fresh process trains otherwise: {row.verdict_text}.")
            self.keep_row(row)
            self.listener.row(row)
            return row
        if row.verdict is not None:
            self._unsound -= {one.name for one in final}
        if not self.bench.exclusive and not self.bench.is_warm(unchanged):
            self.bench.warm_up(unchanged, self.start_timeout_s)
        seconds = max(self.left_s, self.least_s / 2)
        measured = self.measure(row, final, seconds, unchanged, variant, SCREENING, self._gained_without(final))
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

    def _gained_without(self, final: Sequence[Remedy]) -> float:
        """Percent that the best other set gains; -inf without one."""
        others = [row for row in (*self.rows, *self.sets) if row.names != names_of(final)]
        gains = [row.gain_percent or 0.0 for row in others if row.is_gain and row.verdict not in OTHER_TRAININGS]
        return max(gains, default=-math.inf)

    def _said(self, row: TriedRemedy, final: Sequence[Remedy]) -> TriedRemedy:
        """The row of a fresh process that gave no figure, and why."""
        if row.error:
            self.notes.append(f"{name_of(final)} in a fresh process: {row.error}.")
        elif row.no_effect:
            self.keep_row(row)
        return row

    def unchanged_script(self) -> OfScript:
        """The unchanged script to measure a process against. Raises VariantError: it does not start."""
        if self.host is None:
            return self.baseline
        unchanged = self._launched_unchanged()
        if not unchanged.ready:
            self.yardstick_of(unchanged)
        return unchanged

    def _launched_unchanged(self) -> Variant:
        if self._unchanged is None:
            self._unchanged = self.fresh_baseline()
            self._unchanged.launch(self.start_timeout_s)
        return self._unchanged
