"""Converts the buckets of the recorded step into those of the step without the profiler.

GPU time is kept as measured. The recorder's time is subtracted where it is spent: the CPU's time
between and inside calls first, then what idle time is left, waiting for the DataLoader last.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.comparison.waterfall import CPU_BUCKETS, GPU_BUCKETS, Basis
from tb_dlprof_plugin.metrics.without_recorder import shortened
from tb_dlprof_plugin.model.profile import Floats, Ints

_SLOWED: dict[Basis, tuple[tuple[str, ...], ...]] = {
    "gpu": (("cpu_launch", "python"), ("idle",), ("dataloader",)),
    "cpu": (("backward", "forward", "optimizer", "other"), ("dataloader",)),
}
"""The buckets that the recorder lengthens, in the order of subtraction; within a group in proportion."""
_REST: dict[Basis, str] = {"gpu": "idle", "cpu": "other"}
"""Where the step is longer without the profiler than with it, the difference belongs to no known bucket."""


def without_recorder(recorded_ns: Floats, step_ns: float, basis: Basis) -> Floats:
    """The buckets (ns) of a step of ``step_ns``, to which they sum.

    Args:
        recorded_ns: buckets of the recorded step, in the order of `buckets.GPU_BUCKETS` or ``CPU_BUCKETS``.
        step_ns: the step without the profiler.
        basis: which of the two.
    """
    keys = list(GPU_BUCKETS if basis == "gpu" else CPU_BUCKETS)
    result: Floats = recorded_ns.astype(np.float64)
    added = float(result.sum()) - step_ns
    if added <= 0:
        result[keys.index(_REST[basis])] -= added
        return result
    result = shortened(result, [[keys.index(key) for key in group] for group in _SLOWED[basis]], added)
    whole = float(result.sum())
    # The GPU's work alone takes longer than the step: kernels were a little slower while recorded.
    return result * (step_ns / whole) if whole > step_ns else result


def whole_numbers(values: Floats, total: int) -> Ints:
    """``values`` as whole numbers that sum to ``total``: the largest remainders are rounded up.

    Args:
        values: none below 0, with a sum of about ``total``.
        total: what the result sums to.
    """
    result = np.floor(values).astype(np.int64)
    order = np.argsort(-(values - result), kind="stable")
    missing = total - int(result.sum())
    for index in range(abs(missing)):
        result[order[index % len(order)]] += 1 if missing > 0 else -1
    return result
