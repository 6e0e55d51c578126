"""How much faster a variant is, from blocks of steps in the order A B B A, and when that is certain.

A drift of clocks, heat or other tenants that is linear over one such quad cancels in it. The unit is the logarithm of
the ratio of B's times to A's in a quad, and its mean has Student's t distribution. As the result is looked at again and
again, a gain is called at a level that is divided by the looks that are taken (Bonferroni's inequality; as conservative
as group-sequential plans of equal levels get, see Pocock, "Group sequential methods in the design and analysis of
clinical trials", 1977).
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_QUADS = 4
LOOKS = (4, 6, 9, 14, 21)
"""Numbers of quads after which the result is looked at."""
_LEVEL = 0.05
_SIGN_LEVEL = 0.001
"""Of each look by the signs alone: ten quads of ten, or thirteen of fourteen."""
_MEDIAN_APART = 0.954
"""Standard deviations that lie between two normal values, as a median: 0.6745 times the square root of 2."""
WORTH = 0.5
"""Percent that a gain is worth naming."""
HARM = -10.0
"""Percent: a remedy that costs more than this alone is in no set."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The share of the baseline's time that a variant saves, in percent; negative where it is slower.

    Attributes:
        percent: the estimate; nan without a quad.
        low, high: ends of its 95 % interval, infinite where there are too few quads.
        certain: whether it is a gain even after all looks that may be taken.
        certain_loss: the same of a loss.
        quads: number of them.
    """

    percent: float
    low: float
    high: float
    certain: bool
    quads: int
    certain_loss: bool = False

    @property
    def half_width(self) -> float:
        """Of the interval, in percent."""
        return (self.high - self.low) / 2


def gain(log_ratios: Sequence[float], among: int = 1) -> Gain:
    """The gain from log(time of the variant / time of the baseline) of each quad; among so many variants, intervals
    hold together, and none is called by chance (Bonferroni)."""
    count = len(log_ratios)
    if not count:
        return Gain(math.nan, -math.inf, math.inf, False, 0)
    mean = math.fsum(log_ratios) / count
    if count < 2:
        return Gain(_saved(mean), -math.inf, math.inf, False, count)
    half, strict = (_half_width(log_ratios, mean, _LEVEL / among / looks) for looks in (1, len(LOOKS)))
    certain = count >= LEAST_QUADS and mean + strict < 0
    lost = count >= LEAST_QUADS and mean - strict > 0
    if not certain and _tail(sum(one >= 0 for one in log_ratios), count) <= _SIGN_LEVEL / among:
        return _by_signs(sorted(log_ratios))
    return Gain(_saved(mean), _saved(mean + half), _saved(mean - half), certain, count, lost)


def together(several: Sequence[Sequence[float]]) -> list[Gain]:
    """The gain of each of several variants from its quads, which may be two: their noise is that of all quads. For a
    choice, not for a claim: nothing is certain. A few quads that lie far off count as others do."""
    apart = [
        abs(one - other) for ratios in several for place, one in enumerate(ratios) for other in ratios[place + 1 :]
    ]
    deviation = statistics.median(apart) / _MEDIAN_APART if apart else math.inf
    found = []
    for ratios in several:
        middle, half = statistics.median(ratios), 1.96 * deviation / math.sqrt(len(ratios))
        found.append(Gain(_saved(middle), _saved(middle + half), _saved(middle - half), False, len(ratios)))
    return found


def slowdown(log_ratios: Sequence[float]) -> tuple[float, float, float]:
    """How much longer the variant takes, in percent, with the interval that holds it at 95 % after all looks together.

    Raises ValueError for fewer than two quads.
    """
    if len(log_ratios) < 2:
        raise ValueError("one quad has no interval")
    mean = math.fsum(log_ratios) / len(log_ratios)
    strict = _half_width(log_ratios, mean, _LEVEL / len(LOOKS))
    low, middle, high = (100 * math.expm1(mean + offset) for offset in (-strict, 0.0, strict))
    return middle, low, high


def _by_signs(ordered: Sequence[float]) -> Gain:
    """On a busy machine a few quads lie far off, and the t distribution's interval is wide. That nearly all quads are
    faster is certain without a distribution (sign test); the median has an interval of the ordered quads."""
    count = len(ordered)
    first = max(one for one in range(count // 2 + 1) if one == 0 or _tail(one - 1, count) <= _LEVEL / 2)
    low, high = ordered[max(first - 1, 0)], ordered[count - max(first, 1)]
    return Gain(_saved(statistics.median(ordered)), _saved(high), _saved(low), True, count)


def _tail(at_most: int, count: int) -> float:
    """The probability of at most so many heads of so many fair coins."""
    return math.fsum(math.comb(count, one) for one in range(at_most + 1)) / 2**count


def is_lost(found: Gain) -> bool:
    """Whether a variant clearly loses, so that no further quad is worth its time: as certain as a gain has to be."""
    return found.certain_loss


def _half_width(values: Sequence[float], mean: float, outside: float) -> float:
    """Of the interval of a mean, which lies outside of it with this probability."""
    count = len(values)
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in values) / (count - 1))
    return student(1 - outside / 2, count - 1) * deviation / math.sqrt(count)


@functools.cache
def student(probability: float, degrees: int) -> float:
    """The quantile of Student's t distribution, for probabilities above one half.

    The distribution function for whole degrees of freedom is a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    low, high = 0.0, 1.0
    while _student_share(high, degrees) < 2 * probability - 1:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if _student_share(middle, degrees) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_share(value: float, degrees: int) -> float:
    """The probability that |t| is at most ``value``."""
    angle = math.atan(value / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    if degrees % 2:
        total, term = 0.0, cosine
        for k in range(1, degrees - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        return 2 / math.pi * (angle + sine * total)
    total, term = 0.0, 1.0
    for k in range(0, degrees, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    return sine * total


def _saved(log_ratio: float) -> float:
    return 100 * (1 - math.exp(log_ratio))
