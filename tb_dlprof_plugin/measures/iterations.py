"""Wall time, time categories and GPU utilization of the selected iterations."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.frame import Frame, Selection, per_selection
from tb_dlprof_plugin.storage.model import TIME_CATEGORIES

GPU_CATEGORIES = ("tensor_core", "other_kernels", "memory")


@dataclass(frozen=True, slots=True)
class StepTotals:
    """Sums over the selected iterations, means over the GPUs that the process used.

    Attributes:
        wall_ns: sum of the iterations' wall times.
        average_ns: wall time per iteration.
        deviation_ns: sample standard deviation of the iterations' wall times, None for fewer than two.
        category_ns: wall time by category; None for a category that the source cannot tell, or that needs a GPU where
            none was used. The known ones sum to ``wall_ns``.
        gpu_busy_ns: time in which a kernel, copy or set ran; None without a GPU.
        gpu_utilization: ``gpu_busy_ns / wall_ns`` in percent; None without a GPU.
    """

    wall_ns: int
    average_ns: int
    deviation_ns: int | None
    category_ns: dict[str, int | None]
    gpu_busy_ns: int | None
    gpu_utilization: float | None


@per_selection
def step_totals(frame: Frame, selection: Selection) -> StepTotals:
    """Totals over the selected iterations."""
    iterations = frame.profile.iterations
    rows = slice(selection.first, selection.last + 1)
    durations = iterations.duration_ns[rows]
    wall = int(durations.sum())
    categories = category_sums(frame, rows)
    has_gpu = bool(iterations.gpu_ids)
    busy = sum(categories[name] or 0 for name in GPU_CATEGORIES) if has_gpu else None
    return StepTotals(
        wall_ns=wall,
        average_ns=round(wall / selection.count),
        deviation_ns=round(float(durations.std(ddof=1))) if selection.count > 1 else None,
        category_ns=categories,
        gpu_busy_ns=busy,
        gpu_utilization=percent(busy, wall),
    )


def category_sums(frame: Frame, rows: slice) -> dict[str, int | None]:
    """Time by category over some iterations, the mean over GPUs; rounding goes to the last category."""
    iterations = frame.profile.iterations
    sums = iterations.category_ns[rows].sum(axis=0)
    mean = sums.sum(axis=0) // sums.shape[0]
    mean[-1] += int(iterations.duration_ns[rows].sum()) - int(mean.sum())
    unknown = set(iterations.unrecorded_categories) | (set() if iterations.gpu_ids else set(GPU_CATEGORIES))
    return {name: None if name in unknown else int(value) for name, value in zip(TIME_CATEGORIES, mean, strict=True)}


def percent(part: int | float | None, whole: int | float | None) -> float | None:
    """``100 * part / whole``, None where either is unknown or the whole is nothing."""
    if part is None or not whole:
        return None
    return 100.0 * part / whole
