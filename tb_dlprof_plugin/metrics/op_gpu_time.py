"""The GPU time of an op's call: the union of the intervals of the kernels, copies and sets that it launched.

DLProf 1.8 counts so: work of one call that overlaps on two streams counts once. Each activity is given the part of its
time in which none that began before it, of the same call and GPU, ran; the parts sum to the union.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


def own_gpu_ns(view: ProfileView) -> Ints:
    """Per row of `Profile.launches` its part of its op's GPU time (ns); its duration where it is in no op."""
    return _own_gpu_ns(view, view.selection())


@per_selection
def _own_gpu_ns(view: ProfileView, everything: Selection) -> Ints:
    launches = view.profile.launches
    result = launches.duration_ns.copy()
    rows = np.flatnonzero(view.launch_group >= 0)
    if not len(rows):
        return result
    top = view.call_top[launches.call[rows]]
    start, device = launches.start_ns[rows], launches.device[rows]
    order = np.lexsort((start, device, top))
    rows, top, start, device = rows[order], top[order], start[order], device[order]
    stop = start + launches.duration_ns[rows]
    opens = np.concatenate(([True], (np.diff(top) != 0) | (np.diff(device) != 0)))
    # One axis for all: what a call launched on a GPU lies behind all of the one before.
    span = int(stop.max() - start.min()) + 1
    if span > 2**61 // (int(opens.sum()) + 1):
        return result
    offset = (np.cumsum(opens) - 1) * span - int(start.min())
    reach = np.concatenate(([-1], np.maximum.accumulate(stop + offset)[:-1]))
    result[rows] = np.maximum(stop + offset - np.maximum(start + offset, reach), 0)
    return result
