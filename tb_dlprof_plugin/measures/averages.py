"""Operator averages in the sense of ``torch.profiler``'s ``key_averages()``: every recorded name with its sums.

Rules followed, so that the figures are equal: a call's self time is its duration less its direct children's; a call
that is the only child of a call of the same name is merged into it; device time of a call is what it launched
itself (self) or with its children (total).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.measures.frame import Frame
from tb_dlprof_plugin.storage.model import Bools, CallKind, Ints
from tb_dlprof_plugin.storage.tree import climb, self_time

_STEP_PREFIX = "ProfilerStep#"


@dataclass(frozen=True, slots=True)
class OperatorAverage:
    """One operator name; times in ns. Device times are None for a run without a GPU."""

    name: str
    calls: int
    cpu_total_ns: int
    cpu_self_ns: int
    device_total_ns: int | None
    device_self_ns: int | None


def operator_averages(frame: Frame) -> list[OperatorAverage]:
    """All ops, annotations and runtime calls of the recording by falling self CPU time."""
    profile, calls = frame.profile, frame.profile.calls
    kind = profile.ops.kind[calls.op]
    name = _merged_step_names(frame)
    frames = (kind == CallKind.MODULE) & (name > 0)
    parent = _without_frames(frame.call_parent, frames)
    device_self = _device_self_ns(frame, kind, parent)
    device_total = _with_children(frame, device_self, parent)
    merged = _merged_calls(name, parent)
    cpu_self = _hand_up(self_time(calls.duration_ns, parent), merged, parent)
    device_self = _hand_up(device_self, merged, parent)

    kept = np.flatnonzero(~merged & ~frames)
    keys = np.stack((name[kept], profile.ops.module[calls.op[kept]] * (kind[kept] == CallKind.MODULE), kind[kept]))
    unique, group = np.unique(keys, axis=1, return_inverse=True)
    group = group.reshape(-1)
    columns = [
        np.bincount(group, weights=values[kept], minlength=unique.shape[1]).astype(np.int64).tolist()
        for values in (np.ones(len(calls)), calls.duration_ns, cpu_self, device_total, device_self)
    ]
    rows = [
        OperatorAverage(
            name=_display(profile.strings[name_] or profile.strings[module]),
            calls=count,
            cpu_total_ns=cpu_total,
            cpu_self_ns=cpu_own,
            device_total_ns=total if profile.has_gpu else None,
            device_self_ns=own if profile.has_gpu else None,
        )
        for (name_, module, _), count, cpu_total, cpu_own, total, own in zip(unique.T.tolist(), *columns, strict=True)
    ]
    return sorted(rows, key=lambda row: -row.cpu_self_ns)


def _merged_step_names(frame: Frame) -> Ints:
    """Name per call; all steps share one, as "ProfilerStep*" in torch."""
    name = frame.profile.ops.name[frame.profile.calls.op]
    steps = [i for i, text in enumerate(frame.profile.strings) if text.startswith(_STEP_PREFIX)]
    if steps:
        name[np.isin(name, steps)] = steps[0]
    return name


def _without_frames(parent: Ints, frames: Bools) -> Ints:
    """Parents as torch has them: Python frames of modules are none of its events."""
    result = parent.copy()
    while (over := (result >= 0) & frames[np.maximum(result, 0)]).any():
        result[over] = parent[result[over]]
    return result


def _device_self_ns(frame: Frame, kind: Ints, parent: Ints) -> Ints:
    """GPU time that each call launched itself; a launch counts for the op around the runtime call."""
    launches = frame.profile.launches
    launched = launches.call >= 0
    owner = climb(launches.call[launched], kind == CallKind.RUNTIME, parent)
    result = np.zeros(len(frame.profile.calls), dtype=np.int64)
    np.add.at(result, owner, launches.duration_ns[launched])
    return result


def _with_children(frame: Frame, own: Ints, parent: Ints) -> Ints:
    total = own.copy()
    depth = frame.profile.calls.depth
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = np.flatnonzero((depth == level) & (parent >= 0))
        np.add.at(total, parent[here], total[here])
    return total


def _merged_calls(name: Ints, parent: Ints) -> Bools:
    """Calls that are the only child of a call of the same name."""
    children = np.bincount(parent[parent >= 0], minlength=len(name))
    nested = np.flatnonzero(parent >= 0)
    merged = np.zeros(len(name), dtype=np.bool_)
    merged[nested] = (name[nested] == name[parent[nested]]) & (children[parent[nested]] == 1)
    return merged


def _hand_up(values: Ints, merged: Bools, parent: Ints) -> Ints:
    """Adds a merged call's own value to the call that it is merged into."""
    result = values.copy()
    for row in np.flatnonzero(merged).tolist():
        keeper = int(parent[row])
        while merged[keeper]:
            keeper = int(parent[keeper])
        result[keeper] += result[row]
    return result


def _display(name: str) -> str:
    return "ProfilerStep*" if name.startswith(_STEP_PREFIX) else name
