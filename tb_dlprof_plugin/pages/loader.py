"""The DataLoader page: what a batch takes in each stage, which one limits, the step with other numbers of workers."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.advice.loader_hints import loader_hints
from tb_dlprof_plugin.metrics.loader.batches import (
    ENOUGH,
    LIMITS,
    loader_recording,
    median_known,
    memory_of,
    waiting_share,
    why_unknown,
)
from tb_dlprof_plugin.metrics.loader.forecast import LoaderForecast, loader_forecast, why_no_forecast
from tb_dlprof_plugin.metrics.loader.parts import Stage, stages
from tb_dlprof_plugin.model.formatting import duration, share
from tb_dlprof_plugin.model.profile import WORKER_UNKNOWN
from tb_dlprof_plugin.model.run_facts import LoaderRecording
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

_STAGES: dict[Stage, str] = {
    "items": "Read items",
    "collate": "Collate",
    "put": "Hand over",
    "unpickle": "Unpickle",
    "pin": "Pin",
    "train": "Train",
}
_WHERE: dict[Stage, str] = {"unpickle": "training process", "pin": "thread that pins", "train": "training process"}


class LoaderStage(msgspec.Struct, frozen=True):
    """A stage of the pipeline. ``lanes`` work in it side by side; ``key`` names it."""

    key: str
    stage: Annotated[str, Column("Stage", "What is done with a batch, in the order of the pipeline.", width=130)]
    where: Annotated[str, Column("Where", "The processes that do it.", width=150)]
    batch_ns: Annotated[float, Column("A batch", "Mean time of a batch in this stage, in one process.")]
    cpu_percent: Annotated[
        float | None,
        Column("On a CPU", "Share of that time on a core; the rest waits for data or for a core."),
    ]
    lanes: Annotated[int, Column("At once", "Processes that work in this stage side by side.")]
    per_second: Annotated[
        float | None,
        Column(
            "Batches/s",
            "Batches that this stage alone could deliver. Stages of the workers share them.",
            unit="per_second",
        ),
    ]
    limits: Annotated[bool, Column("Limits", "Whether the step waits for this stage.")]


class WorkersRow(msgspec.Struct, frozen=True):
    """The step with so many workers."""

    workers: Annotated[int, Column("Workers", "Worker processes of the DataLoader.")]
    step_ns: Annotated[float, Column("Step", "The step that the simulation of this loader gives.")]
    low_ns: Annotated[float, Column("At least", "loaderInterval")]
    high_ns: Annotated[float, Column("At most", "loaderInterval")]
    wait_ns: Annotated[float, Column("Waits", "Time of the step in which the training waits for its batch.")]
    memory_bytes: Annotated[
        int | None,
        Column("Memory", "What these workers hold for themselves, with the batches that are under way."),
    ]
    note: Annotated[str, Column("", "The recorded number, and one that is advised.", missing="–", width=120)]


class TransformRow(msgspec.Struct, frozen=True):
    """A class of transforms."""

    name: Annotated[str, Column("Transform", "Class of the transform, or its function.", width=220)]
    sample_ns: Annotated[float, Column("A sample", "Mean time of a sample, without transforms inside.")]
    cpu_percent: Annotated[float | None, Column("On a CPU", "Share of that time on a core.")]
    percent: Annotated[float | None, Column("Share", "Share of the time of reading items.", bar=True)]


class LoaderPage(msgspec.Struct, frozen=True):
    """What the training's DataLoader does. ``unknown`` says why stages and workers are empty, "" where they are not."""

    ref: RunRef
    headline: str
    unknown: str
    waiting_percent: Annotated[
        float | None,
        Definition(
            "loaderWaits",
            "Share of its time in which the training's thread waits for a batch. Without workers it loads then.",
        ),
    ]
    wait_ns: Annotated[
        float | None, Definition("loaderWait", "Median time from asking for a batch until the training has it.")
    ]
    ready: Annotated[
        float | None,
        Definition("loaderReady", "Mean number of batches that were there when the training asked."),
    ]
    batches: Annotated[
        int, Definition("loaderBatches", "Batches that were measured: the last ones before the recording ended.")
    ]
    batch_bytes: Annotated[int | None, Definition("loaderBytes", "Median size of the tensors of a batch.")]
    tensors: Annotated[
        int | None,
        Definition("loaderTensors", "Median number of tensors of a batch; each is handed over by itself."),
    ]
    first_batch_ns: Annotated[
        float | None,
        Definition("loaderFirst", "From making the loader's iterator to its first batch, with the start of workers."),
    ]
    start_method: str
    workers_now: int | None
    workers_advised: Annotated[
        int | None,
        Definition("loaderWorkers", "The fewest workers with which the step is as short as with any, but for 3 %."),
    ]
    stages: list[LoaderStage]
    workers: list[WorkersRow]
    transforms: list[TransformRow]
    hints: list[str]


def loader_page(view: ProfileView, ref: RunRef, selection: Selection) -> LoaderPage:
    """The DataLoader page. It is of all batches that were measured, whatever the selection."""
    recording, batches = loader_recording(view), view.profile.loader_batches
    unknown = why_unknown(view) or ""
    forecast = loader_forecast(view)
    rows = _stages(view)
    asked = batches.ready[batches.ready >= 0]
    return LoaderPage(
        ref=ref,
        headline=_headline(view, recording, forecast),
        unknown=unknown,
        waiting_percent=None if (waits := waiting_share(view)) is None else 100 * waits,
        wait_ns=float(np.median(batches.wait_ns)) if len(batches) else None,
        ready=float(asked.mean()) if len(asked) else None,
        batches=len(batches),
        batch_bytes=median_known(batches.bytes),
        tensors=median_known(batches.tensors),
        first_batch_ns=recording.first_batch_ns if recording else None,
        start_method=(recording.start_method if recording else None) or "",
        workers_now=recording.workers if recording else None,
        workers_advised=forecast.best.workers if forecast else None,
        stages=rows,
        workers=_workers(view, forecast),
        transforms=_transforms(view, recording, rows),
        hints=loader_hints(view),
    )


def _headline(view: ProfileView, recording: LoaderRecording | None, forecast: LoaderForecast | None) -> str:
    waits, why_not = waiting_share(view), why_no_forecast(view) or ""
    if recording is None or waits is None:
        return why_not
    workers = recording.workers or 0
    named = f"{workers} worker{'s' if workers != 1 else ''}" if workers else "no workers"
    verb = "waits for its batch" if workers else "loads its batch itself"
    text = f"With {named} the training {verb} in {share(100 * waits, 0)} of its time."
    if forecast is None:
        return f"{text} {why_not}"
    best = forecast.best
    if best.workers != workers:
        text += (
            f" With {best.workers} the step takes {duration(best.ns)} ({duration(best.low_ns)} to "
            f"{duration(best.high_ns)}) in place of {duration(forecast.now.ns)}."
        )
    measured = int((view.profile.loader_batches.worker != WORKER_UNKNOWN).sum())
    return f"{text} From {measured} batches: the interval is wide." if measured < ENOUGH else text


def _stages(view: ProfileView) -> list[LoaderStage]:
    found = stages(view)
    makes = "worker" if any(one.stage == "put" for one in found) else "training process"
    loading = [one for one in found if one.stage != "train"]
    slowest = max(loading, key=lambda one: one.ns / one.lanes, default=None)
    train_ns = sum(one.ns for one in found if one.stage == "train")
    made_ns = sum(one.ns / one.lanes for one in loading if one.stage not in _WHERE)
    # Of workers that make batches faster than the training takes them, waiting is variation, and no stage's doing.
    if (waiting_share(view) or 0.0) < LIMITS or (makes == "worker" and made_ns <= train_ns):
        slowest = None
    return [
        LoaderStage(
            key=one.stage,
            stage=_STAGES[one.stage],
            where=_WHERE.get(one.stage, makes),
            batch_ns=one.ns,
            cpu_percent=None if one.cpu_ns is None or one.ns <= 0 else min(100.0, 100 * one.cpu_ns / one.ns),
            lanes=one.lanes,
            per_second=one.per_second,
            limits=one is slowest or (one.stage == "train" and slowest is None),
        )
        for one in found
    ]


def _workers(view: ProfileView, forecast: LoaderForecast | None) -> list[WorkersRow]:
    if forecast is None:
        return []
    now, best = forecast.now.workers, forecast.best.workers
    steps = {one.workers: one for one in (*forecast.steps, forecast.now)}
    return [
        WorkersRow(
            workers=count,
            step_ns=one.ns,
            low_ns=one.low_ns,
            high_ns=one.high_ns,
            wait_ns=one.wait_ns,
            memory_bytes=memory_of(view, count),
            note="recorded" if count == now else "advised" if count == best else "",
        )
        for count, one in sorted(steps.items())
    ]


def _transforms(view: ProfileView, recording: LoaderRecording | None, rows: list[LoaderStage]) -> list[TransformRow]:
    if recording is None or not recording.transform_samples:
        return []
    samples = recording.transform_samples
    batch = median_known(view.profile.loader_batches.samples)
    items = next((row.batch_ns for row in rows if row.key == "items"), 0.0)
    each = items / batch if batch else 0.0
    return [
        TransformRow(
            name=one.name,
            sample_ns=one.wall_ns / samples,
            cpu_percent=min(100.0, 100 * one.cpu_ns / one.wall_ns) if one.wall_ns else None,
            percent=min(100.0, 100 * one.wall_ns / samples / each) if each else None,
        )
        for one in recording.transforms
    ]
