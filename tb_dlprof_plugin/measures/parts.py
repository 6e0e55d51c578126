"""The parts of a training step: forward, backward, optimizer, data loading and the rest, exclusive by the clock.

A moment belongs to what the GPU works on: the part that launched the running kernel, copy or set. Where the GPU is idle
(or there is none) it belongs to what the CPU works on. So the parts sum to the step to the nanosecond.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.storage.intervals import exclusive, union
from tb_dlprof_plugin.storage.model import CallKind, Ints, Role

PARTS = (Role.FORWARD, Role.BACKWARD, Role.OPTIMIZER, Role.DATALOADER, Role.OTHER)

# Where several overlap: forward ops are recomputed inside a backward pass, and the DataLoader's own ops lie inside its
# call.
_PRECEDENCE = (Role.DATALOADER, Role.BACKWARD, Role.FORWARD, Role.OPTIMIZER)


@per_selection
def step_parts(frame: Frame, selection: Selection) -> dict[Role, int | None]:
    """Time of the selected iterations by part (ns), means over the GPUs; they sum to the wall clock time.

    The forward part is None where a backward pass was recorded but nothing that tells its forward ops (no sequence
    numbers, no modules): its time is in the rest then.
    """
    iterations = frame.profile.iterations
    rows = slice(selection.first, selection.last + 1)
    sums = parts_by_iteration(frame)[rows].sum(axis=(0, 1))
    gpus = max(1, len(iterations.gpu_ids))
    mean: dict[Role, int | None] = {p: int(value) // gpus for p, value in zip(PARTS, sums.tolist(), strict=True)}
    roles = frame.profile.ops.role
    if (roles == Role.BACKWARD).any() and not (roles == Role.FORWARD).any():
        mean[Role.FORWARD] = None
    # Rounding goes to the last part.
    known = sum(value or 0 for part, value in mean.items() if part != Role.OTHER)
    return mean | {Role.OTHER: int(iterations.duration_ns[rows].sum()) - known}


def parts_by_iteration(frame: Frame) -> Ints:
    """Time by part (ns), shape (iterations, GPUs or 1, 5), parts in the order of `PARTS`; sums to the iterations."""
    profile = frame.profile
    calls, launches, iterations = profile.calls, profile.launches, profile.iterations
    role, kind = profile.ops.role[calls.op], profile.ops.kind[calls.op]
    works = (kind == CallKind.OP) | (kind == CallKind.RUNTIME) | (role != Role.OTHER)
    on_cpu = [
        union(calls.start_ns[chosen], (calls.start_ns + calls.duration_ns)[chosen])
        for part in _PRECEDENCE
        for chosen in [works & (role == part)]
    ]
    known = launches.call >= 0
    launched_by = np.where(known, role[np.maximum(launches.call, 0)], int(Role.OTHER)) if len(calls) else known * 0
    result = np.zeros((len(iterations), max(1, len(iterations.gpu_ids)), len(PARTS)), dtype=np.int64)
    for column, gpu in enumerate(iterations.gpu_ids or (-1,)):
        here = launches.device == gpu
        on_gpu = [
            union(launches.start_ns[chosen], (launches.start_ns + launches.duration_ns)[chosen])
            for part in (*_PRECEDENCE, Role.OTHER)
            for chosen in [here & (launched_by == part)]
        ]
        times = exclusive([*on_gpu, *on_cpu], iterations.start_ns, iterations.stop_ns)
        for index, part in enumerate((*_PRECEDENCE, Role.OTHER, *_PRECEDENCE)):
            result[:, column, PARTS.index(part)] += times[:, index]
        result[:, column, -1] += iterations.duration_ns - times.sum(axis=1)
    return result
