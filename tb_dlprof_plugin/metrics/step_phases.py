"""The parts of a training step: forward, backward, optimizer, data loading and the rest, exclusive by the clock.

A moment belongs to what the GPU works on: the part that launched the running kernel, copy or set. Where the GPU is idle
(or there is none) it belongs to what the CPU works on. So the parts sum to the step to the nanosecond.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.metrics.iterations import shows_data_loading, step_totals
from tb_dlprof_plugin.metrics.without_recorder import scaled, shortened
from tb_dlprof_plugin.model.intervals import exclusive, union
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import CallKind, Ints, Role
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

PARTS = (Role.FORWARD, Role.BACKWARD, Role.OPTIMIZER, Role.DATALOADER, Role.OTHER)

# Where several overlap: forward ops are recomputed inside a backward pass, and the DataLoader's own ops lie inside its
# call.
_PRECEDENCE = (Role.DATALOADER, Role.BACKWARD, Role.FORWARD, Role.OPTIMIZER)
_RECORDER_GROUPS = (
    tuple(row for row, part in enumerate(PARTS) if part != Role.DATALOADER),
    (PARTS.index(Role.DATALOADER),),
)


@per_selection
def step_parts(view: ProfileView, selection: Selection) -> dict[Role, int | None]:
    """Time of the selected steps without the profiler by part (ns), means over the GPUs; they sum to the wall time.

    What the GPU works on is kept; the recorder's overhead is subtracted from the rest, of every part in proportion,
    because all of them make calls that are recorded, and last out of data loading. The forward part is None where a
    backward pass was recorded but its forward ops are unknown (no sequence numbers, no modules): its time is in
    the rest. Data loading is None where the recording cannot show it.
    """
    gpu, cpu = (_mean(view, times, selection) for times in _by_side(view))
    steps = step_totals(view, selection)
    if steps.gpu_busy_ns is not None:
        gpu = scaled(gpu, steps.gpu_busy_ns)
    over = int(gpu.sum()) + int(cpu.sum()) - steps.wall_ns
    cpu = shortened(cpu, _RECORDER_GROUPS, max(over, 0))
    return _named(view, gpu + cpu, steps.wall_ns)


@per_selection
def recorded_parts(view: ProfileView, selection: Selection) -> dict[Role, int | None]:
    """The same of the recorded iterations; they sum to the recorded wall time."""
    times = _mean(view, parts_by_iteration(view), selection)
    durations = view.profile.iterations.duration_ns[selection.first : selection.last + 1]
    return _named(view, times, int(durations.sum()))


def _mean(view: ProfileView, times: Ints, selection: Selection) -> Ints:
    """Sums over the selected iterations by part, the mean over the GPUs."""
    mean: Ints = times[selection.first : selection.last + 1].sum(axis=(0, 1)) // max(
        1, len(view.profile.iterations.gpu_ids)
    )
    return mean


def _named(view: ProfileView, times: Ints, wall_ns: int) -> dict[Role, int | None]:
    mean: dict[Role, int | None] = dict(zip(PARTS, times.tolist(), strict=True))
    roles = view.profile.ops.role
    if (roles == Role.BACKWARD).any() and not (roles == Role.FORWARD).any():
        mean[Role.FORWARD] = None
    if not shows_data_loading(view):
        mean[Role.DATALOADER] = None
    # Rounding goes to the last part.
    known = sum(value or 0 for part, value in mean.items() if part != Role.OTHER)
    return mean | {Role.OTHER: wall_ns - known}


def parts_by_iteration(view: ProfileView) -> Ints:
    """Recorded time by part (ns), shape (iterations, GPUs or 1, 5), in the order of `PARTS`; sums to the iterations."""
    gpu, cpu = _by_side(view)
    return gpu + cpu


def _by_side(view: ProfileView) -> tuple[Ints, Ints]:
    """`parts_by_iteration` of what the GPU works on, and, where it is idle, of what the CPU works on."""
    profile = view.profile
    calls, launches, iterations = profile.calls, profile.launches, profile.iterations
    role, kind = profile.ops.role[calls.op], profile.ops.kind[calls.op]
    works = (kind == CallKind.OP) | (kind == CallKind.RUNTIME) | (role != Role.OTHER)
    on_cpu = [
        union(calls.start_ns[chosen], (calls.start_ns + calls.duration_ns)[chosen])
        for part in _PRECEDENCE
        for chosen in [works & (role == part)]
    ]
    launched_by = take_or(role, launches.call, int(Role.OTHER))
    shape = (len(iterations), max(1, len(iterations.gpu_ids)), len(PARTS))
    of_gpu, of_cpu = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for column, gpu in enumerate(iterations.gpu_ids or (-1,)):
        here = launches.device == gpu
        on_gpu = [
            union(launches.start_ns[chosen], (launches.start_ns + launches.duration_ns)[chosen])
            for part in (*_PRECEDENCE, Role.OTHER)
            for chosen in [here & (launched_by == part)]
        ]
        times = exclusive([*on_gpu, *on_cpu], iterations.start_ns, iterations.stop_ns)
        for index, part in enumerate((*_PRECEDENCE, Role.OTHER)):
            of_gpu[:, column, PARTS.index(part)] = times[:, index]
        for index, part in enumerate(_PRECEDENCE, len(on_gpu)):
            of_cpu[:, column, PARTS.index(part)] = times[:, index]
        of_cpu[:, column, -1] = iterations.duration_ns - times.sum(axis=1)
    return of_gpu, of_cpu
