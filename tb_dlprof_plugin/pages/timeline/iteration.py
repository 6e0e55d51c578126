"""Chooses the iteration that the timeline shows."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.profile_view import ProfileView, Selection

IterationOption = Annotated[int | None, Option("Index of the iteration; the one of median length by default.")]


class IterationError(ValueError):
    """The recording has no such iteration; the message says which it has."""


def one_iteration(view: ProfileView, selection: Selection, index: int | None) -> Selection:
    """The iteration ``index``, by default the one of median length in ``selection``: the usual case, not the first.

    Raises:
        IterationError: the recording has no such iteration.
    """
    if index is not None:
        if not 0 <= index < len(view.profile.iterations):
            raise IterationError(
                f"iteration {index} is not in this recording, which has 0 to {len(view.profile.iterations) - 1}"
            )
        return Selection(index, index)
    durations = view.profile.iterations.duration_ns[selection.first : selection.last + 1]
    middle = int(np.argsort(durations, kind="stable")[(len(durations) - 1) // 2])
    return Selection(selection.first + middle, selection.first + middle)
