"""Selects a range of iterations by the training's own step numbers."""

from __future__ import annotations

from tb_dlprof_plugin.model.remedies import remedies_for
from tb_dlprof_plugin.profile_view import ProfileView, Selection


def by_number(view: ProfileView, start: int | None, stop: int | None) -> Selection:
    """The iterations from number ``start`` to number ``stop``, both inclusive; all from or up to there where None.

    Numbers are `Iterations.number`: those of ``ProfilerStep#n``, or from 0 where the steps have none.

    Raises:
        ValueError: an iteration of this number was not recorded, or the range is empty; one sentence.
    """
    numbers = view.profile.iterations.number.tolist()
    if view.profile.iterations.found_by == "none" and {start, stop} - {None, 0}:
        steps = remedies_for(view.profile.source).steps
        raise ValueError(
            "no iterations were found in this recording, so there is no range of them; cut it with a key node"
            + (f", or {steps}" if steps else "")
        )
    for number in (start, stop):
        if number is not None and number not in numbers:
            raise ValueError(f"iteration {number} was not recorded; this recording has {_listed(numbers)}")
    if start is not None and stop is not None and start > stop:
        raise ValueError(f"the range {start} to {stop} is empty; the stop iteration must not be below the start")
    first = 0 if start is None else numbers.index(start)
    last = len(numbers) - 1 if stop is None else numbers.index(stop)
    return view.selection(first, last)


def _listed(numbers: list[int]) -> str:
    """Such as "iterations 3 to 12", with gaps where steps were left out."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    shown = ", ".join(parts[:5]) + (", ..." if len(parts) > 5 else "")
    return f"iteration {shown}" if len(numbers) == 1 else f"iterations {shown}"
