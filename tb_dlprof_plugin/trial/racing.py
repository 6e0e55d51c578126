"""What changes of a set of remedies gain over it, in one race; rows of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.model.trial_result import OTHER_TRAININGS, TriedRemedy
from tb_dlprof_plugin.trial.experiment import Measured, quad_s
from tb_dlprof_plugin.trial.inside.remedy import Remedy
from tb_dlprof_plugin.trial.measuring import Measuring, fill
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS, LOOKS, WORTH, Gain, together
from tb_dlprof_plugin.trial.switched import Switched
from tb_dlprof_plugin.trial.variant import VariantError

SCREENING = 0.1
"""Share of a gain that half of its interval may be, while it is only to be seen which set is better."""
ABOUT = 3.0
"""Percent by which two sets differ at most that are about as fast: compiled, one of them may be the faster one."""
SLOWER = "Its first steps take much longer."
_CLAIMED = LOOKS[1]
"""Quads of a gain that is claimed: four may lie together by chance on a busy machine."""
_LEAST_ROUNDS = 2
"""Quads for which there has to be time before another one enters a race."""
_NEEDLESS = 1.0
"""Percent of the step that a remedy of a set may cost when it is left out."""
_HARDLY = 1.0
"""Percent that a remedy usually gains at most which has to show that it is needed."""

Chunk = tuple[Remedy, ...]


@dataclass(frozen=True, eq=False)
class Change:
    """Of a set: remedies less and more; what is added takes the place of others of its group."""

    out: Chunk = ()
    added: Chunk = ()

    def of(self, chosen: Sequence[Remedy]) -> list[Remedy]:
        """The set with it."""
        groups = {one.group for one in self.added if one.group}
        return [*(one for one in chosen if one not in self.out and one.group not in groups), *self.added]

    def is_better(self, found: Gain | None) -> bool:
        """Whether it makes the set better by what it gains: where it cannot be seen what is needed, that stays in which
        usually gains more than a little."""
        if found is None:
            return False
        if self.added:
            return found.percent > WORTH
        hardly = all(one.usual_percent <= _HARDLY for one in self.out)
        return found.percent - (0.0 if hardly else found.half_width / 2) >= -_NEEDLESS


@dataclass
class Racing(Measuring):
    """Races of sets of remedies.

    Attributes:
        rows: of single remedies: measured, or why not.
        sets: of several, measured against the unchanged script.
        forecasts: by name, percent that the advice on an earlier recording expects.
    """

    rows: list[TriedRemedy] = field(default_factory=list)
    sets: list[TriedRemedy] = field(default_factory=list)
    forecasts: Mapping[str, float] = field(default_factory=dict)
    _pace_ms: float | None = None
    """Of the first set that gained."""

    @property
    def has_figures(self) -> bool:
        """Whether anything was measured against the unchanged script."""
        return any(row.quads for row in (*self.rows, *self.sets))

    def quad_s(self, chosen: Sequence[Remedy]) -> float:
        """Seconds of four blocks of sets that are about as fast as this one."""
        return quad_s((self._pace_ms if chosen and self._pace_ms else self.baseline_step_ms) / 1e3)

    def is_disturbed(self) -> bool:
        """Whether a start slows the steps of the running script, so that times of the unchanged one are no result."""
        return False

    def raced(self, chosen: list[Remedy], changes: Sequence[Change], seconds: float) -> dict[Change, Gain | None]:
        """What changes gain over a set, of as many as the seconds allow; None for what fails or trains otherwise."""
        until_s = self.clock() + seconds
        base = self.variant(chosen) if chosen else self.baseline
        gains: dict[Change, Gain | None] = {}
        racing: list[tuple[Change, TriedRemedy, Switched]] = []
        each_s = _LEAST_ROUNDS * self.quad_s(chosen)
        for change in changes:
            if gains and self.clock() + (len(racing) + 1) * each_s > until_s:
                break
            larger = change.of(chosen)
            row, variant = self.new_row(larger), self.variant(larger)
            gains[change] = None
            if isinstance(variant, Switched):
                if self._trains(change, row, larger, variant):
                    racing.append((change, row, variant))
                continue
            try:
                alone = self.measure(row, larger, self.look_s, base, variant, SCREENING)
            finally:
                variant.end()
                if chosen:
                    self.keep_idle(chosen, base)
            if alone is not None and row.verdict not in OTHER_TRAININGS:
                gains[change] = self._gain(chosen, row, alone)
            else:
                self._tell(change, row)
        if not racing:
            return gains
        if self.left_s < 0:
            return {}
        if not self.bench.is_warm(base):
            self.bench.warm_up(base, self.start_timeout_s)
        ran = []
        for (change, row, _), measured in zip(racing, self._race(chosen, racing, until_s), strict=True):
            if isinstance(measured, VariantError):
                row.verdict, row.error = None, str(measured)
                self._tell(change, row)
            elif measured is None:
                del gains[change]
            else:
                self._gain(chosen, row, measured)
                ran.append((change, measured.log_ratios))
        for (change, _), gain in zip(ran, together([ratios for _, ratios in ran]), strict=True):
            gains[change] = gain
        return gains

    def _race(
        self, chosen: list[Remedy], racing: Sequence[tuple[Change, TriedRemedy, Switched]], until_s: float
    ) -> list[Measured | VariantError | None]:
        def told(number: int, gain: Gain) -> None:
            self.listener.progress(racing[number][1].remedy, gain)

        variants = [variant for _, _, variant in racing]
        base = self.variant(chosen) if chosen else self.baseline
        # The larger the gain, the less matters what is added to it.
        gained = (self.row_for(chosen).gain_percent or 0.0) if chosen else 0.0
        half_width = min(SCREENING * gained, ABOUT)
        claims = 0 if chosen else LEAST_QUADS if self.is_disturbed() else _CLAIMED
        return self.bench.race(base, variants, until_s - self.clock(), told, claims, half_width)

    def _trains(self, change: Change, row: TriedRemedy, larger: Sequence[Remedy], variant: Switched) -> bool:
        """Whether a changed set works, trains the same, and is worth its measurement."""
        ready = self.checked(row, larger, variant)
        idle = {} if ready is None else ready.no_effect
        if ready is not None and self.is_slow(ready):
            row.stopped = SLOWER
        elif (
            ready is not None
            and row.verdict not in OTHER_TRAININGS
            and not any(one.name in idle for one in change.added)
        ):
            return True
        row.no_effect = row.no_effect or " ".join(idle.get(one.name, "") for one in change.added)
        self._tell(change, row)
        return False

    def _tell(self, change: Change, row: TriedRemedy) -> None:
        """Say in the row of what was added why it has no figure."""
        if len(change.added) == 1 and not change.out and not row.not_tried:
            self.note(change.added[0], error=row.error, no_effect=row.no_effect, verdict=row.verdict,
                       verdict_text=row.verdict_text, stopped=row.stopped)  # fmt: skip

    def _gain(self, chosen: Sequence[Remedy], row: TriedRemedy, measured: Measured) -> Gain:
        """What was measured; against the unchanged script it is a row of the result, unless it has too few quads for an
        interval, or could claim a gain from times of which a start has made some longer."""
        few = measured.gain.quads < LEAST_QUADS and not measured.stopped
        if not chosen and not few and not (self.is_disturbed() and measured.gain.percent > WORTH):
            fill(row, measured)
            self.keep_row(row)
            self.listener.row(row)
        return measured.gain

    def new_row(self, candidates: Sequence[Remedy]) -> TriedRemedy:
        row = self.row_of(candidates)
        if len(candidates) == 1:
            row.forecast_percent = self.forecasts.get(row.remedy)
        return row

    def row_for(self, candidates: Sequence[Remedy]) -> TriedRemedy:
        """The row of a remedy or a set, which is made where there is none."""
        rows = self.rows if len(candidates) == 1 else self.sets
        found = next((row for row in rows if row.names == names_of(candidates)), None)
        if found is None:
            found = self.new_row(candidates)
            rows.append(found)
        return found

    def keep_row(self, row: TriedRemedy) -> None:
        """In the place of the row of the same remedies."""
        rows = self.rows if len(row.names) == 1 else self.sets
        rows[:] = [*(one for one in rows if one.names != row.names), row]

    def note(self, one: Remedy, **values: object) -> None:
        """Say in the row of a remedy why it has no figure."""
        row = self.row_for([one])
        for name, value in values.items():
            setattr(row, name, value)


def names_of(candidates: Sequence[Remedy]) -> frozenset[str]:
    return frozenset(one.name for one in candidates)
