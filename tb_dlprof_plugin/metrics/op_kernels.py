"""Each kernel of each op: GPU time, and time of the CUDA calls that launched it, over its launches.

What DLProf's Kernel Report lists (User Guide 1.8, section 10.5). Copies and sets are kernels here as there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import Figure, figure, sums
from tb_dlprof_plugin.metrics.unattributed_ops import all_ops, selected_activities
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class OpKernels:
    """One row per pair of a row of `Profile.kernels` and an op (a row of `AllOps`), by falling GPU time.

    ``api`` is the time of the CUDA calls that launched them (`AllOps.api_call`). ``bytes`` is what copies and sets
    moved. ``occupancy_percent`` is Kineto's estimate, weighted by time over the launches that have one, None where none
    has.
    """

    kernel: Ints
    op: Ints
    launches: Ints
    gpu: Figure
    api: Figure
    bytes: Ints
    occupancy_percent: list[float | None]

    def __len__(self) -> int:
        return len(self.kernel)


@per_selection
def op_kernels(view: ProfileView, selection: Selection) -> OpKernels:
    """The kernels of every op over the selected iterations."""
    profile, every = view.profile, all_ops(view)
    launches = profile.launches
    rows = selected_activities(view, selection)
    keys = launches.kernel[rows] * max(1, len(every)) + every.of_launch[rows]
    distinct, pair = np.unique(keys, return_inverse=True)
    pair = pair.reshape(-1)
    duration = launches.duration_ns[rows]
    order = np.argsort(-sums(pair, duration, len(distinct)), kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order), dtype=np.int64)
    pair, distinct = rank[pair], distinct[order]
    count = len(distinct)

    call = every.api_call[rows]
    called = call >= 0
    occupancy = profile.launch_configs.occupancy_percent[launches.config[rows]] if len(rows) else duration
    # Kineto writes 0 without an estimate; a kernel that ran has some occupancy.
    known = (occupancy > 0) & (duration > 0)
    weight = np.bincount(pair[known], weights=duration[known], minlength=count)
    mean = np.bincount(pair[known], weights=(occupancy * duration)[known], minlength=count)
    return OpKernels(
        kernel=distinct // max(1, len(every)),
        op=distinct % max(1, len(every)),
        launches=np.bincount(pair, minlength=count).astype(np.int64),
        gpu=figure(pair, duration, count),
        api=figure(pair[called], profile.calls.duration_ns[call[called]], count),
        bytes=sums(pair, np.maximum(launches.bytes[rows], 0), count),
        occupancy_percent=[
            float(value / by) if by else None for value, by in zip(mean.tolist(), weight.tolist(), strict=True)
        ],
    )
