"""The measured batches of a DataLoader: which of them count for what, what is unknown, how long the training waits."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import WORKER_UNKNOWN, Bools, Ints, LoaderBatches
from tb_dlprof_plugin.model.run_facts import LoaderRecording
from tb_dlprof_plugin.profile_view import ProfileView

FEWEST, ENOUGH = 10, 30
"""Batches below which nothing is forecast, and from which on they are as many as the model's error was measured with
(`lab/loader`)."""
LIMITS = 0.05
"""Share of the step that waiting has to be."""
_LONG_GAP = 3.0
"""A gap of so many times the median is no step: the profiler starts, an evaluation runs."""


def loader_recording(view: ProfileView) -> LoaderRecording | None:
    """Of the training's DataLoader; None where none was seen."""
    return view.profile.facts.loading if len(view.profile.loader_batches) else None


def why_unknown(view: ProfileView) -> str | None:
    """Why the stages of the loader are not known, in one sentence; None where they are."""
    recording = loader_recording(view)
    if recording is None:
        return (
            "No batch of a DataLoader was measured: record with this version, and iterate over a torch DataLoader, or "
            "pass another loader as dataloader=."
        )
    if recording.missing:
        return recording.missing
    count = len(measured_rows(view.profile.loader_batches))
    if count < FEWEST:
        return f"Only {count} batches were measured, and {FEWEST} are needed: record later or more steps."
    return None


def waiting_share(view: ProfileView) -> float | None:
    """Share of the time of the training's thread in which it waits for batches, from 0 to 1; None where no batch was
    seen. A loader without workers works in that time."""
    batches, rows = view.profile.loader_batches, paced_rows(view)
    whole = float((batches.wait_ns + batches.gap_ns)[rows].sum())
    return float(batches.wait_ns[rows].sum()) / whole if whole > 0 else None


def measured_step(view: ProfileView) -> float | None:
    batches, rows = view.profile.loader_batches, paced_rows(view)
    if len(rows) < FEWEST or rows[0] < batches_ahead(view) or batches.recorded[rows].any():
        return None
    return float((batches.gap_ns + batches.wait_ns)[rows].mean())


def memory_of(view: ProfileView, workers: int) -> int | None:
    """Bytes that so many workers hold, with the batches that are under way; None where it was not recorded."""
    recording, batches = view.profile.facts.loading, view.profile.loader_batches
    if recording is None or not recording.worker_memory_bytes:
        return None
    each = int(np.median(recording.worker_memory_bytes))
    size = median_known(batches.bytes) or 0
    return workers * (each + size * (recording.prefetch_factor or 2))


def median_known(column: Ints) -> int | None:
    """Of the batches of which it is known; None of none. Not all short batches are measured where they are made."""
    known = column[column >= 0]
    return int(np.median(known)) if len(known) else None


def measured_rows(batches: LoaderBatches) -> Ints:
    """Rows whose making was measured; without each worker's first, which fills caches, where enough are left."""
    rows: Ints = np.flatnonzero((batches.worker != WORKER_UNKNOWN) & (batches.items_ns >= 0))
    later = np.delete(rows, np.unique(batches.worker[rows], return_index=True)[1])
    return later if len(later) >= FEWEST else rows


def steady_rows(batches: LoaderBatches) -> Bools:
    """Rows after the first two steps, whose gap is a step's."""
    usual: Bools = batches.gap_ns >= 0
    usual[: min(2, len(usual))] = False
    if usual.any():
        usual &= batches.gap_ns <= _LONG_GAP * float(np.median(batches.gap_ns[usual]))
    return usual


def paced_rows(view: ProfileView) -> Ints:
    """Rows of steps that show the loader's pace: after the batches that it loads ahead while it starts, and without the
    profiler, as far as enough are left."""
    batches = view.profile.loader_batches
    rows = steady_rows(batches)
    later = rows & (np.arange(len(batches)) >= batches_ahead(view))
    for narrower in (later, later & ~batches.recorded):
        rows = narrower if narrower.sum() >= FEWEST // 2 else rows
    found: Ints = np.flatnonzero(rows)
    return found


def batches_ahead(view: ProfileView) -> int:
    """Batches after which those that were loaded ahead at the start are used up."""
    recording = view.profile.facts.loading
    return 2 + ((recording.workers or 0) * (recording.prefetch_factor or 2) if recording is not None else 0)
