"""The GPU's idle time by cause, in the words of the account of a step, and by what the CPU does in detail."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.cpu_activity import ACTIVITIES
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.step_buckets import BUCKET_OF_ACTIVITY, GPU_BUCKETS, by_cause
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.pages.common import Slice
from tb_dlprof_plugin.pages.shared_definitions import SLICES

IdleCause = Literal["dataloader", "cpu_launch", "python", "idle"]
CAUSES: tuple[IdleCause, ...] = get_args(IdleCause)
"""`step_buckets.IDLE_CAUSES`."""
LABELS: dict[IdleCause, str] = {cause: GPU_BUCKETS[cause] for cause in CAUSES}
DEFINITIONS: dict[IdleCause, str] = {cause: SLICES["account"][cause] for cause in CAUSES}

_ACTIVITIES = {
    # Label, and the rest of a sentence after "while".
    "dataloader": ("DataLoader", "the CPU waits for the DataLoader"),
    "synchronising": ("Synchronising", "the CPU is in synchronising calls"),
    "copying": ("Copying", "the CPU prepares copies"),
    "launching": ("Launching", "the CPU launches work"),
    "ops": ("Other ops and CUDA calls", "the CPU runs other ops and CUDA calls"),
    "python": ("Python", "the CPU runs Python between ops"),
    "unknown": ("Not recorded", "the CPU was not recorded"),
}
_WHILE: dict[IdleCause, str] = {
    "dataloader": _ACTIVITIES["dataloader"][1],
    "cpu_launch": _ACTIVITIES["launching"][1],
    "python": _ACTIVITIES["python"][1],
}
"""The rest of a sentence after "while"; other idle time has that of its largest activity."""


class IdleActivity(msgspec.Struct, frozen=True):
    """Idle time of the GPU in which the CPU does one thing, such as copying; it is a part of the time of ``cause``."""

    key: str
    cause: IdleCause
    label: str
    value_ns: int
    percent: float | None


def cause_slices(activity_ns: Ints) -> list[Slice]:
    """Idle time by cause, from that by `ACTIVITIES` (ns); all causes, with their shares."""
    times, whole = by_cause(activity_ns).tolist(), int(activity_ns.sum())
    return [Slice(cause, LABELS[cause], time, percent(time, whole)) for cause, time in zip(CAUSES, times, strict=True)]


def activity_rows(activity_ns: Ints) -> list[IdleActivity]:
    """The same by what the CPU does in detail; activities without time are left out."""
    whole = int(activity_ns.sum())
    return [
        IdleActivity(key, _cause_of(key), _ACTIVITIES[key][0], time, percent(time, whole))
        for key, time in zip(ACTIVITIES, activity_ns.tolist(), strict=True)
        if time
    ]


def largest_causes(activity_ns: Ints) -> Ints:
    """Per row (last axis: `ACTIVITIES`) the index in `CAUSES` of the cause with the most time."""
    result: Ints = by_cause(activity_ns).argmax(axis=-1).astype(np.int64)
    return result


def while_words(cause: IdleCause, activity_ns: Ints) -> str:
    """Such as "the CPU launches work", for a sentence after "while"."""
    if cause in _WHILE:
        return _WHILE[cause]
    times = {key: time for key, time in zip(ACTIVITIES, activity_ns.tolist(), strict=True) if _cause_of(key) == cause}
    return _ACTIVITIES[max(times, key=lambda key: times[key])][1]


def _cause_of(activity: str) -> IdleCause:
    return next(cause for cause in CAUSES if cause == BUCKET_OF_ACTIVITY[activity])
