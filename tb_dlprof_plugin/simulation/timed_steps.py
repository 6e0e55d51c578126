"""The mean step and its interval from the durations of single steps without the profiler, before and after it ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_dlprof_plugin.model.profile import Floats

LEAST_STEPS = 3
"""Smaller groups are ignored."""
_TRIMMED = 0.25
"""Share of single steps left out at either end: a step that waits for a file or for another process is an outlier, and
a mean of the middle half still covers steps that alternate between two lengths."""
_FEW_STEPS = 10.0
"""A group of so many steps has half the weight of one of very many."""
_SHORT_GROUP, _COLD = 10, 2
"""Of a group of at most so many steps the first two are left out: a training that has just begun is still loading
kernels and filling caches in them (on the demo's LeNet 4.7 and 4.1 ms before 3.0)."""
_MOST_BLOCKS = 5
_LEAST_BLOCK = 3
_WIDTH = 2.0
"""Half the interval over the drift of the CPU. On an H200 host that others use too, where steps that the CPU paces
drift by 5 % from one half second to the next, the interval holds the mean of half a second before and half a second
after in nine of ten runs with it (`lab/true_step.py`)."""
LEAST_ERROR = 0.01
"""Half the interval at least, as a share of the step: what steps that the GPU paces differ by a minute later."""


def timed_step(groups: Sequence[Sequence[int]]) -> tuple[float, float, float]:
    """The step with the low and the high end of its 95 % interval (ns).

    The interval is as wide as the CPU's speed drifts: from the group before the profiler to the one after it, and from
    block to block of consecutive steps within the longest group. The standard error of the mean would be far too small,
    because steps of the same moment are fast or slow together.

    Args:
        groups: durations of consecutive steps (ns), each group of at least `LEAST_STEPS`.
    """
    found = [_warm(np.array(group, dtype=np.float64)) for group in groups]
    means = [float(middle_half(np.sort(group)).mean()) for group in found]
    weights = [len(group) / (len(group) + _FEW_STEPS) for group in found]
    value = float(round(np.average(means, weights=weights)))
    drift = np.hypot((max(means) - min(means)) / 2, _between_blocks(max(found, key=len)))
    half = max(_WIDTH * float(drift), LEAST_ERROR * value)
    return value, max(value - half, 0.0), value + half


def _warm(group: Floats) -> Floats:
    cold = min(_COLD, max(len(group) - LEAST_STEPS, 0)) if len(group) <= _SHORT_GROUP else 0
    return group[cold:]


def middle_half(values: Floats) -> Floats:
    """Sorted times without the shortest and the longest quarter."""
    cut = int(_TRIMMED * len(values))
    return values[cut : len(values) - cut]


def _between_blocks(group: Floats) -> float:
    """Standard deviation of the medians of consecutive blocks of a group (ns)."""
    count = min(_MOST_BLOCKS, len(group) // _LEAST_BLOCK)
    blocks = np.array_split(group, count) if count > 1 else list(group[:, np.newaxis])
    return float(np.std([np.median(block) for block in blocks], ddof=1)) if len(blocks) > 1 else 0.0
