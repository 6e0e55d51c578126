"""Measures a variant against another one in quads of blocks, A B B A, until it is known well enough or time is up."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tb_dlprof_plugin.trial.protocol import Block
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS, LOOKS, WORTH, Gain, gain, is_lost
from tb_dlprof_plugin.trial.switched import Switched
from tb_dlprof_plugin.trial.variant import Variant, VariantError

BLOCK_S = 0.15
"""Seconds of a block: long compared with the start from an idle GPU, short compared with drifts of clocks."""
_SHORT_BLOCK_S = 0.05
"""The same within one process, where no other one has to wake up first. A busy core changes its pace within seconds:
of the same seconds, more and shorter quads tell more."""
_LEAST_STEPS, _MOST_STEPS = 2, 2000
_STEPS_OF_SWITCH = 3
_HOPELESS = 3.0
"""Times the other's step: a variant that is so slow is measured once."""
LOOK = 6
"""Quads that show which of two sets is better."""
_SLOWER_TWICE, _FASTER_THRICE = 2, 3
"""Quads after which a variant has run its race where it was slower, or faster, in each of them."""
_WARM_BLOCKS = 6
"""At most, until the step is steady."""
_STEADY = 0.08
"""Relative difference of two blocks that counts as steady."""
_LONGEST_BLOCK_S = 120.0
_LOSES = "it clearly loses"
_GAINS_LESS = "another set gains more"
_BESIDE_ANOTHER = LOOKS[1]
"""Quads after which a set need not be known better that seems to gain less than another one."""
SURE = 20.0
"""Percent: a larger gain than two processes of one script ever differ by."""


class TakesTurns(Protocol):
    """What runs steps when it is its turn: a `Variant`, remedies switched on in a process, or the step of a test."""

    samples: float
    """Samples per step relative to the baseline's."""

    @property
    def host(self) -> object:
        """Its process."""
        ...

    @property
    def alive(self) -> bool:
        """Whether it has a process."""
        ...

    def start(self, timeout_s: float) -> object:
        """Start a new process. Raises VariantError."""
        ...

    def run(self, steps: int, timeout_s: float) -> Block:
        """Run steps. Raises VariantError."""
        ...

    def end(self) -> None:
        """End it. Never raises."""
        ...


@dataclass
class _Quads:
    """Of one variant against another one, so far: seconds of a step, and log ratios."""

    a_s: list[float] = field(default_factory=list)
    b_s: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    peak_bytes: int | None = None

    def add(self, a_s: float, b_s: float) -> None:
        self.a_s.append(a_s)
        self.b_s.append(b_s)
        self.ratios.append(math.log(b_s / a_s))

    def measured(self, stopped: str, among: int = 1) -> Measured:
        before_ms, after_ms = 1e3 * _mean(self.a_s), 1e3 * _mean(self.b_s)
        return Measured(gain(self.ratios, among), before_ms, after_ms, self.peak_bytes, self.ratios, stopped)


@dataclass
class Measured:
    """A variant against another one.

    Attributes:
        gain: of time per sample.
        before_ms, after_ms: of a step; ``after_ms`` per as many samples as a step of the other one has.
        peak_bytes: the most that tensors held, of the variant.
        stopped: why no more quads were measured.
    """

    gain: Gain
    before_ms: float
    after_ms: float
    peak_bytes: int | None
    log_ratios: list[float] = field(default_factory=list)
    stopped: str = ""


class Bench:
    """Takes turns between two variants.

    Args:
        precision_percent: half of the interval at which a measurement ends.
        exclusive: the GPU has memory for one process at a time: at each change of turns the other one is ended.
        clock: seconds.
        block_s: seconds of a block between processes.
    """

    def __init__(
        self,
        precision_percent: float,
        exclusive: bool = False,
        clock: Callable[[], float] = time.monotonic,
        block_s: float = BLOCK_S,
    ) -> None:
        self._precision, self._clock, self._between_s = precision_percent, clock, block_s
        self.exclusive = exclusive
        self.limit: Callable[[float], float] = lambda seconds: seconds
        """How long something may take at most that should take so long."""
        self.left_s: Callable[[], float] = lambda: math.inf
        """Seconds of the budget."""
        self._steps: weakref.WeakKeyDictionary[TakesTurns, int] = weakref.WeakKeyDictionary()
        """Of a block, of what has been warmed up."""

    def warm_up(self, variant: TakesTurns, start_timeout_s: float) -> float:
        """Run blocks until the step is steady; the step in seconds.

        Raises:
            VariantError: it failed.
        """
        before, step_s = math.inf, math.inf
        steps = _LEAST_STEPS
        for _ in range(_WARM_BLOCKS):
            block = variant.run(steps, self.limit(max(start_timeout_s, _LONGEST_BLOCK_S)))
            step_s = block.seconds / block.steps
            enough = block.seconds >= self._block_s(variant) / 4
            if enough and abs(step_s / before - 1) < _STEADY:
                break
            before = step_s if enough else math.inf
            steps = _steps_for(step_s, self._block_s(variant))
        self._steps[variant] = _steps_for(step_s, self._block_s(variant))
        return step_s

    def is_warm(self, variant: TakesTurns) -> bool:
        """Whether it need not be warmed up."""
        return variant.alive and variant in self._steps

    def compare(
        self,
        a: TakesTurns,
        b: TakesTurns,
        seconds: float,
        told: Callable[[Gain], None] | None = None,
        share: float = 0.0,
        enough: Callable[[Sequence[float]], str] | None = None,
        than: float = -math.inf,
    ) -> Measured:
        """The gain of ``b`` over ``a``, from quads for at most so many seconds; at least the first quad is taken.

        Args:
            a, b: what takes turns.
            seconds: for the quads.
            told: called after each quad.
            share: of the gain that half of its interval may be, where that is more than the precision asked for.
            enough: why no more quads are needed after these log ratios, "" where they are; by the precision where None.
            than: percent that another one gains: what gains less is measured shortly.

        Raises:
            VariantError: one of them failed.
        """
        until = self._clock() + seconds
        quads = _Quads()
        while True:
            began = self._clock()
            try:
                hopeless = self._quad(a, b, quads, enough is None)
            except VariantError:
                if quads.ratios and self._clock() > until:
                    return quads.measured("the time is up")
                raise
            found = gain(quads.ratios)
            if told is not None:
                told(found)
            now = self._clock()
            # On a busy machine the first look comes later.
            ends = until if found.quads >= LEAST_QUADS else min(until + seconds, now + self.left_s())
            done = self._enough(found, share, than) if enough is None else enough(quads.ratios)
            stopped = _LOSES if hopeless else done
            if not stopped and 2 * now - began > ends:
                stopped = "the time is up"
            if stopped:
                return quads.measured(stopped)

    def race(
        self,
        a: TakesTurns,
        others: Sequence[TakesTurns],
        seconds: float,
        told: Callable[[int, Gain], None],
        claims: int = 0,
        half_width: float = 0.0,
    ) -> list[Measured | VariantError | None]:
        """Which of these are better than ``a``, all in one process: a quad of each, round after round, for at most so
        many seconds. What was slower, or faster, in each of its first quads has run, and what is known well.

        Args:
            a, others: what takes turns.
            seconds: for all of them.
            told: called with the place in ``others`` after each quad.
            claims: for a claim and not for a choice alone: what is faster runs until that is certain, for so many quads
                at least, and what is slower for as many as a figure needs.
            half_width: percent, of an interval with which a gain is known, where it is more than the precision.

        Returns:
            Of each, what was measured, or its failure; None where there was no time for a quad.
        """
        until = self._clock() + seconds
        quads = [_Quads() for _ in others]
        failed: dict[int, VariantError] = {}
        lost: set[int] = set()
        running = list(range(len(others)))
        while running:
            for number in list(running):
                began = self._clock()
                try:
                    if not quads[number].ratios:
                        # Its first block is slower than the next ones.
                        self._steps[others[number]] = _LEAST_STEPS
                        step_s, _ = self._turn(others[number], a)
                        self._steps[others[number]] = _steps_for(step_s, self._block_s(others[number]))
                    if self._quad(a, others[number], quads[number], True):
                        lost.add(number)
                except VariantError as error:
                    failed[number] = error
                    running.remove(number)
                    continue
                ratios = quads[number].ratios
                found = gain(ratios)
                told(number, found)
                needed = LEAST_QUADS if claims else _SLOWER_TWICE
                slower = len(ratios) >= needed and (min(ratios) > 0 or (len(ratios) >= LEAST_QUADS and found.high < 0))
                faster = len(ratios) >= _FASTER_THRICE and _percent(max(ratios)) > WORTH
                known = len(ratios) >= LEAST_QUADS and found.half_width <= max(self._precision, half_width)
                if claims:
                    certain = gain(ratios, len(others)).certain
                    faster = certain and len(ratios) >= claims
                    known = known and certain == faster
                if number in lost or slower or faster or known or len(ratios) >= LOOKS[-1]:
                    running.remove(number)
                now = self._clock()
                if 2 * now - began > until:
                    running = []
                    break
        return [
            failed.get(number) or (one.measured(_LOSES if number in lost else "", len(others)) if one.ratios else None)
            for number, one in enumerate(quads)
        ]

    def _quad(self, a: TakesTurns, b: TakesTurns, quads: _Quads, gives_up: bool) -> bool:
        """Add a quad; whether the first one shows that ``b`` is hopelessly slow. Raises VariantError."""
        first = self._turn(a, b)
        middle = [self._turn(b, a), self._turn(b, a)]
        slower = min(one[0] for one in middle) / b.samples > _HOPELESS * first[0] / a.samples
        hopeless = gives_up and not quads.ratios and slower
        last = first if hopeless else self._turn(a, b)
        quads.add((first[0] + last[0]) / 2, sum(one[0] for one in middle) / 2 / b.samples * a.samples)
        quads.peak_bytes = max((one[1] for one in middle if one[1] is not None), default=quads.peak_bytes)
        return hopeless

    def in_a_second_process(
        self, a: TakesTurns, b: Variant, first: Measured, left_s: float, start_timeout_s: float
    ) -> Measured:
        """What was measured, with another process of ``b`` added where a gain depends on it: one process may be faster
        than another one of the same script, by where its memory lies or which cores it has, and all its quads alike.

        Args:
            a, b, first: what `compare` measured.
            left_s: in which the second process has to start and to be measured; without that time, and where another
                set gains more, no gain is certain.
            start_timeout_s: the longest that it may take to start.

        Raises:
            VariantError: one of them failed.
        """
        if not first.gain.certain or first.gain.percent >= SURE:
            return first
        seconds = least_s(first.before_ms / 1e3)
        unsure = replace(first, gain=replace(first.gain, certain=False))
        if first.stopped == _GAINS_LESS:
            return unsure
        if left_s < seconds / 2:
            return replace(unsure, stopped="no time for a second process")
        if self.exclusive:
            a.end()
        b.start(start_timeout_s)
        self.warm_up(b, start_timeout_s)
        second = self.compare(a, b, seconds)
        ratios = [*first.log_ratios, *second.log_ratios]
        both = gain(ratios)
        if second.gain.percent <= 0:
            both = replace(both, certain=False)
        count, more = len(first.log_ratios), len(second.log_ratios)

        def mean(one: float, other: float) -> float:
            return (one * count + other * more) / (count + more)

        return Measured(
            both,
            mean(first.before_ms, second.before_ms),
            mean(first.after_ms, second.after_ms),
            first.peak_bytes,
            ratios,
            first.stopped,
        )

    def _enough(self, found: Gain, share: float, than: float) -> str:
        """Why no more quads are needed; "" where they are."""
        if is_lost(found):
            return _LOSES
        clearly = found.quads >= LEAST_QUADS and found.high < than
        if clearly or (found.quads >= _BESIDE_ANOTHER and found.percent < than):
            return _GAINS_LESS
        if found.quads in LOOKS and found.half_width <= max(self._precision, share * abs(found.percent)):
            return "the interval is as narrow as needed"
        return "no more looks are planned" if found.quads >= LOOKS[-1] else ""

    def _block_s(self, variant: TakesTurns) -> float:
        return _SHORT_BLOCK_S if isinstance(variant, Switched) else self._between_s

    def _turn(self, variant: TakesTurns, other: TakesTurns) -> tuple[float, int | None]:
        """Seconds of a step in a block, and the peak of memory."""
        if self.exclusive and other.alive and other.host is not variant.host:
            other.end()
        if not variant.alive:
            # Started again: warm it up as at first.
            self.warm_up(variant, _LONGEST_BLOCK_S * 5)
        block = variant.run(self._steps.get(variant, _LEAST_STEPS), self.limit(_LONGEST_BLOCK_S))
        return block.seconds / block.steps, block.peak_bytes


def least_s(step_s: float) -> float:
    """Seconds of a measurement in which a gain can be certain: of a slow step, a block is longer than `BLOCK_S`."""
    return (LEAST_QUADS + 1) * 4 * 1.2 * max(BLOCK_S, _LEAST_STEPS * step_s)


def look_s(step_s: float) -> float:
    """Seconds of a measurement in a running process that shows which of two sets is better."""
    return LOOK * quad_s(step_s)


def quad_s(step_s: float) -> float:
    """Seconds of four blocks in a running process."""
    return 1.1 * (4 * max(_SHORT_BLOCK_S, _LEAST_STEPS * step_s) + 2 * _STEPS_OF_SWITCH * step_s)


def _steps_for(step_s: float, block_s: float) -> int:
    return max(_LEAST_STEPS, min(_MOST_STEPS, math.ceil(block_s / max(step_s, 1e-6))))


def _percent(log_ratio: float) -> float:
    """That it is faster."""
    return 100 * (1 - math.exp(log_ratio))


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


__all__ = ["Bench", "Measured", "TakesTurns", "VariantError", "least_s", "look_s", "quad_s"]
