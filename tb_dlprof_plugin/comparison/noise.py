"""Whether a difference of means is more than noise: Welch's interval from the values of single iterations.

Welch (1947), "The generalization of Student's problem when several different population variances are involved": the
two runs' iterations vary by different amounts. Iterations of one recording share clocks, temperature and neighbours, so
they are not independent, and the interval does not include the variation between two recordings of the same script: a
real difference must at least exceed it. A bootstrap of six iterations would be even narrower.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_dlprof_plugin.model.profile import Floats

# Student's t, two-sided 95 %, for 1 to 30 degrees of freedom; any table of it.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_Z95 = 1.960


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """95 % intervals of ``b - a``, one row each; NaN where a side has fewer than two iterations."""

    low: Floats
    high: Floats


def differences(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> ConfidenceInterval:
    """Of the means of each row.

    Args:
        a: shape (rows, iterations) of the base.
        b: shape (rows, iterations) of the candidate.
    """
    mean_a, variance_a = _mean_and_variance(a)
    mean_b, variance_b = _mean_and_variance(b)
    half = half_width(variance_a, a.shape[1], variance_b, b.shape[1])
    difference = mean_b - mean_a
    return ConfidenceInterval(difference - half, difference + half)


def is_noise(low: float | None, high: float | None) -> bool | None:
    """Whether 0 lies in the interval; None where there is none."""
    return None if low is None or high is None else low <= 0 <= high


def half_width(variance_a: Floats, count_a: int, variance_b: Floats, count_b: int) -> Floats:
    """Half of the 95 % interval of a difference of means, from the variances of single values and their numbers.

    NaN where there are fewer than two values.
    """
    if count_a < 2 or count_b < 2:
        return np.full(len(variance_a), np.nan)
    part_a, part_b = variance_a / count_a, variance_b / count_b
    total = part_a + part_b
    spread = part_a**2 / (count_a - 1) + part_b**2 / (count_b - 1)
    freedom = np.divide(total**2, spread, out=np.full(len(total), np.inf), where=spread > 0)
    # The whole number below: a little wide rather than a little narrow.
    table = np.array([*_T95, _Z95 + 0.08])
    quantile = table[np.clip(freedom, 1, len(_T95) + 1).astype(np.int64) - 1]
    quantile = np.where(freedom > 120, _Z95 + 0.02, quantile)
    half: Floats = quantile * np.sqrt(total)
    return half


def _mean_and_variance(values: npt.NDArray[np.generic]) -> tuple[Floats, Floats]:
    numbers = values.astype(np.float64)
    mean = numbers.mean(axis=1) if numbers.shape[1] else np.zeros(len(numbers))
    variance = numbers.var(axis=1, ddof=1) if numbers.shape[1] > 1 else np.full(len(numbers), np.nan)
    return mean, variance
