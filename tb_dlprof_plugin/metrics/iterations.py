"""Wall time, time categories and GPU utilization of the selected steps: as they are without the profiler, and recorded.

GPU time is kept as measured; idle time becomes what the step without the profiler leaves. The excess of the recorded
step is the recorder's overhead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.gpu_busy import GPU_CATEGORIES, gpu_busy_ns, true_wall_ns
from tb_dlprof_plugin.metrics.without_recorder import shortened
from tb_dlprof_plugin.model.profile import TIME_CATEGORIES
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.estimate import StepEstimate, step_estimate

RECORDER_ORDER = (("cpu", "other"), ("io",), ("dataloader",))
"""Where the recorder's time is, most likely first: in ops and CUDA calls and between them, in proportion, as the replay
has it (`simulation.host_clock`). What the DataLoader's workers do is not recorded."""


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Sums over the selected steps without the profiler, means over the GPUs that the process used.

    Attributes:
        estimate: the step without the profiler, its interval and source.
        count: number of selected steps.
        wall_ns: ``count`` such steps.
        average_ns: one of them.
        recorded_wall_ns: sum of the recorded iterations' wall times.
        recorded_ns: recorded wall time per iteration.
        recorder_ns: the recorder's overhead, ``recorded_wall_ns - wall_ns`` or 0: in no category.
        deviation_ns: sample standard deviation of the recorded iterations, None for fewer than two.
        category_ns: wall time by category; None for a category that the source does not record, or that needs a GPU
            where none was used. The known ones sum to ``wall_ns``.
        gpu_busy_ns: time in which a kernel, copy or set ran; None without a GPU.
        gpu_utilization: ``gpu_busy_ns / wall_ns`` in percent; None without a GPU.
    """

    estimate: StepEstimate
    count: int
    wall_ns: int
    average_ns: int
    recorded_wall_ns: int
    recorded_ns: int
    recorder_ns: int
    deviation_ns: int | None
    category_ns: dict[str, int | None]
    gpu_busy_ns: int | None
    gpu_utilization: float | None

    @property
    def gpu_idle_ns(self) -> int | None:
        """The rest of ``wall_ns``, in which the GPU waits; None without a GPU."""
        return None if self.gpu_busy_ns is None else self.wall_ns - self.gpu_busy_ns

    @property
    def gpu_idle_percent(self) -> float | None:
        """The share of ``wall_ns`` in which the GPU waits; None without a GPU."""
        return percent(self.gpu_idle_ns, self.wall_ns)

    def samples_per_second(self, batch_size: int | None) -> float | None:
        """Of one process; None where the batch size or the step is unknown."""
        return batch_size * 1e9 / self.average_ns if batch_size and self.estimate.is_step else None


@per_selection
def step_totals(view: ProfileView, selection: Selection) -> StepTotals:
    """Totals over the selected steps."""
    iterations = view.profile.iterations
    durations = iterations.duration_ns[selection.first : selection.last + 1]
    wall, recorded = true_wall_ns(view, selection), int(durations.sum())
    categories = _true_categories(view, selection, wall)
    busy = sum(categories[name] or 0 for name in GPU_CATEGORIES) if iterations.gpu_ids else None
    return StepTotals(
        estimate=step_estimate(view, selection),
        count=selection.count,
        wall_ns=wall,
        average_ns=round(wall / selection.count),
        recorded_wall_ns=recorded,
        recorded_ns=round(recorded / selection.count),
        recorder_ns=max(recorded - wall, 0),
        deviation_ns=round(float(durations.std(ddof=1))) if selection.count > 1 else None,
        category_ns=categories,
        gpu_busy_ns=busy,
        gpu_utilization=percent(busy, wall),
    )


def shows_data_loading(view: ProfileView) -> bool:
    """Whether the recording can show that the step waits for data: else such times are unknown, not 0."""
    return "dataloader" not in view.profile.iterations.unrecorded_categories


def category_sums(view: ProfileView, rows: slice) -> dict[str, int | None]:
    """Recorded time by category over some iterations, the mean over GPUs; rounding goes to the last category."""
    iterations = view.profile.iterations
    sums = iterations.category_ns[rows].sum(axis=0)
    mean = sums.sum(axis=0) // sums.shape[0]
    mean[-1] += int(iterations.duration_ns[rows].sum()) - int(mean.sum())
    unknown = set(iterations.unrecorded_categories) | (set() if iterations.gpu_ids else set(GPU_CATEGORIES))
    return {name: None if name in unknown else int(value) for name, value in zip(TIME_CATEGORIES, mean, strict=True)}


def percent(part: int | float | None, whole: int | float | None) -> float | None:
    """``100 * part / whole``, None where either is unknown or the whole is nothing.

    Between 0 and 100: calls of several threads at once, or a damaged recording, can have more time than there is.
    """
    if part is None or not whole:
        return None
    # A numpy number, which an answer cannot hold, becomes one of Python's.
    return float(min(100.0, max(0.0, 100.0 * part / whole)))


_RECORDER_GROUPS = tuple(tuple(TIME_CATEGORIES.index(name) for name in group) for group in RECORDER_ORDER)


def _true_categories(view: ProfileView, selection: Selection, wall_ns: int) -> dict[str, int | None]:
    recorded = category_sums(view, slice(selection.first, selection.last + 1))
    times = np.array([recorded[name] or 0 for name in TIME_CATEGORIES], dtype=np.int64)
    gpu = gpu_busy_ns(view, selection)
    if len(gpu):
        times[: len(GPU_CATEGORIES)] = gpu.sum(axis=0) // len(gpu)
    over = int(times.sum()) - wall_ns
    times = shortened(times, _RECORDER_GROUPS, max(over, 0))
    # If the step is longer than the recorded one, the excess is in no known category.
    times[-1] += max(-over, 0)
    return {name: None if recorded[name] is None else int(times[at]) for at, name in enumerate(TIME_CATEGORIES)}
