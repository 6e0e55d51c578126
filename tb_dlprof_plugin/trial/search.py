"""Which remedies are tried alone, in which order, and what is best of all, within a budget of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.model.trial_result import BestSet, TriedRemedy
from tb_dlprof_plugin.trial.best_set import find_set
from tb_dlprof_plugin.trial.experiment import SURE, Measured
from tb_dlprof_plugin.trial.inside.remedy import Remedy
from tb_dlprof_plugin.trial.measuring import Measuring
from tb_dlprof_plugin.trial.statistics import HARM, WORTH
from tb_dlprof_plugin.trial.variant import Variant
from tb_dlprof_plugin.trial.verdict import OTHER_TRAININGS

SCREENING = 0.1
"""Share of a gain that half of its interval may be, while it is only to be seen which remedies are better."""
_SINGLE_SHARE = 0.6
"""Of the budget for remedies alone, once one of them gains; the rest is for sets of them and second processes."""
BUDGET_USED = "The budget was used before its turn: give a larger --budget."


@dataclass
class Search(Measuring):
    """One trial of a script."""

    rows: list[TriedRemedy] = field(default_factory=list)
    sets: list[TriedRemedy] = field(default_factory=list)
    _measured: dict[str, Measured] = field(default_factory=dict)
    """By the names of remedies: alone, in their first process."""

    def run(self, candidates: Sequence[Remedy], forecasts: Mapping[str, float]) -> BestSet:
        """Try the remedies alone, then together; what is best.

        Args:
            candidates: remedies that may be tried.
            forecasts: by name, percent of the step's time.
        """
        ordered = sorted(candidates, key=lambda one: -forecasts.get(one.name, -1.0))
        waiting, kept_s, best = ordered, (1 - _SINGLE_SHARE) * self.left_s, None
        while waiting:
            gained = len(self._that_gain(ordered))
            self._try_alone(waiting, forecasts, kept_s)
            if len(self._that_gain(ordered)) > gained:
                found = find_set(self, self._that_gain(ordered), self._that_harm_nothing(ordered), self.sets)
                best = found or best
            self._confirm(waiting)
            if not kept_s:
                break
            # What was kept for sets may be left.
            waiting, kept_s = [one for one in ordered if self._row(one).not_tried], 0.0
            self.rows = [row for row in self.rows if not row.not_tried]
        self.rows.sort(key=lambda one: (one.gain_percent is None, bool(one.not_tried), -(one.gain_percent or 0.0)))
        alone = next((row for row in self.rows if row.is_gain and row.verdict not in OTHER_TRAININGS), None)
        if best is None or (alone is not None and (alone.gain_percent or 0.0) > (best.gain_percent or 0.0)):
            best = alone
        return BestSet() if best is None else _best(best)

    def _try_alone(self, ordered: Sequence[Remedy], forecasts: Mapping[str, float], kept_s: float) -> None:
        """Each against the unchanged script, while the budget lasts.

        Args:
            ordered: remedies.
            forecasts: by name, percent of the step's time.
            kept_s: of the budget for what follows, once one gains.
        """
        started: dict[str, Variant] = {}
        begun = 0
        try:
            for number, candidate in enumerate(ordered):
                row = self.row_of([candidate])
                row.forecast_percent = forecasts.get(candidate.name)
                left_s = self.left_s - (kept_s if self._that_gain(ordered) else 0.0)
                start_s = 0.0 if candidate.name in started else self.start_s
                if left_s < start_s + self.least_s:
                    row.not_tried = BUDGET_USED
                else:
                    if number >= begun:
                        together = self._together(ordered[number:])
                        begun = number + len(together)
                        variants = self.start_together([[one] for one in together])
                        started |= {one.name: variant for one, variant in zip(together, variants, strict=True)}
                    # Fewer remedies, each for as long as a verdict needs, rather than all of them for too short.
                    seconds = left_s / (len(ordered) - number) - self.start_s / self.at_once
                    variant = started[candidate.name]
                    measured = self.measure(
                        row, [candidate], max(seconds, self.least_s), self.baseline, variant, SCREENING
                    )
                    variant.end()
                    if measured is not None:
                        self._measured[candidate.name] = measured
                        # Smaller ones are gains once `_confirm` has measured a second process.
                        row.is_gain = row.is_gain and measured.gain.percent >= SURE
                self.rows.append(row)
                self.listener.row(row)
        finally:
            for one in started.values():
                one.end()
        self.finish_seed()

    def _together(self, waiting: Sequence[Remedy]) -> Sequence[Remedy]:
        """Those of the next ones that may be started at the same time."""
        alone = next((number for number, one in enumerate(waiting) if one.measures_kernels), len(waiting))
        return waiting[: max(1, min(self.room(), alone))]

    def _confirm(self, candidates: Sequence[Remedy]) -> None:
        """Measure second processes of what seems to gain, the largest gain first."""
        for one in self._that_gain(candidates):
            row, variant = self._row(one), self.variant([one])
            try:
                self.confirm(row, self._measured[one.name], variant)
            finally:
                variant.end()

    def _that_gain(self, candidates: Sequence[Remedy]) -> list[Remedy]:
        """Those that gain in their first process, and train the same; the largest gain first."""
        found = [
            one
            for one in candidates
            if one.name in self._measured
            and self._measured[one.name].gain.certain
            and self._measured[one.name].gain.percent >= WORTH
            and self._row(one).verdict not in OTHER_TRAININGS
        ]
        return sorted(found, key=lambda one: -self._measured[one.name].gain.percent)

    def _that_harm_nothing(self, candidates: Sequence[Remedy]) -> list[Remedy]:
        """Those that neither gain nor cost much alone, and train the same; the best first."""
        gains = self._that_gain(candidates)
        found = [
            one
            for one in candidates
            if one not in gains
            and one.samples == 1
            and one.name in self._measured
            and self._measured[one.name].gain.percent > HARM
            and self._row(one).verdict not in OTHER_TRAININGS
        ]
        return sorted(found, key=lambda one: -self._measured[one.name].gain.percent)

    def _row(self, candidate: Remedy) -> TriedRemedy:
        return next(row for row in self.rows if row.remedy == candidate.name)


def _best(row: TriedRemedy) -> BestSet:
    return BestSet(
        remedies=row.remedy.split("+"),
        gain_percent=row.gain_percent,
        low_percent=row.low_percent,
        high_percent=row.high_percent,
        verdict=row.verdict,
        verdict_text=row.verdict_text,
        memory_bytes=row.memory_bytes,
    )
