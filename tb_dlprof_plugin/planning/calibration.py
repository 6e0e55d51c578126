"""Constants of the forecast besides the ops' measured times; each from the recorded pairs on an H200."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.simulation.estimate import PACE_ERROR


@dataclass(frozen=True, slots=True)
class Calibration:
    """Attributes:
    cast_op_share: CPU time of an op that a cast adds, over that of the run's average op.
    cast_cost_range: the CPU's cost of casts at most and at least, as a factor of the expected one: from 0.5 to 2 on
        the slower host of `lab.precision_pairs.unseen`.
    cast_bandwidth: share of the memory bandwidth that casts reach; 3.1 of 4.8 TB/s.
    forward_cast_ns, backward_cast_ns: the shortest cast kernels. Those of gradients find their data evicted from the
        cache.
    spreads: standard deviations by which the interval shifts all changed kernels together.
    batch_spread: more uncertainty of kernel times for each doubling or halving of the batch size; from one model at
        four sizes.
    pace_drift: how much the pace of a CPU differs from run to run, in the logarithm: with it the interval of the
        speedup holds 39 of 43 where the CPU sets the pace (25 without it).
    compiled_batch_spread: the same of compiled code: six models on an H100 grew by up to 7 % more than forecast.
    compiled_pace_drift: `pace_drift` of compiled code, whose steps on the CPU differ more: `lab.compiled.forecasts`.
    other_gpu_spread: more uncertainty of kernel times on a GPU that no op was measured on: an assumption.
    """

    cast_op_share: float = 0.55
    cast_bandwidth: float = 0.65
    forward_cast_ns: float = 1_400.0
    backward_cast_ns: float = 2_200.0
    spreads: float = 1.0
    batch_spread: float = 0.05
    compiled_batch_spread: float = 0.08
    cast_cost_range: float = 2.0
    pace_drift: float = PACE_ERROR
    compiled_pace_drift: float = 0.2
    other_gpu_spread: float = 0.15


CALIBRATION = Calibration()
