"""What is measured of one iterator of a DataLoader, in the training process."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import IterableDataset

from tb_dlprof_plugin.capture.facts.loader import IteratedLoader, dataloader_facts
from tb_dlprof_plugin.capture.loader.meter import BatchMeter, WorkerInit
from tb_dlprof_plugin.capture.loader.ring import BatchTimes, Ring
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.profile import IN_PROCESS
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, LoaderRecording

MOST_BATCHES = 400
"""That are kept and stored: 10 kB of a profile."""
HOOK = "_worker_init_fn"
"""The attribute of an iterator that its workers begin with."""
FOREIGN = "{} is no iterator of torch's: of it the wait alone is known."


@dataclass(slots=True)
class Asked:
    """A batch that the training asked for; times of the monotonic clock."""

    task: int
    asked_ns: int
    wait_ns: int
    wait_cpu_ns: int
    ready: int
    gap_ns: int
    gap_cpu_ns: int
    recorded: bool


@dataclass(slots=True)
class Received:
    """The bytes of a batch were received, by the training's thread or the one that pins."""

    asked_ns: int
    received_ns: int
    unpickle_ns: int
    unpickle_cpu_ns: int
    pin_ns: int = -1


@dataclass(slots=True)
class Iteration:
    """What is known of an iterator; it may be gone."""

    key: tuple[int, int]
    loader: str = ""
    is_foreign: bool = False
    facts: DataLoaderFacts | None = None
    recording: LoaderRecording = field(default_factory=LoaderRecording)
    made_ns: int = 0
    ring: Ring | None = None
    path: str = ""
    meter: BatchMeter | None = None
    asked: deque[Asked] = field(default_factory=lambda: deque(maxlen=MOST_BATCHES))
    received: dict[int, deque[Received]] = field(default_factory=dict)
    made: deque[tuple[int, BatchTimes]] = field(default_factory=lambda: deque(maxlen=4 * MOST_BATCHES))
    transforms: list[Any] = field(default_factory=list)
    ready_ns: list[int] = field(default_factory=list)
    worker_pids: list[int] = field(default_factory=list)
    returned_ns: int = 0
    process_cpu_ns: int = 0
    count: int = 0

    def drain(self) -> None:
        """Take what the workers wrote."""
        if self.ring is not None:
            self.made.clear()
            self.made.extend(sorted(self.ring.rows(), key=lambda row: row[1].begin_ns))
            self.transforms = self.ring.texts()
            self.ready_ns = self.ring.ready_ns()

    def end(self) -> None:
        """The iterator is gone: take what the workers wrote, and remove the file."""
        probe(self.drain)
        meter, self.meter = self.meter, None
        if meter is not None:
            probe(meter.detach)
        ring, self.ring = self.ring, None
        if ring is not None:
            ring.stop()
            ring.close()
            with contextlib.suppress(OSError):
                os.unlink(self.path)


def iteration_of(iterator: Any) -> Iteration:
    """Of an iterator of torch's."""
    loader = IteratedLoader(iterator)
    facts = dataloader_facts(loader)
    assert facts is not None
    dataset = loader.dataset
    return Iteration(
        key=(id(dataset), id(loader.batch_sampler)),
        loader=_class_of(iterator),
        facts=facts,
        recording=LoaderRecording(
            workers=facts.num_workers,
            prefetch_factor=facts.prefetch_factor,
            in_order=probe(lambda: bool(getattr(iterator, "_in_order", True))),
            iterable=isinstance(dataset, IterableDataset),
            whole_batches=bool(getattr(dataset, "__getitems__", None)),
            collate=probe(lambda: _name_of(iterator._collate_fn)),
            pins=facts.pin_memory,
        ),
        made_ns=time.perf_counter_ns(),
    )


def foreign_iteration(iterator: Any) -> Iteration:
    """Of an iterator that is not torch's."""
    name = _class_of(iterator)
    recording = LoaderRecording(missing=FOREIGN.format(name))
    return Iteration(key=(id(type(iterator)), 0), loader=name, is_foreign=True, recording=recording)


def after_foreign(iteration: Iteration, asked_ns: int, returned_ns: int, cpu_ns: int) -> None:
    """It gave a batch."""
    gap = (asked_ns - iteration.returned_ns, -1) if iteration.returned_ns else (-1, -1)
    iteration.count += 1
    recorded = bool(torch.autograd._profiler_enabled())
    iteration.asked.append(Asked(-1, asked_ns, returned_ns - asked_ns, cpu_ns, -1, *gap, recorded))
    iteration.returned_ns = time.perf_counter_ns()


def before(iteration: Iteration, iterator: Any) -> tuple[int, int, int]:
    """Batches that are ready, and what went since the last one was given; hooks are on the iterator from here on."""
    if not iteration.count:
        hook(iteration, iterator)
    ready = -1
    tasks = getattr(iterator, "_task_info", None)
    if tasks is not None:
        with contextlib.suppress(NotImplementedError, AttributeError):
            ready = sum(len(task) > 1 for task in list(tasks.values())) + iterator._data_queue.qsize()
    if not iteration.returned_ns:
        return ready, -1, -1
    return ready, time.perf_counter_ns() - iteration.returned_ns, time.process_time_ns() - iteration.process_cpu_ns


def after(
    iteration: Iteration, iterator: Any, before: tuple[int, int, int], asked_ns: int, returned_ns: int, cpu_ns: int
) -> None:
    """A batch was given."""
    task = iteration.count
    workers = iteration.recording.workers
    if workers:
        task = iterator._rcvd_idx - 1 if iteration.recording.in_order else -1
        if task < 0:
            # Batches are given as they are received.
            task = max(iteration.received, key=lambda one: iteration.received[one][-1].received_ns, default=-1)
    elif iteration.meter is not None:
        iteration.meter.was_put(task, 0, 0)
    if not iteration.count:
        if iteration.made_ns and not iteration.recording.missing:
            iteration.recording.first_batch_ns = returned_ns - iteration.made_ns
        if workers:
            iteration.recording.start_method = probe(lambda: _start_method(iterator))
            iteration.worker_pids = [one.pid for one in iterator._workers if one.pid]
    iteration.count += 1
    recorded = bool(torch.autograd._profiler_enabled())
    iteration.asked.append(Asked(task, asked_ns, returned_ns - asked_ns, cpu_ns, *before, recorded))
    iteration.returned_ns, iteration.process_cpu_ns = time.perf_counter_ns(), time.process_time_ns()


def hook(iteration: Iteration, iterator: Any) -> None:
    """Measure on the queue of an iterator with workers, else on its fetcher."""
    if not iteration.recording.workers:
        fetcher = iterator._dataset_fetcher

        def add(row: BatchTimes) -> None:
            iteration.made.append((IN_PROCESS, row))

        def write(content: Any) -> None:
            iteration.transforms = [content]

        iteration.meter = meter = BatchMeter(add, write)
        # Weakly: nothing may hold an iterator's parts until the next garbage collection.
        owner, original = weakref.ref(fetcher), type(fetcher).fetch
        fetcher.fetch = lambda index: meter.fetch(original, owner(), index)
        return
    results = iterator._worker_result_queue
    queue = weakref.ref(results)
    receive = results._recv_bytes
    times = threading.local()

    @functools.wraps(receive)
    def receive_bytes(*args: Any, **kwargs: Any) -> Any:
        content = receive(*args, **kwargs)
        times.received, times.on_cpu = time.perf_counter_ns(), time.thread_time_ns()
        return content

    def get(*args: Any, **kwargs: Any) -> Any:
        asked, times.received = time.perf_counter_ns(), 0
        made = queue()
        found = type(made).get(made, *args, **kwargs)  # type: ignore[union-attr]
        end = time.perf_counter_ns()
        if times.received and isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], int):
            row = Received(asked, times.received, end - times.received, time.thread_time_ns() - times.on_cpu)
            iteration.received.setdefault(found[0], deque(maxlen=4)).append(row)
            if len(iteration.received) > 2 * MOST_BATCHES:
                with contextlib.suppress(KeyError, StopIteration, RuntimeError):
                    del iteration.received[next(iter(iteration.received))]
            times.row, times.end = row, end
        return found

    results._recv_bytes, results.get = receive_bytes, get
    if iterator._data_queue is not results:
        target = weakref.ref(iterator._data_queue)

        def put(*args: Any, **kwargs: Any) -> Any:
            row = getattr(times, "row", None)
            if row is not None:
                row.pin_ns, times.row = time.perf_counter_ns() - times.end, None
            into = target()
            return type(into).put(into, *args, **kwargs)  # type: ignore[union-attr]

        iterator._data_queue.put = put


def unhook(iterator: Any) -> None:
    """What `hook` put on it is gone; an iterator keeps its `WorkerInit`, which it does not call again."""
    fetcher, results = (getattr(iterator, name, None) for name in ("_dataset_fetcher", "_worker_result_queue"))
    if fetcher is not None:
        fetcher.__dict__.pop("fetch", None)
    if results is not None:
        results.__dict__.pop("get", None)
        receive = results.__dict__.get("_recv_bytes")
        results._recv_bytes = getattr(receive, "__wrapped__", receive)
        iterator._data_queue.__dict__.pop("put", None)
    function = iterator.__dict__.get(HOOK)
    if isinstance(function, WorkerInit):
        iterator.__dict__[HOOK] = function.function


def _start_method(iterator: Any) -> str | None:
    import multiprocessing

    method = getattr(iterator._workers[0], "_start_method", None) or multiprocessing.get_start_method(allow_none=True)
    return None if method is None else str(method)


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__name__)).replace("<locals>.", "")


def _class_of(iterator: Any) -> str:
    return f"{type(iterator).__module__.partition('.')[0]}.{type(iterator).__name__}"
