"""Estimates samples per second with a larger batch, from the launches of the recorded step.

The CPU launches the same ops for any batch. On the GPU, work that fills it takes longer in proportion to the batch;
what does not depend on the batch (the optimizer, sets, the transfer of collectives) takes as long as before; and a
kernel whose blocks do not fill the GPU takes as long until they do. How many blocks a multiprocessor runs at once is
not known for each kernel, so an interval is given. A step that waits for the DataLoader still waits.

Compared with the recorded steps of ResNet-18 at 8, 32, 128 and 512 samples on an H200 in four precisions, 24 pairs, the
lower end is too high in one of them (by 2 %), the upper end too low in ten, nine of which begin at 8 samples: kernels
of so few samples are less efficient than their blocks suggest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.model.profile import KernelKind, Role
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class LargerBatch:
    """Columns by `FACTORS`: a step of so many times the batch (ns), the most and the least that it should take."""

    longest_ns: tuple[float, ...]
    shortest_ns: tuple[float, ...]

    def gain(self, index: int) -> tuple[float, float]:
        """Samples per second over those of the recorded batch: the least and the most."""
        base, factor = self.longest_ns[0], FACTORS[index]
        return base * factor / self.longest_ns[index], base * factor / self.shortest_ns[index]


FACTORS = (1, 2, 4, 8, 16, 32, 64)
_WAITS_FOR_DATA = 0.02
"""Share of the step with the GPU idle for the DataLoader, from which loading sets the pace."""
_RESIDENT_BLOCKS = 2
"""Per multiprocessor, that run at once at the upper end."""


@per_selection
def gpu_work_ns(view: ProfileView, selection: Selection) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """GPU time of a step by `FACTORS` (ns): the most, with every kernel in proportion, and the least."""
    profile = view.profile
    launches, kernels, ops, calls = profile.launches, profile.kernels, profile.ops, profile.calls
    chosen = np.flatnonzero(view.selected_launches(selection))
    duration = launches.duration_ns[chosen] / selection.count
    role = ops.role[calls.op[launches.call[chosen]]]
    kernel = launches.kernel[chosen]
    collective = profile.kernels_where(family="communication")
    fixed = (role == Role.OPTIMIZER) | (kernels.kind[kernel] == KernelKind.MEMSET)
    grid = profile.launch_configs.grid[launches.config[chosen]]
    blocks = np.where((grid > 0).all(axis=1), grid.prod(axis=1), -1)
    sms = view.gpu.sm_count if view.gpu is not None else None
    # Unknown grids count as full ones.
    filled = np.clip(blocks / (_RESIDENT_BLOCKS * sms), 0.0, 1.0) if sms else np.ones(len(chosen))
    filled[(blocks < 0) | (kernels.kind[kernel] != KernelKind.KERNEL)] = 1.0
    most, least = [], []
    for factor in FACTORS:
        # Of a collective, waiting for other ranks grows with their work.
        most.append(float((duration * np.where(fixed, 1.0, factor)).sum()))
        grown = np.where(fixed | collective[kernel], 1.0, np.maximum(1.0, factor * filled))
        least.append(float((duration * grown).sum()))
    return tuple(most), tuple(least)


def larger_batch(view: ProfileView, selection: Selection, step_ns: float) -> LargerBatch:
    """Steps of larger batches.

    Args:
        view: of a run on a GPU.
        selection: its iterations.
        step_ns: of the recorded batch, without the profiler.
    """
    steps = step_totals(view, selection)
    waits_for_data = (steps.category_ns["dataloader"] or 0) >= _WAITS_FOR_DATA * steps.wall_ns
    busy = (steps.gpu_busy_ns or 0) / selection.count
    most, least = gpu_work_ns(view, selection)
    # Streams that run side by side keep doing so.
    overlap = min(busy / most[0], 1.0) if most[0] else 1.0

    def step(gpu: tuple[float, ...], index: int, waiting: bool) -> float:
        return max(gpu[index] * overlap, step_ns * (FACTORS[index] if waiting else 1))

    return LargerBatch(
        tuple(step(most, index, waits_for_data) for index in range(len(FACTORS))),
        tuple(step(least, index, False) for index in range(len(FACTORS))),
    )
