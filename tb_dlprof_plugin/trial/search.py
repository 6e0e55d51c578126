"""Which remedies are tried, in which order, alone and together, within a budget of time."""

from __future__ import annotations

import contextlib
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
"""Of the budget for remedies alone, once two of them gain; the rest is for sets of them."""
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
_MOST_AT_ONCE, _CPUS_EACH, _ROOM = 4, 4, 1.5
"""So many processes are started at the same time, as far as there are so many CPUs for each rank, and so many times the
memory of the GPU that each should need."""


class Candidate(Protocol):
    """What the search reads of a remedy; `capture.trial.remedy.Remedy` is one."""

    name: str
    title: str
    rules: tuple[str, ...]
    may_change: str
    group: str
    samples: float
    measures_kernels: bool

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
    _baseline_start_s: float = 0.0
    _at_once: int = 1
    """How many processes may be started at the same time."""
    _three: bool = False
    """Whether the GPU holds three processes of this training."""
    _other_seed: Variant | None = None
    """On its way."""

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
        warming = self.clock()
        self.baseline_step_ms = 1e3 * self.bench.warm_up(self.baseline, self._start_timeout_s)
        self._baseline_start_s = _since_start_s(self.ready) + self.clock() - warming
        first = self.ready[0]
        needed = _MARGIN * (first.memory_bytes or 0) + _CONTEXT_BYTES
        if first.cuda and first.free_memory_bytes is not None and first.free_memory_bytes < needed:
            self.bench.exclusive = True
            self.notes.append(
                "The GPU has no memory for two processes of this training: they take turns as fresh processes, and "
                "the same interval takes longer."
            )
        elif first.cuda and first.free_memory_bytes is not None:
            fitting = int(first.free_memory_bytes / (_ROOM * needed))
            self._three = fitting >= 2
            if not first.measures_kernels:
                ranks = max(1, first.world_size)
                self._at_once = max(1, min(_MOST_AT_ONCE, first.cpu_count // (_CPUS_EACH * ranks), fitting))
        return first

    def measure_seed(self) -> None:
        """Run the first steps with another seed: the yardstick for what is the same."""
        self.listener.phase("The unchanged script with another seed")
        self._other_seed = Variant(self.laboratory, seed_offset=_OTHER_SEED)
        if self.bench.exclusive:
            self.baseline.end()
        try:
            self._other_seed.launch(self._start_timeout_s)
        except VariantError as error:
            self.notes.append(f"With another seed: {error}.")
            self._other_seed = None
        if self._at_once == 1:
            self._finish_seed()

    def _finish_seed(self) -> None:
        variant, self._other_seed = self._other_seed, None
        if variant is None:
            return
        try:
            self._seeds.append(variant.arrived()[0].checks)
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
        known = {one.name: one for one in candidates}
        for_sets_s = (1 - _SINGLE_SHARE) * self.left_s
        started: dict[str, Variant] = {}
        begun = 0
        try:
            for number, candidate in enumerate(ordered):
                row = self.row_of(candidate, forecasts)
                left_s = self.left_s - (for_sets_s if self._sets_are_possible(known) else 0.0)
                start_s = 0.0 if candidate.name in started else self._start_s
                if left_s < start_s + self._least_s:
                    row.not_tried = "The budget was used before its turn: give a larger --budget."
                else:
                    if number >= begun:
                        together = self._together(ordered[number:])
                        begun = number + len(together)
                        self._start(together, started)
                    # Fewer remedies, each for as long as a verdict needs, rather than all of them for too short.
                    share = left_s / (len(ordered) - number) - self._start_s / self._at_once
                    variant = started.pop(candidate.name, None) or self._variant([candidate])
                    try:
                        self._measure(row, [candidate], max(share, self._least_s), self.baseline, variant)
                    finally:
                        variant.end()
                self.rows.append(row)
                self.listener.row(row)
        finally:
            for one in started.values():
                one.end()
        self._finish_seed()
        self.rows.sort(key=lambda one: (one.gain_percent is None, bool(one.not_tried), -(one.gain_percent or 0.0)))

    def _sets_are_possible(self, known: Mapping[str, Candidate]) -> bool:
        """Whether two that gain can be applied at the same time."""
        groups = [known[row.remedy].group for row in self._winners()]
        return len(groups) > 1 and (not all(groups) or len(set(groups)) > 1)

    def _winners(self) -> list[TriedRemedy]:
        return [row for row in self.rows if row.is_gain and row.verdict not in _OTHER_TRAININGS]

    def _together(self, waiting: Sequence[Candidate]) -> Sequence[Candidate]:
        """Those of the next ones that may be started at the same time."""
        room = max(1, self._at_once - (self._other_seed is not None))
        alone = next((number for number, one in enumerate(waiting) if one.measures_kernels), len(waiting))
        return waiting[: max(1, min(room, alone))]

    def _start(self, candidates: Sequence[Candidate], started: dict[str, Variant]) -> None:
        """Start their processes at the same time; each that fails is left out, and gets another start alone."""
        if len(candidates) > 1:
            self.listener.phase(f"{len(candidates)} remedies start: {', '.join(one.name for one in candidates)}")
            for one in candidates:
                started[one.name] = self._variant([one])
                with contextlib.suppress(VariantError):
                    started[one.name].launch(self._start_timeout_s)
            for one in candidates:
                try:
                    started[one.name].arrived()
                except VariantError:
                    del started[one.name]
        # Its process, too, must not run while others are measured.
        self._finish_seed()

    def row_of(self, candidate: Candidate, forecasts: Mapping[str, float]) -> TriedRemedy:
        """The row of a remedy before it is tried."""
        return TriedRemedy(
            remedy=candidate.name,
            title=candidate.title,
            changes=candidate.may_change,
            code=candidate.code(),
            samples=candidate.samples,
            forecast_percent=forecasts.get(candidate.name),
            baseline_start_s=self._baseline_start_s,
        )

    def combine(self, candidates: Sequence[Candidate]) -> BestSet:
        """The set of remedies that gains most: the winners, best first, each added where the set then gains more than
        before, measured against the set without it; then the set against the unchanged script."""
        known = {one.name: one for one in candidates}
        winners = self._winners()
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
                if self.left_s < 2 * self._start_s + 2 * self._least_s:
                    self.notes.append("The budget was used before all sets were tried: give a larger --budget.")
                    break
                added, variant = self._row_of_set([*chosen, one]), self._variant([*chosen, one])
                try:
                    if reference is None:
                        reference = self._start_pair(chosen, variant, one)
                    found = self._measure(added, [*chosen, one], (self.left_s - self._start_s) / 2, reference, variant)
                    if (
                        found is not None
                        and added.verdict not in _OTHER_TRAININGS
                        and found.gain.percent >= _WORTH
                        and found.gain.low > 0
                    ):
                        chosen.append(one)
                        # It runs already.
                        reference, variant = variant, reference
                finally:
                    variant.end()
            if len(chosen) > 1 and reference is not None:
                whole = self._row_of_set(chosen)
                seconds = max(self.left_s - 2 * self._start_s, self._least_s)
                self._measure(whole, chosen, seconds, self.baseline, reference)
                self.sets.append(whole)
                self.listener.row(whole)
                if whole.gain_percent is not None and whole.gain_percent >= (best.gain_percent or 0.0):
                    best = whole
        except VariantError as error:
            self.notes.append(f"{_name(chosen)}: {error}.")
        finally:
            if reference is not None:
                reference.end()
        if best is winners[0]:
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

    def _start_pair(self, chosen: Sequence[Candidate], variant: Variant, one: Candidate) -> Variant:
        """Start a set, and at the same time, where that may be, the variant with one more; the set's process.

        Raises:
            VariantError: the set failed.
        """
        reference = self._variant(chosen)
        if not self._three:
            self.baseline.end()
        try:
            reference.launch(self._start_timeout_s)
            if self._at_once > 1 and not any(each.measures_kernels for each in (*chosen, one)):
                with contextlib.suppress(VariantError):
                    variant.launch(self._start_timeout_s)
            reference.arrived()
            with contextlib.suppress(VariantError):
                # Before the other one is measured; `_measure` starts it again where it failed.
                variant.arrived()
            self.bench.warm_up(reference, self._start_timeout_s)
        except BaseException:
            reference.end()
            raise
        return reference

    def _row_of_set(self, chosen: Sequence[Candidate]) -> TriedRemedy:
        return TriedRemedy(
            remedy=_name(chosen),
            title="; ".join(one.title for one in chosen),
            changes=" ".join(dict.fromkeys(one.may_change for one in chosen)),
            samples=math.prod(one.samples for one in chosen),
            baseline_start_s=self._baseline_start_s,
        )

    def end(self) -> None:
        """End all processes. Never raises."""
        for one in (self.baseline, self._other_seed):
            if one is not None:
                one.end()

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
        self, row: TriedRemedy, candidates: Sequence[Candidate], seconds: float, other: Variant, variant: Variant
    ) -> Measured | None:
        """Fill the row with what ``variant``, which has these remedies, gains over ``other``; None where nothing was
        measured. Where it has no process yet, it is started; the caller ends it."""
        self.listener.phase(" + ".join(one.title for one in candidates))
        try:
            if not variant.alive:
                if self.bench.exclusive:
                    other.end()
                variant.launch(self._start_timeout_s)
            ready = variant.arrived()
            first = ready[0]
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
            warming = self.clock()
            self.bench.warm_up(variant, self._start_timeout_s)
            row.start_s = _since_start_s(ready) + self.clock() - warming
            measured = self.bench.compare(
                other, variant, seconds, lambda found: self.listener.progress(row.remedy, found)
            )
            measured = self.bench.in_a_second_process(
                other, variant, measured, self.left_s - self._start_s, self._start_timeout_s
            )
        except VariantError as error:
            row.verdict, row.verdict_text, row.error = None, "", str(error)
            return None
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


def _since_start_s(ready: Sequence[Ready]) -> float:
    return max(one.since_start_s for one in ready)


def _changes(candidate: Candidate) -> str:
    return str(getattr(getattr(candidate, "changes", None), "value", ""))
