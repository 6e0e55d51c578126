"""How long each GPU works in the selected steps: from the light window where there is one, else from the recording.

The profiler makes the CPU slower and not the GPU, so GPU time is kept as it was measured. It goes into no more than the
step without the profiler: where it does not fit, it is shortened.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.metrics.without_recorder import scaled
from tb_dlprof_plugin.model.intervals import exclusive, union
from tb_dlprof_plugin.model.profile import Bools, Ints, KernelKind, Profile, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.estimate import step_estimate

GPU_CATEGORIES = ("tensor_core", "other_kernels", "memory")
"""The first of `TIME_CATEGORIES`."""


@per_selection
def true_wall_ns(view: ProfileView, selection: Selection) -> int:
    """The selected steps without the profiler, one after the other (ns)."""
    estimate = step_estimate(view, selection)
    if estimate.as_recorded:
        return int(view.profile.iterations.duration_ns[selection.first : selection.last + 1].sum())
    return round(estimate.ns) * selection.count


@per_selection
def gpu_busy_ns(view: ProfileView, selection: Selection) -> Ints:
    """Time of the selected steps by GPU and `GPU_CATEGORIES` (ns), exclusive; shape (GPUs, 3)."""
    iterations = view.profile.iterations
    gpus = len(iterations.gpu_ids)
    per_step = _light_busy_ns(view.profile)
    if per_step is None:
        rows = slice(selection.first, selection.last + 1)
        busy_ns = iterations.category_ns[rows, :gpus, : len(GPU_CATEGORIES)].sum(axis=0)
    else:
        busy_ns = np.rint(per_step * selection.count).astype(np.int64)
    wall = true_wall_ns(view, selection)
    return np.array(
        [scaled(times, wall) if int(times.sum()) > wall else times for times in busy_ns], dtype=np.int64
    ).reshape(gpus, len(GPU_CATEGORIES))


def _light_busy_ns(profile: Profile) -> np.ndarray | None:  # type: ignore[type-arg]
    """Time (ns) by GPU and category of a mean step of the light window; None where none matches a recorded one."""
    light, activities = profile.light_window, profile.light_window.launches
    matched = light.iteration >= 0
    if not matched.any() or not len(activities):
        return None
    step = light.step_of_launches()
    chosen = (step >= 0) & (step < len(light))
    chosen &= matched[np.clip(step, 0, len(light) - 1)]
    if not chosen.any():
        return None
    recorded = activities.launch >= 0
    kernel = profile.launches.kernel[np.maximum(activities.launch, 0)]
    # Work that the full recording does not have counts among the other kernels.
    is_kernel = ~recorded | (profile.kernels.kind[kernel] == KernelKind.KERNEL)
    on_tensor_cores = recorded & is_kernel & (profile.kernels.tensor_core[kernel] == Verdict.YES)
    stop = activities.start_ns + activities.duration_ns
    window = (activities.start_ns.min(keepdims=True), stop.max(keepdims=True))

    def running(rows: Bools) -> tuple[Ints, Ints]:
        return union(activities.start_ns[rows], stop[rows])

    result = np.zeros((len(profile.iterations.gpu_ids), len(GPU_CATEGORIES)))
    for row, gpu in enumerate(profile.iterations.gpu_ids):
        here = chosen & (activities.device == gpu)
        layers = [running(here & on_tensor_cores), running(here & is_kernel & ~on_tensor_cores)]
        layers.append(running(here & ~is_kernel))
        result[row] = exclusive(layers, *window)[0] / int(matched.sum())
    return result
