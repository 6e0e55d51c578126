"""Processes of one trial: how they are started, and what one gains over another one."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tb_dlprof_plugin.model.trial_result import TriedRemedy
from tb_dlprof_plugin.trial.experiment import Bench, Measured, least_s
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy, environment_of
from tb_dlprof_plugin.trial.protocol import Checks, Ready
from tb_dlprof_plugin.trial.statistics import WORTH, Gain
from tb_dlprof_plugin.trial.variant import Laboratory, PortTakenError, Variant, VariantError
from tb_dlprof_plugin.trial.verdict import compare

_START_FACTOR, _START_MORE_S = 4.0, 60.0
"""A variant may take so many times as long to start as the baseline, and so many seconds more: it may compile."""
_LEAST_START_S = 60.0
"""The baseline may take so long until its first steps are done, or the budget, where that is longer."""
_OTHER_SEED = 1
_MARGIN = 1.1
"""Of the baseline's memory that must be free for a second process."""
_CONTEXT_BYTES = 600e6
"""Of a CUDA context with its libraries."""
_MOST_AT_ONCE, _CPUS_EACH, _ROOM = 4, 4, 1.5
"""So many processes are started at the same time, as far as there are so many CPUs for each rank, and so many times the
memory of the GPU that each should need."""


class Listener(Protocol):
    """Receives the progress of a trial."""

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
class Measuring:
    """Measures variants of one script.

    Attributes:
        laboratory: what its processes share.
        bench: takes turns.
        deadline_s: of `clock`.
        listener: receives the progress.
        baseline: the unchanged script.
        at_once: how many processes may be started at the same time.
        fitting: how many processes more than the baseline the GPU has memory for; None: that is not known.
    """

    laboratory: Laboratory
    bench: Bench
    deadline_s: float
    listener: Listener
    clock: Callable[[], float] = time.monotonic
    baseline: Variant = field(init=False)
    baseline_step_ms: float = math.nan
    ready: list[Ready] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    at_once: int = 1
    fitting: int | None = None
    start_s: float = 0.0
    _baseline_start_s: float = 0.0
    _seeds: list[Checks] = field(default_factory=list)
    _other_seed: Variant | None = None
    """On its way."""

    def __post_init__(self) -> None:
        self.baseline = Variant(self.laboratory)

    @property
    def left_s(self) -> float:
        """Of the budget."""
        return self.deadline_s - self.clock()

    @property
    def least_s(self) -> float:
        """Seconds of a measurement in which a gain can be certain."""
        return least_s(self.baseline_step_ms / 1e3)

    def start_baseline(self) -> Ready:
        """Start the unchanged script; what its first rank says.

        Raises:
            VariantError: it does not train, or fails by itself.
        """
        self.listener.phase("The unchanged script starts")
        began = self.clock()
        self.ready = self.baseline.start(max(_LEAST_START_S, self.left_s), self.left_s)
        self.start_s = self.clock() - began
        warming = self.clock()
        self.baseline_step_ms = 1e3 * self.bench.warm_up(self.baseline, self._start_timeout_s)
        self._baseline_start_s = _since_start_s(self.ready) + self.clock() - warming
        first = self.ready[0]
        if first.cuda and first.free_memory_bytes is not None:
            needed = _MARGIN * (first.memory_bytes or 0) + _CONTEXT_BYTES
            self.fitting = int(first.free_memory_bytes / (_ROOM * needed))
            if first.free_memory_bytes < needed:
                self._one_at_a_time("The GPU has no memory for two processes of this training")
            elif not first.measures_kernels:
                cpus_each = _CPUS_EACH * max(1, first.world_size)
                self.at_once = max(1, min(_MOST_AT_ONCE, first.cpu_count // cpus_each, self.fitting))
        return first

    def measure_seed(self) -> None:
        """Run the first steps with another seed: the yardstick for what is the same. It may run on its way while others
        start."""
        self.listener.phase("The unchanged script with another seed")
        self._other_seed = Variant(self.laboratory, seed_offset=_OTHER_SEED)
        if self.bench.exclusive:
            self.baseline.end()
        try:
            self._other_seed.launch(self._start_timeout_s)
        except VariantError as error:
            self.notes.append(f"With another seed: {error}.")
            self._other_seed = None
        if self.at_once == 1:
            self.finish_seed()

    def finish_seed(self) -> None:
        """Wait for the process with another seed, where it is on its way."""
        variant, self._other_seed = self._other_seed, None
        if variant is None:
            return
        try:
            self._seeds.append(variant.arrived()[0].checks)
        except VariantError as error:
            if isinstance(error, PortTakenError) and not self.bench.exclusive:
                self._one_at_a_time("The command names the port at which its ranks meet")
                self.measure_seed()
                return
            self.notes.append(f"With another seed: {error}.")
        finally:
            variant.end()

    def _one_at_a_time(self, why: str) -> None:
        self.bench.exclusive, self.at_once = True, 1
        self.notes.append(f"{why}: processes are started afresh in turns, and the same interval takes longer.")

    def room(self, more: int = 0) -> int:
        """How many processes may be started at the same time next to the baseline and so many others.

        Args:
            more: processes that run.
        """
        if self.fitting is None:
            return self.at_once
        return max(1, min(self.at_once - (self._other_seed is not None), self.fitting - more))

    def start_together(self, sets: Sequence[Sequence[Remedy]]) -> list[Variant]:
        """Variants with these remedies, started at the same time where they are several; the caller ends them. Of those
        that fail, `measure` starts another process alone, and says why it failed."""
        variants = [self.variant(one) for one in sets]
        if len(variants) > 1:
            self.listener.phase(f"{len(variants)} processes start: {', '.join(map(name_of, sets))}")
            try:
                for one in variants:
                    with contextlib.suppress(VariantError):
                        one.launch(self._start_timeout_s)
                for one in variants:
                    with contextlib.suppress(VariantError):
                        one.arrived()
            except BaseException:
                for one in variants:
                    one.end()
                raise
        # None may run while others are measured.
        self.finish_seed()
        return variants

    def variant(self, candidates: Sequence[Remedy]) -> Variant:
        """One with these remedies, not started."""
        return Variant(
            self.laboratory,
            [one.name for one in candidates],
            environment_of(candidates),
            samples=math.prod(one.samples for one in candidates),
        )

    def row_of(self, candidates: Sequence[Remedy]) -> TriedRemedy:
        """The row of remedies before they are tried."""
        return TriedRemedy(
            remedy=name_of(candidates),
            title="; ".join(one.title for one in candidates),
            changes=" ".join(dict.fromkeys(one.may_change for one in candidates)),
            code="".join(one.code() for one in candidates),
            samples=math.prod(one.samples for one in candidates),
            baseline_start_s=self._baseline_start_s,
        )

    def measure(
        self,
        row: TriedRemedy,
        candidates: Sequence[Remedy],
        seconds: float,
        other: Variant,
        variant: Variant,
        share: float = 0.0,
    ) -> Measured | None:
        """Fill the row with what ``variant`` gains over ``other``; None where nothing was measured.

        Args:
            row: what is filled.
            candidates: the remedies of ``variant``.
            seconds: for the quads.
            other: what it is measured against.
            variant: where it has no process yet, it is started; the caller ends it.
            share: of the gain that half of its interval may be, where that is more than the precision asked for.
        """
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
                random=any(one.changes is Changes.RANDOM for one in candidates),
                training="; ".join(one.may_change for one in candidates if one.changes is Changes.TRAINING),
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
                other, variant, seconds, lambda found: self.listener.progress(row.remedy, found), share
            )
        except VariantError as error:
            row.verdict, row.verdict_text, row.error = None, "", str(error)
            return None
        _fill(row, measured)
        return measured

    def warm_up(self, variant: Variant) -> None:
        """Run it until its step is steady; it is started where it is not. Raises VariantError."""
        self.bench.warm_up(variant, self._start_timeout_s)

    def confirm(self, row: TriedRemedy, first: Measured, variant: Variant) -> None:
        """Measure a second process of ``variant``, where its gain depends on it, or say that there was no time."""
        try:
            measured = self.bench.in_a_second_process(
                self.baseline, variant, first, self.left_s - self.start_s, self._start_timeout_s
            )
        except VariantError as error:
            row.is_gain, row.stopped = False, f"the second process: {error}"
            return
        _fill(row, measured)

    def end(self) -> None:
        """End the processes that are no variant's of a caller. Never raises."""
        for one in (self.baseline, self._other_seed):
            if one is not None:
                one.end()

    @property
    def _start_timeout_s(self) -> float:
        return _START_FACTOR * self.start_s + _START_MORE_S


def name_of(candidates: Sequence[Remedy]) -> str:
    """Of a set of remedies, such as ``tf32+compile``."""
    return "+".join(one.name for one in candidates)


def _fill(row: TriedRemedy, measured: Measured) -> None:
    found = measured.gain
    row.quads, row.stopped = found.quads, measured.stopped
    row.is_gain = found.certain and found.percent >= WORTH
    row.before_ms, row.after_ms = measured.before_ms, measured.after_ms
    row.gain_percent = found.percent
    row.low_percent = found.low if math.isfinite(found.low) else None
    row.high_percent = found.high if math.isfinite(found.high) else None
    row.memory_bytes = measured.peak_bytes


def _since_start_s(ready: Sequence[Ready]) -> float:
    return max(one.since_start_s for one in ready)
