"""How much of the GPU each kernel fills: thread blocks per multiprocessor, and whether it runs alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.intervals import covered_by_others
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Ints, KernelKind
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

_COMMUNICATION = "communication"
_ALONE = 0.5
"""A kernel that overlaps with kernels of other streams for less than this share of its time runs alone."""


@dataclass(frozen=True, slots=True)
class Filling:
    """One row per row of `Profile.launches`.

    Attributes:
        kernels: kernels of the selected iterations that compute, not communicate, and whose grid is known.
        blocks: thread blocks of each, 0 for others.
        multiprocessors: of the GPU that it ran on, 0 where not known.
        alone: kernels of other streams overlap with less than half of its time.
        streams: streams with kernels per device, the most of any.
    """

    kernels: Bools
    blocks: Ints
    multiprocessors: Ints
    alone: Bools
    streams: int


@per_selection
def filling(view: ProfileView, selection: Selection) -> Filling:
    """Of the kernels launched in the selected iterations."""
    profile = view.profile
    launches, kernels, strings = profile.launches, profile.kernels, profile.strings
    grid = profile.launch_configs.grid
    known = (grid > 0).all(axis=1) if len(grid) else np.zeros(0, dtype=np.bool_)
    of_config = np.where(known, grid.prod(axis=1), 0) if len(grid) else np.zeros(0, dtype=np.int64)
    config = launches.config
    blocks = take_or(of_config, config, 0)
    communicates = np.array([strings[i] == _COMMUNICATION for i in kernels.family.tolist()], dtype=np.bool_)
    computes = (kernels.kind == KernelKind.KERNEL) & ~communicates
    counted = computes[launches.kernel] & (blocks > 0) & view.selected_launches(selection)
    sizes = {gpu.id: gpu.sm_count or 0 for gpu in profile.system.gpus}
    devices = np.unique(launches.device).tolist()
    multiprocessors = np.zeros(len(launches), dtype=np.int64)
    for device in devices:
        multiprocessors[launches.device == device] = sizes.get(device, 0)
    alone, streams = _alone(view, computes[launches.kernel])
    return Filling(counted, np.where(counted, blocks, 0).astype(np.int64), multiprocessors, alone, streams)


def _alone(view: ProfileView, computes: Bools) -> tuple[Bools, int]:
    launches = view.profile.launches
    alone = np.ones(len(launches), dtype=np.bool_)
    most = 0
    for device in np.unique(launches.device).tolist():
        here = np.flatnonzero(computes & (launches.device == device))
        most = max(most, len(np.unique(launches.stream[here])))
        start, stop = launches.start_ns[here], launches.start_ns[here] + launches.duration_ns[here]
        inside = covered_by_others(launches.stream[here], start, stop, np.arange(len(start)), start, stop)
        alone[here] = inside < _ALONE * np.maximum(stop - start, 1)
    return alone, most
