"""What the forecast knows of machines beside the ops' measured times; each from the recorded pairs on an H200.

`python -m benchmarks.precision_pairs.forecast` computes the CPU's numbers anew without each model in turn.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """Attributes:
    unprofiled: CPU time of a step without the profiler over the profiled one: the median of the recorded runs that the
        CPU paces.
    unprofiled_low, unprofiled_high: nine tenths of them lie between these; for the ends of the interval.
    cast_op_share: CPU time of an op that a cast adds, over that of the run's average op.
    cast_bandwidth: share of the memory bandwidth that casts reach; 3.1 of 4.8 TB/s.
    forward_cast_ns, backward_cast_ns: the shortest cast kernels. Those of gradients find their data evicted from the
        cache.
    spreads: standard deviations by which the ends of the interval shift all changed kernels together.
    batch_spread: more uncertainty of kernel times for each doubling or halving of the batch size; from one model at
        four sizes.
    other_gpu_spread: more uncertainty of kernel times on a GPU that no op was measured on: an assumption.
    """

    unprofiled: float = 0.65
    unprofiled_low: float = 0.55
    unprofiled_high: float = 0.81
    cast_op_share: float = 0.55
    cast_bandwidth: float = 0.65
    forward_cast_ns: float = 1_400.0
    backward_cast_ns: float = 2_200.0
    spreads: float = 1.0
    batch_spread: float = 0.05
    other_gpu_spread: float = 0.15


CALIBRATION = Calibration()
