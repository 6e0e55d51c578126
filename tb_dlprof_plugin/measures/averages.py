"""Operator averages in the sense of ``torch.profiler``'s ``key_averages()``: every recorded name with its sums.

Rules followed, so that the figures are equal: a call's self time is its duration less its direct children's; a call
that is the only child of a call of the same name is merged into it; device time of a call is what it launched
itself (self) or with its children (total).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.measures.frame import Frame
from tb_dlprof_plugin.storage.model import CallKind

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
    profile, parent = frame.profile, frame.call_parent
    calls, launches = profile.calls, profile.launches
    name = profile.ops.name[calls.op]
    kind = profile.ops.kind[calls.op]

    device_self = np.zeros(len(calls), dtype=np.int64)
    launched = launches.call >= 0
    owner = launches.call[launched].copy()
    for _ in range(8):
        climbing = (kind[owner] == CallKind.RUNTIME) & (parent[owner] >= 0)
        if not climbing.any():
            break
        owner[climbing] = parent[owner[climbing]]
    np.add.at(device_self, owner, launches.duration_ns[launched])
    device_total = device_self.copy()
    for level in range(int(calls.depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(calls.depth == level)
        np.add.at(device_total, parent[here], device_total[here])

    children = np.bincount(parent[parent >= 0], minlength=len(calls))
    nested = np.flatnonzero(parent >= 0)
    merged = np.zeros(len(calls), dtype=np.bool_)
    merged[nested] = (name[nested] == name[parent[nested]]) & (children[parent[nested]] == 1)
    # A merged call's own children become its parent's, so their self times must not be counted twice.
    cpu_self = frame.call_self_ns.copy()
    self_device = device_self.copy()
    for row in np.flatnonzero(merged).tolist():
        keeper = int(parent[row])
        while merged[keeper]:
            keeper = int(parent[keeper])
        cpu_self[keeper] += cpu_self[row]
        self_device[keeper] += self_device[row]

    kept = np.flatnonzero(~merged)
    steps = [i for i, text in enumerate(profile.strings) if text.startswith(_STEP_PREFIX)]
    if steps:
        # One row for all steps, as "ProfilerStep*" there.
        name[np.isin(name, steps)] = steps[0]
    keys = np.stack((name[kept], profile.ops.module[calls.op[kept]] * (kind[kept] == CallKind.MODULE), kind[kept]))
    unique, group = np.unique(keys, axis=1, return_inverse=True)
    group = group.reshape(-1)
    count = unique.shape[1]

    def sums(values: np.ndarray) -> list[int]:  # type: ignore[type-arg]
        return np.bincount(group, weights=values[kept], minlength=count).astype(np.int64).tolist()  # type: ignore[no-any-return]

    number = np.bincount(group, minlength=count).tolist()
    columns = zip(
        unique.T.tolist(), number, sums(calls.duration_ns), sums(cpu_self), sums(device_total), sums(self_device),
        strict=True,
    )  # fmt: skip
    rows = [
        OperatorAverage(
            name=_display(profile.strings[key[0]] or profile.strings[key[1]]),
            calls=calls_,
            cpu_total_ns=cpu_total,
            cpu_self_ns=cpu_own,
            device_total_ns=total if profile.has_gpu else None,
            device_self_ns=own if profile.has_gpu else None,
        )
        for key, calls_, cpu_total, cpu_own, total, own in columns
    ]
    return sorted(rows, key=lambda row: -row.cpu_self_ns)


def _display(name: str) -> str:
    return "ProfilerStep*" if name.startswith(_STEP_PREFIX) else name
