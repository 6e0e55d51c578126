"""Chooses the iteration that the timeline shows."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.profile_view import ProfileView, Selection


def one_iteration(view: ProfileView, selection: Selection, index: int | None) -> Selection:
    """The iteration ``index``, by default the one of median length in ``selection``: the usual case, not the first.

    Raises:
        ValueError: the recording has no such iteration.
    """
    if index is not None:
        if not 0 <= index < len(view.profile.iterations):
            raise ValueError(
                f"iteration {index} is not in this recording, which has 0 to {len(view.profile.iterations) - 1}"
            )
        return Selection(index, index)
    durations = view.profile.iterations.duration_ns[selection.first : selection.last + 1]
    middle = int(np.argsort(durations, kind="stable")[(len(durations) - 1) // 2])
    return Selection(selection.first + middle, selection.first + middle)
