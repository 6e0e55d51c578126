"""Joins what workers, the receiving thread and the training measured of each batch into one table."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tb_dlprof_plugin.capture.analysis_job import BatchRows
from tb_dlprof_plugin.capture.loader.iteration import MOST_BATCHES, Asked, Iteration, Received
from tb_dlprof_plugin.capture.loader.ring import BatchTimes
from tb_dlprof_plugin.model.profile import WORKER_UNKNOWN
from tb_dlprof_plugin.model.run_facts import TransformTime

_MOST_TRANSFORMS = 64
_OF_WORKER = tuple(name for name in BatchTimes._fields if name not in ("task", "begin_ns", "put_end_ns"))


def rows_of(chosen: list[Iteration]) -> BatchRows:
    """The last batches of these iterators, in their order."""
    to_unix = time.time_ns() - time.perf_counter_ns()
    found: list[dict[str, int]] = []
    for iteration in chosen:
        by_task: dict[int, list[tuple[int, BatchTimes]]] = {}
        for worker, row in iteration.made:
            by_task.setdefault(row.task, []).append((worker, row))
        for asked in iteration.asked:
            found.append(_joined(asked, by_task.get(asked.task, ()), iteration.received.get(asked.task, ()), to_unix))
    found = found[-MOST_BATCHES:]
    return BatchRows({name: [row[name] for row in found] for name in found[0]})


def _joined(
    asked: Asked, made: Iterable[tuple[int, BatchTimes]], received: Iterable[Received], to_unix: int
) -> dict[str, int]:
    """A row of the table. In the next epoch, the numbers of tasks begin again: the last one before it counts."""
    returned_ns = asked.asked_ns + asked.wait_ns
    worker, row = max(
        ((worker, row) for worker, row in made if row.begin_ns < returned_ns),
        key=lambda one: one[1].begin_ns,
        default=(WORKER_UNKNOWN, None),
    )
    came = max(
        (one for one in received if one.received_ns <= returned_ns), key=lambda one: one.received_ns, default=None
    )
    handover = -1
    if row is not None and came is not None and came.asked_ns <= row.put_end_ns <= came.received_ns:
        handover = came.received_ns - row.put_end_ns
    values = dict.fromkeys(_OF_WORKER, -1) if row is None else {name: getattr(row, name) for name in _OF_WORKER}
    return {
        **{name: max(value, -1) for name, value in values.items()},
        "worker": worker,
        "begin_ns": to_unix + (asked.asked_ns if row is None else row.begin_ns),
        "asked_ns": to_unix + asked.asked_ns,
        "wait_ns": asked.wait_ns,
        "wait_cpu_ns": asked.wait_cpu_ns,
        "ready": asked.ready,
        "handover_ns": handover,
        "unpickle_ns": -1 if came is None else came.unpickle_ns,
        "unpickle_cpu_ns": -1 if came is None else came.unpickle_cpu_ns,
        "pin_ns": -1 if came is None else came.pin_ns,
        "gap_ns": asked.gap_ns,
        "gap_cpu_ns": asked.gap_cpu_ns,
        "recorded": int(asked.recorded),
    }


def transforms_of(chosen: list[Iteration]) -> tuple[list[TransformTime], int | None]:
    """Of all workers and iterators, by falling time; of how many samples."""
    totals: dict[str, list[int]] = {}
    samples = 0
    for iteration in chosen:
        for count, times in iteration.transforms:
            samples += count
            for name, spent in times.items():
                total = totals.setdefault(name, [0, 0, 0])
                for at, value in enumerate(spent):
                    total[at] += value
    rows = [TransformTime(name, *(max(value, 0) for value in total)) for name, total in totals.items()]
    return sorted(rows, key=lambda row: -row.wall_ns)[:_MOST_TRANSFORMS], samples or None
