"""Latency of collectives by the model that NCCL itself chooses algorithms by (`src/graph/tuning.cc` of NVIDIA/nccl): a
ring's grows with its members, a tree's, which joins hosts, with the logarithm of their number.

Arguments are numbers or arrays of one shape; a point is 0 to 2: the protocols LL, LL128 and Simple, which are the low
end, the estimate and the high end.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Floats

_NVLINK_STEP_NS = (470.0, 1900.0, 3400.0)
_NETWORK_STEP_NS = (2700.0, 4000.0, 9600.0)
TREE_RATE = 0.92
"""A tree's bus bandwidth as a share of a ring's."""
ESTIMATE = 1
"""The point of the estimate."""


def ring_ns(passes: Floats | float, members: Floats | float, hosts: Floats | float, point: int) -> Floats:
    """Nanoseconds; ``passes`` are 2 for an all-reduce, 1 for an all-gather or reduce-scatter. Each pass crosses the
    network once for each further host."""
    far = passes * (np.maximum(hosts, 1.0) - 1.0)
    near = np.maximum(passes * (np.asarray(members, dtype=np.float64) - 1.0) - far, 0.0)
    result: Floats = near * _NVLINK_STEP_NS[point] + far * _NETWORK_STEP_NS[point]
    return result


def tree_ns(members: Floats | float, hosts: Floats | float, point: int) -> Floats:
    """Nanoseconds of an all-reduce, up and down; infinite within one host, where NCCL takes no tree."""
    some = np.maximum(hosts, 1.0)
    near = np.maximum(members / some - 1.0, 0.0)
    both = 2.0 * (near * _NVLINK_STEP_NS[point] + np.log2(some) * _NETWORK_STEP_NS[point])
    result: Floats = np.where(some > 1.0, both, np.inf)
    return result


def all_reduce_ns(members: int, hosts: int) -> float:
    """Expected latency of an all-reduce among so many members on so many hosts, by the better of both."""
    return float(min(ring_ns(2, members, hosts, ESTIMATE), tree_ns(members, hosts, ESTIMATE)))
