"""Copies and sets on the GPU by kind and size, with the bandwidth that they reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import Figure, figure
from tb_dlprof_plugin.metrics.unattributed_ops import selected_activities
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection


@dataclass(frozen=True, slots=True)
class CopyTotals:
    """One row per name ("Memcpy HtoD (Pageable -> Device)") and size, by falling time.

    Attributes:
        names: one per row; what is in brackets tells pageable from pinned memory of the host.
        bytes: of each single copy, -1 where not recorded.
        time: over the copies (ns).
    """

    names: list[str]
    bytes: Ints
    time: Figure

    def __len__(self) -> int:
        return len(self.names)

    def bandwidth(self, row: int) -> tuple[float | None, float | None, float | None]:
        """Mean, least and most bytes per second; None where the size is unknown or a copy took no time."""
        moved = int(self.bytes[row])
        total, _, low, high = self.time.of(row)
        if moved < 0 or not total or low is None or high is None:
            return (None, None, None)
        return (
            moved * int(self.time.count[row]) * 1e9 / total,
            moved * 1e9 / high if high else None,
            moved * 1e9 / low if low else None,
        )


@per_selection
def copies(view: ProfileView, selection: Selection) -> CopyTotals:
    """The copies and sets of the selected iterations."""
    profile = view.profile
    kernels, launches = profile.kernels, profile.launches
    rows = selected_activities(view, selection)
    rows = rows[~view.launch_is_kernel[rows]]
    keys = np.stack((kernels.name[launches.kernel[rows]], launches.bytes[rows]))
    distinct, place = np.unique(keys, axis=1, return_inverse=True)
    place = place.reshape(-1)
    time = figure(place, launches.duration_ns[rows], distinct.shape[1])
    order = np.argsort(-time.total, kind="stable")
    return CopyTotals(
        names=[profile.strings[i] for i in distinct[0][order].tolist()],
        bytes=distinct[1][order],
        time=time.ordered(order),
    )
