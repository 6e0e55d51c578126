"""The GPU's idle time as a phrase, the same on every page: what it waits for, and its share of the step."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.iteration_pace import Pace
from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.step_idle import step_idle
from tb_dlprof_plugin.model.formatting import share
from tb_dlprof_plugin.profile_view import ProfileView, Selection

_MOSTLY = 0.5


def idle_words(view: ProfileView, selection: Selection, cpu: str = "the CPU") -> str | None:
    """Such as "waits for the CPU 43 %"; None without a GPU, and where it is idle for less than 1 % of the step.

    Args:
        view: the recording.
        selection: the iterations.
        cpu: what the GPU waits for where the CPU sets the pace.
    """
    steps = step_totals(view, selection)
    idle, percent = steps.gpu_idle_ns, steps.gpu_idle_percent
    if idle is None or percent is None or percent < 1:
        return None
    if (steps.category_ns["dataloader"] or 0) > _MOSTLY * idle:
        return f"waits for data {share(percent)}"
    late = step_idle(view, selection).pace in (Pace.CPU, Pace.MIXED)
    return f"waits for {cpu} {share(percent)}" if late else f"is idle {share(percent)}"
