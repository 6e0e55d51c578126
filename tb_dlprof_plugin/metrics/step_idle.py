"""Why the GPU is idle in the step without the profiler, and whether CPU or GPU sets its pace.

The idle time is `StepTotals.gpu_idle_ns`. Its causes come from the gaps of the recording, from which the recorder's
overhead is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.cpu_activity import ACTIVITIES
from tb_dlprof_plugin.metrics.gpu_busy import gpu_busy_ns, true_wall_ns
from tb_dlprof_plugin.metrics.idle_gaps import GapKind, idle_gaps
from tb_dlprof_plugin.metrics.iteration_pace import SLACK_SHARE, STARVED_SHARE, Pace, iteration_pace
from tb_dlprof_plugin.metrics.without_recorder import shortened
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

ACTIVITY_GROUPS = tuple(
    tuple(ACTIVITIES.index(name) for name in group)
    for group in (("launching", "ops", "python"), ("copying", "synchronising"), ("unknown",), ("dataloader",))
)
"""Where the recorder's time is, most likely first, as in `iterations.RECORDER_ORDER`."""
_KIND_GROUPS = ((GapKind.HOST_WAIT,), (GapKind.UNKNOWN,), (GapKind.OTHER,), (GapKind.KERNEL_WAIT,))
"""A slower CPU launches later; it makes no gap between work that was queued."""


@dataclass(frozen=True, slots=True)
class StepIdle:
    """Sums over the selected steps without the profiler (ns), by GPU.

    Attributes:
        idle_ns: shape (GPUs,), time in which the GPU runs nothing.
        activity_ns: shape (GPUs, 7), what the CPU does meanwhile by `ACTIVITIES`.
        kind_ns: shape (GPUs, 4), why, by `GapKind`.
        slack_ns: time that the CPU does not need: it waits in CUDA calls, or is ahead of the GPU.
        pace: the side that sets the pace of the step, as in `IterationPace` for a recorded one.
    """

    idle_ns: Ints
    activity_ns: Ints
    kind_ns: Ints
    slack_ns: int
    pace: Pace


@per_selection
def step_idle(view: ProfileView, selection: Selection) -> StepIdle:
    """The idle time of the selected steps."""
    gaps = idle_gaps(view, selection)
    wall, gpus = true_wall_ns(view, selection), len(view.profile.iterations.gpu_ids)
    idle = wall - gpu_busy_ns(view, selection).sum(axis=1)
    activity = np.zeros((gpus, len(ACTIVITIES)), dtype=np.int64)
    np.add.at(activity, gaps.gpu, gaps.activity_ns)
    kind = np.zeros((gpus, len(GapKind)), dtype=np.int64)
    np.add.at(kind, (gaps.gpu, gaps.kind), gaps.duration_ns)
    for gpu in range(gpus):
        activity[gpu] = _fitted(activity[gpu], ACTIVITY_GROUPS, int(idle[gpu]), ACTIVITIES.index("unknown"))
        kind[gpu] = _fitted(kind[gpu], _KIND_GROUPS, int(idle[gpu]), GapKind.UNKNOWN)
    slack = min(int(iteration_pace(view, selection).slack_ns.sum()), wall)
    return StepIdle(idle, activity, kind, slack, _pace(kind, idle, slack, wall))


def _fitted(times_ns: Ints, groups: tuple[tuple[int, ...], ...], total_ns: int, unknown: int) -> Ints:
    """The recorded times with the sum ``total_ns``; what the recording does not have is ``unknown``."""
    over = int(times_ns.sum()) - total_ns
    result = shortened(times_ns, groups, max(over, 0))
    result[unknown] += max(-over, 0)
    return result


def _pace(kind_ns: Ints, idle_ns: Ints, slack_ns: int, wall_ns: int) -> Pace:
    """By the GPU that is idle least."""
    if not len(idle_ns) or wall_ns <= 0:
        return Pace.UNKNOWN
    late, unknown = kind_ns[np.argmin(idle_ns)][[GapKind.HOST_WAIT, GapKind.UNKNOWN]].tolist()
    if late >= STARVED_SHARE * wall_ns:
        return Pace.MIXED if slack_ns >= SLACK_SHARE * wall_ns else Pace.CPU
    return Pace.UNKNOWN if unknown >= STARVED_SHARE * wall_ns else Pace.GPU
