"""The GPU's idle time by cause, in the words of the account of a step, and by what the CPU does in detail."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.cpu_activity import ACTIVITIES
from tb_dlprof_plugin.metrics.iterations import percent, shows_data_loading
from tb_dlprof_plugin.metrics.step_buckets import BUCKET_OF_ACTIVITY, bucket_labels, by_cause
from tb_dlprof_plugin.model.frameworks import PYTORCH, between_ops, loader_title, while_between_ops
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.pages.common import Slice
from tb_dlprof_plugin.pages.shared_definitions import SLICES
from tb_dlprof_plugin.profile_view import ProfileView

IdleCause = Literal["dataloader", "cpu_launch", "python", "idle"]
CAUSES: tuple[IdleCause, ...] = get_args(IdleCause)
"""`step_buckets.IDLE_CAUSES`."""
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


class IdleActivity(msgspec.Struct, frozen=True):
    """Idle time of the GPU in which the CPU does one thing, such as copying; it is a part of the time of ``cause``."""

    key: str
    cause: IdleCause
    label: str
    value_ns: int
    percent: float | None


def cause_labels(view: ProfileView) -> dict[IdleCause, str]:
    """Names of the causes in words of the framework that was recorded."""
    labels = bucket_labels(view.profile.source.framework, "gpu")
    return {cause: labels[cause] for cause in CAUSES}


def cause_slices(view: ProfileView, activity_ns: Ints) -> list[Slice]:
    """Idle time by cause, from that by `ACTIVITIES` (ns); all causes, with their shares.

    That of data loading is None where the recording cannot show it.
    """
    times, whole = by_cause(activity_ns).tolist(), int(activity_ns.sum())
    known = dict(zip(CAUSES, times, strict=True)) | ({} if shows_data_loading(view) else {"dataloader": None})
    return [
        Slice(cause, label, known[cause], percent(known[cause], whole)) for cause, label in cause_labels(view).items()
    ]


def activity_rows(view: ProfileView, activity_ns: Ints) -> list[IdleActivity]:
    """The same by what the CPU does in detail; activities without time are left out."""
    whole = int(activity_ns.sum())
    return [
        IdleActivity(key, _cause_of(key), _words(view, key)[0], time, percent(time, whole))
        for key, time in zip(ACTIVITIES, activity_ns.tolist(), strict=True)
        if time
    ]


def largest_causes(activity_ns: Ints) -> Ints:
    """Per row (last axis: `ACTIVITIES`) the index in `CAUSES` of the cause with the most time."""
    cause: Ints = by_cause(activity_ns).argmax(axis=-1).astype(np.int64)
    return cause


def while_words(view: ProfileView, cause: IdleCause, activity_ns: Ints) -> str:
    """Such as "the CPU launches work", for a sentence after "while"."""
    if cause == "cpu_launch":
        return _words(view, "launching")[1]
    if cause != "idle":
        return _words(view, cause)[1]
    times = {key: time for key, time in zip(ACTIVITIES, activity_ns.tolist(), strict=True) if _cause_of(key) == cause}
    return _words(view, max(times, key=lambda key: times[key]))[1]


def _words(view: ProfileView, activity: str) -> tuple[str, str]:
    """An activity's label, and the rest of a sentence after "while", in words of the framework."""
    framework = view.profile.source.framework
    label, phrase = _ACTIVITIES[activity]
    if activity == "python":
        return between_ops(framework).removesuffix(" between ops"), while_between_ops(framework)
    if activity == "dataloader" and framework != PYTORCH:
        return loader_title(framework), "the CPU waits for data"
    return label, phrase


def _cause_of(activity: str) -> IdleCause:
    return next(cause for cause in CAUSES if cause == BUCKET_OF_ACTIVITY[activity])
