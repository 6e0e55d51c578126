"""What a batch takes in each stage of the loader, and the part that costs most.

Rates compare with the step without the profiler: a stage limits where all that work in it deliver fewer batches than
the training could take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tb_dlprof_plugin.metrics.loader.batches import FEWEST, measured_rows, median_known
from tb_dlprof_plugin.metrics.loader.work import loader_work
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.profile_view import ProfileView, per_view
from tb_dlprof_plugin.simulation.loader import LoaderWork

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
class SlowItems:
    """Items that take far longer than the others: how many, of how many, and how many times the median each takes."""

    count: int
    samples: int
    times: float
    share: float
    slowest: int | None


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
def stages(view: ProfileView) -> tuple[StageTime, ...]:
    """Of the pipeline, in its order; empty where they are not known."""
    work = loader_work(view)
    if work is None:
        return ()
    batches, rows = view.profile.loader_batches, measured_rows(view.profile.loader_batches)
    recording = view.profile.facts.loading
    workers = (recording.workers if recording is not None else 0) or 0
    lanes = max(workers, 1)
    found = [
        StageTime("items", *_mean(batches.items_ns, batches.items_cpu_ns, rows), lanes),
        StageTime("collate", *_mean(batches.collate_ns, batches.collate_cpu_ns, rows), lanes),
    ]
    if workers:
        found.append(StageTime("put", *_mean(batches.put_ns, batches.put_cpu_ns, rows), lanes))
        found.append(StageTime("unpickle", *_unpickle(work), 1))
        if work.pins:
            found.append(StageTime("pin", float(work.pin.mean()), None, 1))
    found.append(StageTime("train", float(work.train.mean()), float(work.train_cpu.mean()), 1))
    return tuple(found)


def _unpickle(work: LoaderWork) -> tuple[float, float | None]:
    on_cpu = float(work.unpickle.mean())
    return on_cpu + float(work.unpickle_wait.mean()), on_cpu


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
    if handing / whole >= _MUCH_OF_IT and (median_known(batches.tensors) or 0) >= MANY:
        return SlowPart("tensors", handing / whole)
    if found["collate"] / whole >= _MOST_OF_IT:
        return SlowPart("collate", found["collate"] / whole, recording.collate or "")
    if recording.transforms and samples:
        slowest = recording.transforms[0]
        share = slowest.wall_ns / samples * float(np.median(batches.samples[measured_rows(batches)])) / whole
        if share >= _MOST_OF_IT:
            return SlowPart("transform", min(share, 1.0), slowest.name)
    return SlowPart("items", found["items"] / whole)


def _mean(wall: Ints, cpu: Ints, rows: Ints) -> tuple[float, float | None]:
    known = rows[wall[rows] >= 0]
    if not len(known):
        return 0.0, None
    return float(wall[known].mean()), float(cpu[known].mean())
