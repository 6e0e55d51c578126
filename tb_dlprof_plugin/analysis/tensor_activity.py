"""How busy the Tensor Cores were by the GPU's own counter: of each iteration, and of each kernel that ran long enough.

A sample covers the time since the one before. It belongs to the iteration in which its middle lies, and to a kernel
where that alone ran on its GPU for all of it.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import Ints, TensorActivity
from tb_dlprof_plugin.model.timeline import DeviceKind, Timeline

_LONGEST_PERIODS = 4
"""A sample that comes later than so many usual periods after the one before tells of a gap."""
_LONGEST_SAMPLE_NS = 10**9
"""Nsight Systems takes at least ten samples a second."""
_PARTS = 1_000_000


def tensor_activity(timeline: Timeline, start_ns: Ints, stop_ns: Ints, kernel_of_launch: Ints) -> TensorActivity:
    """The measured activity.

    Args:
        timeline: the recording; appends the counter's name to its strings.
        start_ns: of the iterations, as the GPU worked for them.
        stop_ns: of the iterations.
        kernel_of_launch: per device event the row of its kernel.
    """
    samples = timeline.tensor_samples
    begin, end, device, percent = _intervals(timeline)
    if not len(begin):
        return TensorActivity.none()
    length = end - begin
    middle = begin + length // 2
    step = np.searchsorted(start_ns, middle, side="right") - 1
    inside = (step >= 0) & (middle < stop_ns[np.maximum(step, 0)]) if len(start_ns) else np.zeros(len(step), np.bool_)
    launch = _alone(timeline, begin, end, device)
    covered = launch >= 0
    steps = _means(step[inside], length[inside], percent[inside])
    kernels = _means(kernel_of_launch[launch[covered]], length[covered], percent[covered])
    timeline.strings.append(samples.metric)
    nothing = (np.full(len(steps[0]), -1, dtype=np.int64), np.full(len(kernels[0]), -1, dtype=np.int64))
    return TensorActivity(
        metric=np.full(len(steps[0]) + len(kernels[0]), len(timeline.strings) - 1, dtype=np.int64),
        iteration=np.concatenate((steps[0], nothing[1])),
        kernel=np.concatenate((nothing[0], kernels[0])),
        active_ppm=np.concatenate((steps[1], kernels[1])),
        measured_ns=np.concatenate((steps[2], kernels[2])),
    )


def _intervals(timeline: Timeline) -> tuple[Ints, Ints, Ints, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """What each sample covers."""
    samples = timeline.tensor_samples
    time, device = samples.time_ns, samples.device
    if len(time) < 2:
        return time[:0], time[:0], device[:0], samples.percent[:0]
    length = np.diff(time)
    same = (np.diff(device) == 0) & (length > 0)
    usual = int(np.median(length[same])) if same.any() else 0
    kept = np.flatnonzero(same & (length <= min(_LONGEST_PERIODS * usual, _LONGEST_SAMPLE_NS)))
    return time[kept], time[kept + 1], device[kept + 1], samples.percent[kept + 1]


def _alone(timeline: Timeline, begin: Ints, end: Ints, device: Ints) -> Ints:
    """The device event that alone ran on the GPU from ``begin`` to ``end``, -1 for none or several."""
    events = timeline.device
    result = np.full(len(begin), -1, dtype=np.int64)
    for one in np.unique(device).tolist():
        rows = np.flatnonzero(events.device == one)
        here = np.flatnonzero(device == one)
        if not len(rows):
            continue
        rows = rows[np.argsort(events.start_ns[rows], kind="stable")]
        start, stop = events.start_ns[rows], events.start_ns[rows] + events.duration_ns[rows]
        at = np.searchsorted(start, begin[here], side="right") - 1
        known = np.maximum(at, 0)
        before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(stop)[:-1]))
        after = np.concatenate((start[1:], [np.iinfo(np.int64).max]))
        alone = (at >= 0) & (stop[known] >= end[here]) & (before[known] <= begin[here]) & (after[known] >= end[here])
        alone &= events.kind[rows[known]] == DeviceKind.KERNEL
        result[here] = np.where(alone, rows[known], -1)
    return result


def _means(key: Ints, length: Ints, percent: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[Ints, Ints, Ints]:
    """The keys, the mean over the time of each (parts per million), and the time (ns)."""
    keys, place = np.unique(key, return_inverse=True)
    time = np.bincount(place, weights=length, minlength=len(keys))
    area = np.bincount(place, weights=length * percent, minlength=len(keys))
    mean = np.round(area / np.maximum(time, 1) / 100 * _PARTS).astype(np.int64)
    return keys, np.clip(mean, 0, _PARTS), time.astype(np.int64)
