"""What repeats in a recording as often as its steps would: DLProf's search for a key node, where no step was marked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.names.ops import OPTIMIZER_STEP
from tb_dlprof_plugin.profile_view import ProfileView, Selection, op_name, per_selection

FEWEST = 3
"""With fewer repetitions even spacing cannot be determined."""
_UNEVEN = 3.0
"""Times their median that the longest distance between repetitions may be."""
_MAJORITY = 0.5


@dataclass(frozen=True, slots=True)
class KeyNode:
    """What is called ``calls`` times, evenly spaced.

    ``op`` is the id of an op on the Ops page, "" for a module or a range; ``key`` is what names it to
    `metrics.key_node`, "" for the root module; ``distance_ns`` is the median time from one call to the next.
    """

    name: str
    op: str
    key: str
    calls: int
    first_ns: int
    distance_ns: int


@per_selection
def key_nodes(view: ProfileView, selection: Selection) -> list[KeyNode]:
    """What is called as often as most ops of the selected iterations are; by start, ranges before modules before ops.

    Empty where most ops are called fewer than `FEWEST` times, or at uneven distances.
    """
    profile, groups = view.profile, view.groups
    calls, ops, strings = profile.calls, profile.ops, profile.strings
    kind = ops.kind[calls.op]
    inside = view.selected_calls(selection) & (ops.role[calls.op] != Role.DATALOADER)
    top = inside & ops.top[calls.op] & ~ops.continuation[calls.op]
    counts = np.bincount(view.call_group[top], minlength=len(groups))
    used = counts[counts > 0]
    number = int(np.bincount(used).argmax()) if len(used) else 0
    if number < FEWEST or (used == number).sum() < _MAJORITY * len(used):
        return []
    found = [
        KeyNode(f'range "{strings[name]}"', "", strings[name], number, first, distance)
        for name, first, distance in _evenly(view, inside & (kind == CallKind.ANNOTATION), ops.name[calls.op], number)
    ]
    for path, first, distance in _evenly(view, inside & (kind == CallKind.MODULE), ops.module[calls.op], number):
        name = f'module "{strings[path]}"' if strings[path] else "the model"
        found.append(KeyNode(name, "", strings[path], number, first, distance))
    for group, first, distance in _evenly(view, top, view.call_group, number):
        name = f'op "{op_name(strings[groups.module[group]], strings[groups.op_type[group]])}"'
        found.append(KeyNode(name, groups.ids[group], groups.ids[group], number, first, distance))
    # Sorting is stable: of those that begin together the outermost kind stays first.
    return sorted(found, key=lambda node: node.first_ns)


def unmarked(view: ProfileView) -> bool:
    """Whether the recording is one iteration because the steps were not marked.

    That is so if no mark was found, or if a single one covers work that repeats without an optimizer's step: the hook
    records a block that never calls ``step()`` as one.
    """
    iterations = view.profile.iterations
    if iterations.found_by == "none":
        return True
    if iterations.found_by != "profiler_step" or len(iterations) > 1:
        return False
    strings = view.profile.strings
    if any(strings[name].startswith(OPTIMIZER_STEP) for name in view.profile.ops.name.tolist()):
        return False
    return bool(key_nodes(view, view.selection()))


def each_step(view: ProfileView) -> str:
    """What a time or share is of: "each step", or "the recording" where no steps are known."""
    return "the recording" if unmarked(view) else "each step"


def _evenly(view: ProfileView, rows: Bools, names: Ints, number: int) -> list[tuple[int, int, int]]:
    """Name, first start and median distance of what these calls repeat ``number`` times at even distances."""
    chosen = np.flatnonzero(rows)
    chosen = chosen[np.lexsort((view.profile.calls.start_ns[chosen], names[chosen]))]
    start = view.profile.calls.start_ns[chosen]
    _, first, count = np.unique(names[chosen], return_index=True, return_counts=True)
    found = []
    for row in first[count == number].tolist():
        gaps = np.diff(start[row : row + number])
        middle = float(np.median(gaps))
        if gaps.max() <= _UNEVEN * max(middle, 1.0):
            found.append((int(names[chosen[row]]), int(start[row]), round(middle)))
    return found
