"""How much slower kernels run while a collective runs on their GPU: it takes multiprocessors and memory bandwidth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Of the kernels that ran during a collective and also, with the same launch and op, without one (ns per step).

    Attributes:
        during_ns: time of collectives in which they ran.
        extra_ns: by how much they took longer than their likes without a collective.
    """

    during_ns: float
    extra_ns: float

    @property
    def share(self) -> float | None:
        """Time that a collective adds to other kernels, per time that it runs in parallel; None where none shows it."""
        return max(self.extra_ns, 0.0) / self.during_ns if self.during_ns else None


@per_selection
def communication_slowdown(view: ProfileView, selection: Selection) -> Slowdown:
    """Measured on kernels of the selected steps."""
    launches, collective = view.profile.launches, view.launch_is_collective
    rows = np.flatnonzero(view.launch_is_kernel & ~collective & view.selected_launches(selection))
    during = np.zeros(len(rows), dtype=np.int64)
    for device in np.unique(launches.device[rows]).tolist():
        running = collective & (launches.device == device)
        times = union(launches.start_ns[running], launches.start_ns[running] + launches.duration_ns[running])
        here = launches.device[rows] == device
        start = launches.start_ns[rows[here]]
        during[here] = covered(times, start, start + launches.duration_ns[rows[here]])
    alike = np.stack((launches.kernel[rows], launches.config[rows], view.launch_op[rows]))
    which = np.unique(alike, axis=1, return_inverse=True)[1].reshape(-1)
    alone = during == 0
    duration = launches.duration_ns[rows]
    count = np.bincount(which, weights=alone)
    mean = np.bincount(which, weights=np.where(alone, duration, 0)) / np.maximum(count, 1)
    known = ~alone & (count[which] > 0) if len(rows) else alone
    extra = float((duration - mean[which])[known].sum()) if len(rows) else 0.0
    return Slowdown(float(during[known].sum()) / selection.count, extra / selection.count)
