"""Which remedies are tried, in which order, alone and together, within a budget of time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tb_dlprof_plugin.model.trial_result import BestSet, TriedRemedy
from tb_dlprof_plugin.trial.experiment import Bench, Measured, least_s
from tb_dlprof_plugin.trial.protocol import Checks, Ready
from tb_dlprof_plugin.trial.statistics import Gain
from tb_dlprof_plugin.trial.variant import Laboratory, Variant, VariantError
from tb_dlprof_plugin.trial.verdict import BROKEN, DIFFERS, compare

_SINGLE_SHARE = 0.6
"""Of the budget for remedies alone, once one of them gains; the rest is for sets of them."""
_START_FACTOR, _START_MORE_S = 4.0, 60.0
"""A variant may take so many times as long to start as the baseline, and so many seconds more: it may compile."""
_OTHER_SEED = 1
_MARGIN = 1.1
"""Of the baseline's memory that must be free for a second process."""
_CONTEXT_BYTES = 600e6
"""Of a CUDA context with its libraries."""
_OTHER_TRAININGS = (BROKEN, DIFFERS)
"""Verdicts with which a remedy is in no best set."""
_WORTH = 0.5
"""Percent that one more remedy must add to a set."""


class Candidate(Protocol):
    """What the search reads of a remedy; `capture.trial.remedy.Remedy` is one."""

    name: str
    title: str
    rules: tuple[str, ...]
    may_change: str
    group: str
    samples: float

    def environment(self) -> Mapping[str, str]:
        """Variables of the process."""
        ...

    def code(self) -> str:
        """How to write it."""
        ...


class Listener(Protocol):
    """Receives the progress of a search."""

    def phase(self, text: str) -> None:
        """Something begins that takes seconds."""
        ...

    def progress(self, remedy: str, gain: Gain) -> None:
        """A quad was measured."""
        ...

    def row(self, row: TriedRemedy) -> None:
        """A remedy is done."""
        ...


@dataclass
class Search:
    """One trial of a script.

    Attributes:
        laboratory: what its processes share.
        bench: measures.
        deadline_s: of `clock`.
        listener: receives the progress.
    """

    laboratory: Laboratory
    bench: Bench
    deadline_s: float
    listener: Listener
    clock: Callable[[], float] = time.monotonic
    baseline: Variant = field(init=False)
    baseline_step_ms: float = math.nan
    ready: list[Ready] = field(default_factory=list)
    rows: list[TriedRemedy] = field(default_factory=list)
    sets: list[TriedRemedy] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _seeds: list[Checks] = field(default_factory=list)
    _start_s: float = 0.0

    def __post_init__(self) -> None:
        self.baseline = Variant(self.laboratory)

    @property
    def left_s(self) -> float:
        """Of the budget."""
        return self.deadline_s - self.clock()

    def start_baseline(self) -> Ready:
        """Start the unchanged script; what its first rank says.

        Raises:
            VariantError: it does not train, or fails by itself.
        """
        self.listener.phase("The unchanged script starts")
        began = self.clock()
        self.ready = self.baseline.start(max(600.0, self.left_s))
        self._start_s = self.clock() - began
        self.baseline_step_ms = 1e3 * self.bench.warm_up(self.baseline, self._start_timeout_s)
        first = self.ready[0]
        needed = _MARGIN * (first.memory_bytes or 0) + _CONTEXT_BYTES
        if first.cuda and first.free_memory_bytes is not None and first.free_memory_bytes < needed:
            self.bench.exclusive = True
            self.notes.append(
                "The GPU has no memory for two processes of this training: they take turns as fresh processes, and "
                "the same interval takes longer."
            )
        return first

    def measure_seed(self) -> None:
        """Run the first steps with another seed: the yardstick for what is the same."""
        self.listener.phase("The unchanged script with another seed")
        variant = Variant(self.laboratory, seed_offset=_OTHER_SEED)
        try:
            if self.bench.exclusive:
                self.baseline.end()
            self._seeds.append(variant.start(self._start_timeout_s)[0].checks)
        except VariantError as error:
            self.notes.append(f"With another seed: {error}.")
        finally:
            variant.end()

    def try_alone(self, candidates: Sequence[Candidate], forecasts: Mapping[str, float]) -> None:
        """Each remedy against the unchanged script, those with the highest forecast first, while the budget lasts.

        Args:
            candidates: remedies that may be tried.
            forecasts: by name, percent of the step's time.
        """
        ordered = sorted(candidates, key=lambda one: -forecasts.get(one.name, -1.0))
        for_sets_s = (1 - _SINGLE_SHARE) * self.left_s
        for number, candidate in enumerate(ordered):
            row = self.row_of(candidate, forecasts)
            left_s = self.left_s - (for_sets_s if any(one.is_gain for one in self.rows) else 0.0)
            if left_s < self._start_s + self._least_s:
                row.not_tried = "The budget was used before its turn: give a larger --budget."
            else:
                # Fewer remedies, each for as long as a verdict needs, rather than all of them for too short.
                share = left_s / (len(ordered) - number) - self._start_s
                self._measure(row, [candidate], max(share, self._least_s))
            self.rows.append(row)
            self.listener.row(row)
        self.rows.sort(key=lambda one: (one.gain_percent is None, bool(one.not_tried), -(one.gain_percent or 0.0)))

    def row_of(self, candidate: Candidate, forecasts: Mapping[str, float]) -> TriedRemedy:
        """The row of a remedy before it is tried."""
        return TriedRemedy(
            remedy=candidate.name,
            title=candidate.title,
            changes=candidate.may_change,
            code=candidate.code(),
            samples=candidate.samples,
            forecast_percent=forecasts.get(candidate.name),
            baseline_start_s=self._start_s,
        )

    def combine(self, candidates: Sequence[Candidate]) -> BestSet:
        """The set of remedies that gains most: the winners, best first, each added where the set then gains more than
        before, measured against the set without it; then the set against the unchanged script."""
        known = {one.name: one for one in candidates}
        winners = [row for row in self.rows if row.is_gain and row.verdict not in _OTHER_TRAININGS]
        if not winners:
            return BestSet()
        chosen = [known[winners[0].remedy]]
        best = winners[0]
        reference: Variant | None = None
        try:
            for row in winners[1:]:
                one = known[row.remedy]
                if any(one.group and one.group == other.group for other in chosen):
                    continue
                # The last measurement, of the whole set, has to fit as well.
                if self.left_s < 3 * self._start_s + 2 * self._least_s:
                    self.notes.append("The budget was used before all sets were tried: give a larger --budget.")
                    break
                if reference is None:
                    reference = self._variant(chosen)
                    self.baseline.end()
                    reference.start(self._start_timeout_s)
                    self.bench.warm_up(reference, self._start_timeout_s)
                added = self._row_of_set([*chosen, one])
                found = self._measure(added, [*chosen, one], (self.left_s - self._start_s) / 2, reference)
                if (
                    found is None
                    or added.verdict in _OTHER_TRAININGS
                    or found.gain.percent < _WORTH
                    or found.gain.low <= 0
                ):
                    continue
                chosen.append(one)
                reference.end()
                reference = None
        except VariantError as error:
            self.notes.append(f"{_name(chosen)}: {error}.")
        finally:
            if reference is not None:
                reference.end()
        if len(chosen) > 1:
            whole = self._row_of_set(chosen)
            self._measure(whole, chosen, max(self.left_s - 2 * self._start_s, self._least_s))
            self.sets.append(whole)
            self.listener.row(whole)
            if whole.gain_percent is not None and whole.gain_percent >= (best.gain_percent or 0.0):
                best = whole
            else:
                chosen = chosen[:1]
        return BestSet(
            remedies=[one.name for one in chosen],
            gain_percent=best.gain_percent,
            low_percent=best.low_percent,
            high_percent=best.high_percent,
            verdict=best.verdict,
            verdict_text=best.verdict_text,
            memory_bytes=best.memory_bytes,
        )

    def _row_of_set(self, chosen: Sequence[Candidate]) -> TriedRemedy:
        return TriedRemedy(
            remedy=_name(chosen),
            title="; ".join(one.title for one in chosen),
            changes=" ".join(dict.fromkeys(one.may_change for one in chosen)),
            samples=math.prod(one.samples for one in chosen),
            baseline_start_s=self._start_s,
        )

    def end(self) -> None:
        """End all processes. Never raises."""
        self.baseline.end()

    @property
    def _least_s(self) -> float:
        """Seconds of a measurement in which a gain can be certain."""
        return least_s(self.baseline_step_ms / 1e3)

    @property
    def _start_timeout_s(self) -> float:
        return _START_FACTOR * self._start_s + _START_MORE_S

    def _variant(self, candidates: Sequence[Candidate]) -> Variant:
        environment: dict[str, str] = {}
        for one in candidates:
            environment |= one.environment()
        return Variant(
            self.laboratory,
            [one.name for one in candidates],
            environment,
            samples=math.prod(one.samples for one in candidates),
        )

    def _measure(
        self, row: TriedRemedy, candidates: Sequence[Candidate], seconds: float, against: Variant | None = None
    ) -> Measured | None:
        """Fill the row; None where nothing was measured."""
        self.listener.phase(" + ".join(one.title for one in candidates))
        variant = self._variant(candidates)
        other = against or self.baseline
        try:
            began = self.clock()
            if self.bench.exclusive:
                other.end()
            first = variant.start(self._start_timeout_s)[0]
            same = compare(
                self.ready[0].checks,
                first.checks,
                self._seeds,
                random=any(_changes(one) == "random numbers" for one in candidates),
                training="; ".join(one.may_change for one in candidates if _changes(one) == "training"),
            )
            row.verdict, row.verdict_text = same.verdict, same.detail
            row.code = "".join(first.codes.values()) or row.code
            if len(first.no_effect) == len(candidates):
                row.verdict, row.verdict_text = None, ""
                row.no_effect = " ".join(first.no_effect.values())
                return None
            self.bench.warm_up(variant, self._start_timeout_s)
            row.start_s = self.clock() - began
            measured = self.bench.compare(
                other, variant, seconds, lambda found: self.listener.progress(row.remedy, found)
            )
            measured = self.bench.in_a_second_process(
                other, variant, measured, self.left_s - self._start_s, self._start_timeout_s
            )
        except VariantError as error:
            row.verdict, row.verdict_text, row.error = None, "", str(error)
            return None
        finally:
            variant.end()
        found = measured.gain
        row.quads, row.is_gain, row.stopped = found.quads, found.certain, measured.stopped
        row.before_ms, row.after_ms = measured.before_ms, measured.after_ms
        row.gain_percent = found.percent
        row.low_percent = found.low if math.isfinite(found.low) else None
        row.high_percent = found.high if math.isfinite(found.high) else None
        row.memory_bytes = measured.peak_bytes
        return measured


def _name(chosen: Sequence[Candidate]) -> str:
    return "+".join(one.name for one in chosen)


def _changes(candidate: Candidate) -> str:
    return str(getattr(getattr(candidate, "changes", None), "value", ""))
