"""How much longer kernels take with another batch size and on another GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tb_dlprof_plugin.metrics.flops import MatrixCalls
from tb_dlprof_plugin.model.profile import Ints, Role
from tb_dlprof_plugin.planning.launch_sequence import Launched
from tb_dlprof_plugin.planning.target import Precision, Target
from tb_dlprof_plugin.profile_view import ProfileView


def batch_factor(
    view: ProfileView, work: Launched, units: Ints, ratio: float, growth: Callable[[int], float]
) -> np.ndarray:  # type: ignore[type-arg]
    """Per row of ``work``, with a batch ``ratio`` times as large. The optimizer's kernels keep their time.

    Args:
        view: the run.
        work: its launches.
        units: per row the call that is its unit, -1 for none.
        ratio: new batch size over the run's.
        growth: of a unit.
    """
    if ratio == 1:
        return np.ones(len(work.launch))
    of_batch = view.profile.ops.role[view.profile.calls.op[work.call]] != Role.OPTIMIZER
    factor = np.where(of_batch, ratio, 1.0)
    rows = np.flatnonzero((units >= 0) & of_batch)
    unit, number = np.unique(units[rows], return_inverse=True)
    factor[rows] = np.array([growth(one) for one in unit.tolist()], dtype=np.float64)[number]
    return factor


def gpu_factor(work: Launched, matrix: MatrixCalls, target: Target, precision: Precision) -> np.ndarray:  # type: ignore[type-arg]
    """Peak rates of the run's GPU over those of the other, for matrix routines; memory bandwidth for the rest.

    A matrix routine counts as compute-bound if its FLOPs per byte exceed the ridge point of the run's GPU.
    """
    old, new = target.ceilings, target.new_ceilings
    factor = np.full(len(work.launch), old.bytes_per_second / new.bytes_per_second)
    on_tensor_cores = precision != "fp32"
    old_rate = old.flops_per_second(precision, on_tensor_cores)
    new_rate = new.flops_per_second(precision, on_tensor_cores)
    if not len(matrix) or old_rate is None or new_rate is None:
        return factor
    at = matrix.of_call[work.call]
    intensity = matrix.flops / np.maximum(matrix.bytes, 1)
    by_arithmetic = (at >= 0) & (intensity[np.maximum(at, 0)] > old_rate / old.bytes_per_second)
    return np.where(by_arithmetic, old_rate / new_rate, factor)
