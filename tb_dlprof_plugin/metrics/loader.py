"""What a DataLoader's batches take, stage by stage, and the step with another number of workers.

From what the hook measured of each batch (`model.profile.LoaderBatches`). Rates compare with the step without the
profiler: a stage limits where all that work in it deliver fewer batches than the training could take.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tb_dlprof_plugin.model.profile import IN_PROCESS, WORKER_UNKNOWN, Bools, Floats, Ints, LoaderBatches
from tb_dlprof_plugin.model.run_facts import LoaderRecording
from tb_dlprof_plugin.profile_view import ProfileView, per_view
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.simulation.loader import LoaderWork, WorkersStep, fewest_workers, steps_with
from tb_dlprof_plugin.simulation.pauses import loading_times
from tb_dlprof_plugin.simulation.simulator import Simulation

FEWEST, ENOUGH = 10, 30
"""Batches below which nothing is forecast, and from which on they are as many as the model's error was measured with
(`lab/loader`)."""
WORTH = 0.03
"""Of the step: fewer workers that cost less than this are preferred, as they take memory and cores."""
_WORTH_MORE = 0.06
"""Of the step: what more workers than now must save at least."""
_FAR_OFF = 0.25
"""Share of the measured step by which the simulated one may be off with the recorded number of workers."""
_MOST_WORKERS = 8
"""More are advised only up to twice the cores: as many were measured (`lab/loader`), and each takes memory."""
_LONG_GAP = 3.0
"""A gap of so many times the median is no step: the profiler starts, an evaluation runs."""
MODEL_ERROR, _FEW_ERROR, _MANY_ERROR = 0.10, 0.25, 0.30
"""Shares of the step by which the simulation may be off besides what the draws differ by: with `ENOUGH` batches, with
as few as `FEWEST`, and of batches of `MANY` tensors. Unpickling these waits for the worker, less so the less that has
to do. By `lab/loader`."""
_PUT_NS, _PUT_TENSOR_NS = 60_000, 60_000
_UNPICKLE_NS, _UNPICKLE_TENSOR_NS = 200_000, 110_000
HANDOVER_NS = 100_000
"""Handing a batch over, for a loader that was recorded without workers: for each batch and for each of its tensors,
which take a file descriptor each. Medians of `lab/loader` on two cores."""
_COPY_BYTES_NS = 2.0
"""Bytes per ns that are copied into shared memory."""

Stage = Literal["items", "collate", "put", "unpickle", "pin", "train"]


@dataclass(frozen=True, slots=True)
class StageTime:
    """What a batch takes in a stage.

    Attributes:
        stage: of the pipeline, in its order.
        ns: mean time of a batch.
        cpu_ns: of it on a CPU; None where that is not known.
        lanes: processes that work in it side by side.
        per_second: batches that all of them deliver, if nothing else delayed them.
    """

    stage: Stage
    ns: float
    cpu_ns: float | None
    lanes: int

    @property
    def per_second(self) -> float | None:
        return 1e9 * self.lanes / self.ns if self.ns > 0 else None


@dataclass(frozen=True, slots=True)
class LoaderForecast:
    """The step with other numbers of workers.

    Attributes:
        steps: with each number.
        now: with the recorded one.
        best: with the fewest that hide the loader as well as any number does; the recorded one where more are not
            worth it, or where the simulation does not describe the loader.
        unordered: with as many as now, if batches were given as they come; None where they are, or without workers.
        measured_ns: the step of the batches that were recorded without the profiler at the loader's pace; None where
            too few were.
    """

    steps: tuple[WorkersStep, ...]
    now: WorkersStep
    best: WorkersStep
    unordered: WorkersStep | None
    measured_ns: float | None

    @property
    def describes(self) -> bool:
        """Whether the step with the recorded number of workers is the measured one, as far as that is known."""
        return self.measured_ns is None or abs(self.now.ns / self.measured_ns - 1) <= _FAR_OFF


@dataclass(frozen=True, slots=True)
class SlowItems:
    """Items that take far longer than the others: how many, of how many, and how many times the median each takes."""

    count: int
    samples: int
    times: float
    share: float
    slowest: int | None


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
    count = len(_measured(view.profile.loader_batches))
    if count < FEWEST:
        return f"Only {count} batches were measured, and {FEWEST} are needed: record later or more steps."
    return None


@per_view
def stages(view: ProfileView) -> tuple[StageTime, ...]:
    """Of the pipeline, in its order; empty where they are not known."""
    work = loader_work(view)
    if work is None:
        return ()
    batches, rows = view.profile.loader_batches, _measured(view.profile.loader_batches)
    recording = view.profile.facts.loading
    workers = (recording.workers if recording is not None else 0) or 0
    lanes = max(workers, 1)
    found = [
        StageTime("items", *_mean(batches.items_ns, batches.items_cpu_ns, rows), lanes),
        StageTime("collate", *_mean(batches.collate_ns, batches.collate_cpu_ns, rows), lanes),
    ]
    if workers:
        found.append(StageTime("put", *_mean(batches.put_ns, batches.put_cpu_ns, rows), lanes))
        found.append(StageTime("unpickle", float(work.unpickle.mean()), None, 1))
        if work.pins:
            found.append(StageTime("pin", float(work.pin.mean()), None, 1))
    found.append(StageTime("train", float(work.train.mean()), float(work.train_cpu.mean()), 1))
    return tuple(found)


@per_view
def loader_work(view: ProfileView) -> LoaderWork | None:
    """What the simulation takes; None where the workers' side is not known."""
    if why_unknown(view) is not None:
        return None
    batches, recording = view.profile.loader_batches, view.profile.facts.loading
    assert recording is not None
    rows = _measured(batches)
    in_process = not recording.workers
    queued = np.maximum(batches.queued_ns[rows], 0).astype(float)
    made = (batches.items_ns + batches.collate_ns)[rows].astype(float)
    # A data set may decode in threads of its own; the one that serialises the batch before is none of them.
    threads = (batches.process_cpu_ns - np.maximum(batches.put_cpu_ns, 0))[rows]
    own = np.maximum((batches.items_cpu_ns + batches.collate_cpu_ns)[rows], 0 if in_process else threads)
    cpu = np.minimum(own.astype(float), made)
    train, train_cpu = _training(view)
    cores = float(recording.cores or view.profile.system.cpu_count or 1)
    others = _others(batches, rows, train_cpu, cores)
    off = np.maximum(made - cpu - (queued if others is not None else 0.0), 0.0)
    if in_process:
        tensors = np.maximum(batches.tensors[rows], 1).astype(float)
        size = np.maximum(batches.bytes[rows], 0).astype(float)
        put_cpu = _PUT_NS + _PUT_TENSOR_NS * tensors + size / _COPY_BYTES_NS
        unpickle = _UNPICKLE_NS + _UNPICKLE_TENSOR_NS * tensors
        handover = next_cpu = float(HANDOVER_NS)
    else:
        put = np.maximum(batches.put_ns[rows], 0).astype(float)
        # Waiting for a core while it serialises is not counted apart.
        put_cpu = np.minimum(np.maximum(batches.put_cpu_ns[rows], 0).astype(float), put)
        unpickle = _known(batches.unpickle_ns, rows, _UNPICKLE_NS)
        handover = float(np.median(_known(batches.handover_ns, rows, HANDOVER_NS)))
        given = batches.wait_cpu_ns.astype(float) - (0 if recording.pins else np.maximum(batches.unpickle_ns, 0))
        next_cpu = max(float(np.median(given)), 0.0)
    return LoaderWork(
        make_cpu=cpu,
        make_off=off,
        put_cpu=put_cpu,
        unpickle=unpickle,
        pin=_known(batches.pin_ns, rows, 0),
        handover=handover,
        next_cpu=next_cpu,
        train=train,
        train_cpu=train_cpu,
        prefetch=recording.prefetch_factor or 2,
        in_order=recording.in_order is not False,
        pins=bool(recording.pins) and bool((batches.pin_ns >= 0).any()),
        cores=cores,
        others=others or 0.0,
    )


@per_view
def loader_forecast(view: ProfileView) -> LoaderForecast | None:
    """The step with other numbers of workers; None where `why_unknown`."""
    work, recording = loader_work(view), view.profile.facts.loading
    if work is None or recording is None:
        return None
    count = min(len(work.make_cpu), len(work.train))
    error = MODEL_ERROR if count >= ENOUGH else _FEW_ERROR
    if float(np.median(view.profile.loader_batches.tensors)) >= MANY:
        error = max(error, _MANY_ERROR)
    found = steps_with(work, error=error)
    workers = recording.workers or 0
    now = next((one for one in found if one.workers == workers), None) or steps_with(work, (workers,), error)[0]
    unordered = None
    if workers and work.in_order:
        (unordered,) = steps_with(replace(work, in_order=False), (workers,), error)
    most = max(_MOST_WORKERS, 2 * work.cores, workers)
    best = fewest_workers([one for one in (*found, now) if one.workers <= most], WORTH)
    forecast = LoaderForecast(tuple(found), now, best, unordered, _measured_step(view))
    too_little = best.workers > now.workers and best.ns > (1 - _WORTH_MORE) * now.ns
    return replace(forecast, best=now) if too_little or not forecast.describes else forecast


@per_view
def slow_items(view: ProfileView) -> SlowItems | None:
    """Items that take four times the median of their batch and more; None where items were not timed one by one."""
    batches = view.profile.loader_batches
    timed = np.flatnonzero((batches.slow_samples >= 0) & (batches.median_sample_ns > 0) & (batches.samples > 1))
    if len(timed) < FEWEST:
        return None
    count, samples = int(batches.slow_samples[timed].sum()), int(batches.samples[timed].sum())
    slow_ns = float(batches.slow_samples_ns[timed].sum())
    middle = float(np.median(batches.median_sample_ns[timed]))
    worst = timed[np.argmax(np.where(batches.slow_samples[timed] > 0, batches.slow_samples_ns[timed], -1))]
    slowest = int(batches.slowest_sample[worst])
    share = slow_ns / max(float(batches.items_ns[timed].sum()), 1.0)
    return SlowItems(
        count, samples, slow_ns / count / middle if count else 0.0, share, slowest if slowest >= 0 else None
    )


@per_view
def loader_pace_ns(view: ProfileView) -> float | None:
    """Time in which the workers deliver a batch to a training that takes no time itself; None where it is not known, or
    without workers."""
    work, recording = loader_work(view), view.profile.facts.loading
    if work is None or recording is None or not recording.workers:
        return None
    (step,) = steps_with(replace(work, train=np.zeros(1), train_cpu=np.zeros(1)), (recording.workers,))
    return step.ns


@per_view
def step_without_slow_part(view: ProfileView) -> WorkersStep | None:
    """The step with as many workers as now if the part that costs most cost nothing; of many tensors, if they were one.
    None where it is not known, or where it is reading items as a whole."""
    part, work, forecast = slow_part(view), loader_work(view), loader_forecast(view)
    if part is None or work is None or forecast is None or part.kind == "items":
        return None
    batches, rows = view.profile.loader_batches, _measured(view.profile.loader_batches)
    if part.kind == "tensors":
        one = 1.0 / max(float(np.median(batches.tensors[rows])), 1.0)
        changed = replace(work, put_cpu=work.put_cpu * one, unpickle=work.unpickle * one)
    elif part.kind == "slow items":
        usual = np.maximum(batches.slow_samples * batches.median_sample_ns, 0)
        more = np.maximum(batches.slow_samples_ns - usual, 0)[rows].astype(float)
        off = np.minimum(more, work.make_off)
        changed = replace(work, make_off=work.make_off - off, make_cpu=np.maximum(work.make_cpu - (more - off), 0.0))
    else:
        found = {stage.stage: stage.ns for stage in stages(view)}
        made = found["items"] + found["collate"]
        whole = made + found.get("put", 0.0) + found.get("unpickle", 0.0)
        left = max(1.0 - part.share * whole / made, 0.0)
        changed = replace(work, make_off=work.make_off * left, make_cpu=work.make_cpu * left)
    (step,) = steps_with(changed, (forecast.now.workers,))
    return step


def memory_of(view: ProfileView, workers: int) -> int | None:
    """Bytes that so many workers hold, with the batches that are under way; None where it was not recorded."""
    recording, batches = view.profile.facts.loading, view.profile.loader_batches
    if recording is None or not recording.worker_memory_bytes:
        return None
    each = int(np.median(recording.worker_memory_bytes))
    size = max(int(np.median(batches.bytes)), 0) if len(batches) else 0
    return workers * (each + size * (recording.prefetch_factor or 2))


def waiting_share(view: ProfileView) -> float | None:
    """Share of the time of the training's thread in which it waits for batches, from 0 to 1; None where no batch was
    seen. A loader without workers works in that time."""
    batches, rows = view.profile.loader_batches, _at_pace(view)
    whole = float((batches.wait_ns + batches.gap_ns)[rows].sum())
    return float(batches.wait_ns[rows].sum()) / whole if whole > 0 else None


def _at_pace(view: ProfileView) -> Ints:
    """Rows of steps that show the loader's pace: after the batches that it loads ahead while it starts, and without the
    profiler, as far as enough are left."""
    batches = view.profile.loader_batches
    rows = _steady(batches)
    later = rows & (np.arange(len(batches)) >= _started(view))
    for narrower in (later, later & ~batches.recorded):
        rows = narrower if narrower.sum() >= FEWEST // 2 else rows
    found: Ints = np.flatnonzero(rows)
    return found


def _started(view: ProfileView) -> int:
    """Batches after which those that were loaded ahead at the start are used up."""
    recording = view.profile.facts.loading
    return 2 + ((recording.workers or 0) * (recording.prefetch_factor or 2) if recording is not None else 0)


LIMITS = 0.05
"""Share of the step that waiting has to be."""


@dataclass(frozen=True, slots=True)
class SlowPart:
    """The part of loading that costs most, and why.

    Attributes:
        kind: a transform, ``collate_fn``, handing over many tensors, few slow items that delay the others, or reading
            items as a whole.
        share: of the time of a batch in the loader.
        name: of the transform or the function; "" otherwise.
    """

    kind: Literal["transform", "collate", "tensors", "slow items", "items"]
    share: float
    name: str = ""


_MOST_OF_IT = 0.5
"""Share of a batch's time from which one transform, ``collate_fn`` or slow items are its cause."""
_MUCH_OF_IT = 0.3
"""The same of handing over, which costs next to nothing where tensors are few."""
MANY = 16
"""Tensors of a batch from which on fewer are worth the change: each takes a file descriptor, and 0.1 ms on either
side."""


@per_view
def slow_part(view: ProfileView) -> SlowPart | None:
    """Of the loader; None where it is not known."""
    found = {stage.stage: stage.ns for stage in stages(view)}
    work, recording, batches = loader_work(view), view.profile.facts.loading, view.profile.loader_batches
    if work is None or recording is None:
        return None
    handing = found.get("put", 0.0) + found.get("unpickle", 0.0)
    whole = found["items"] + found["collate"] + handing
    if whole <= 0:
        return None
    slow, samples = slow_items(view), recording.transform_samples
    if slow is not None and slow.count and slow.share * found["items"] / whole >= _MUCH_OF_IT:
        return SlowPart("slow items", slow.share * found["items"] / whole)
    if handing / whole >= _MUCH_OF_IT and float(np.median(batches.tensors)) >= MANY:
        return SlowPart("tensors", handing / whole)
    if found["collate"] / whole >= _MOST_OF_IT:
        return SlowPart("collate", found["collate"] / whole, recording.collate or "")
    if recording.transforms and samples:
        slowest = recording.transforms[0]
        share = slowest.wall_ns / samples * float(np.median(batches.samples[_measured(batches)])) / whole
        if share >= _MOST_OF_IT:
            return SlowPart("transform", min(share, 1.0), slowest.name)
    return SlowPart("items", found["items"] / whole)


def _measured(batches: LoaderBatches) -> Ints:
    """Rows whose making was measured."""
    rows: Ints = np.flatnonzero((batches.worker != WORKER_UNKNOWN) & (batches.items_ns >= 0))
    return rows


def _steady(batches: LoaderBatches) -> Bools:
    """Rows after the first two steps, whose gap is a step's."""
    usual: Bools = batches.gap_ns >= 0
    usual[: min(2, len(usual))] = False
    if usual.any():
        usual &= batches.gap_ns <= _LONG_GAP * float(np.median(batches.gap_ns[usual]))
    return usual


def _mean(wall: Ints, cpu: Ints, rows: Ints) -> tuple[float, float | None]:
    known = rows[wall[rows] >= 0]
    if not len(known):
        return 0.0, None
    return float(wall[known].mean()), float(cpu[known].mean())


def _known(column: Ints, rows: Ints, otherwise: float) -> Floats:
    """Of these rows, with the median for those that are not known."""
    values = column[rows].astype(float)
    known = values >= 0
    values[~known] = float(np.median(values[known])) if known.any() else otherwise
    return values


def _training(view: ProfileView) -> tuple[Floats, Floats]:
    """The steps without loading, as without the profiler, and their CPU time."""
    batches = view.profile.loader_batches
    steady = _steady(batches)
    plain = steady & ~batches.recorded
    rows = np.flatnonzero(plain if plain.sum() >= FEWEST // 2 else steady)
    if not len(rows):
        rows = np.flatnonzero(batches.gap_ns >= 0)
    train = np.maximum(batches.gap_ns[rows], 1).astype(float) if len(rows) else np.ones(1)
    cpu = np.maximum(batches.gap_cpu_ns[rows], 0).astype(float) if len(rows) else np.zeros(1)
    if view.profile.has_gpu:
        # The CPU runs ahead of the GPU: a step takes what the replay says without any loading.
        whole = view.selection()
        simulation = Simulation(view, whole)
        least = simulation.usual([Change(cpu=loading_times(view, whole), keep_cpu=0.0)], "expected").ns
        train = np.maximum(train, min(least, step_estimate(view, whole).ns))
    return train, cpu


def _measured_step(view: ProfileView) -> float | None:
    batches, rows = view.profile.loader_batches, _at_pace(view)
    if len(rows) < FEWEST or rows[0] < _started(view) or batches.recorded[rows].any():
        return None
    return float((batches.gap_ns + batches.wait_ns)[rows].mean())


def _others(batches: LoaderBatches, rows: Ints, train_cpu: Floats, cores: float) -> float | None:
    """Threads of other programs that compete for the cores: as many as make the workers wait for one as they did.

    A thread that is ready runs at the rate cores / (own threads + others). None where the loader and the training are
    too idle to keep each other waiting: what they waited for a core then is others' doing, and stays as it was.
    """
    timed = rows[batches.queued_ns[rows] >= 0]
    steady = np.flatnonzero(_steady(batches))
    span = float((batches.gap_ns + batches.wait_ns)[steady].mean()) if len(steady) else 0.0
    if len(timed) < 2 or span <= 0:
        return None
    cpu = float((batches.items_cpu_ns + batches.collate_cpu_ns)[timed].mean())
    queued = float(batches.queued_ns[timed].mean())
    training = float(train_cpu.mean())
    if (cpu + training) / span < _BUSY * cores:
        return None
    stretch = (cpu + queued) / max(cpu, 1.0)
    # A worker runs itself while it is timed, so it counts whole; the training by its share of the time.
    in_process = int(batches.worker[timed[0]]) == IN_PROCESS
    own = 1.0 if in_process else max(1.0, (cpu + queued) / span) + training / span
    return max(0.0, cores * stretch - own) if stretch > _CROWDED else 0.0


_BUSY = 0.4
"""Share of the cores that loader and training use together, from which on they keep each other waiting."""
_CROWDED = 1.1
"""Time of a thread that is ready, over its time on a core, from which cores are scarce."""
