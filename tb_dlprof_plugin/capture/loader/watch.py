"""Watches the DataLoaders of the training process: waits, ready batches, unpickling, pinning; and their workers.

While `LOADERS` is installed, ``__next__`` of torch's DataLoader iterators is replaced, and the attribute
``_worker_init_fn`` of an iterator, which it hands to its workers, is a `WorkerInit` around the user's own. A class of
another package that makes iterators of these kinds is seen as well. No iterator, loader or batch is kept alive.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import statistics
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from tb_dlprof_plugin.capture.analysis_job import BatchRows
from tb_dlprof_plugin.capture.facts.loader import IteratedLoader, dataloader_facts
from tb_dlprof_plugin.capture.facts.machine import usable_cores
from tb_dlprof_plugin.capture.loader.meter import BatchMeter, WorkerInit
from tb_dlprof_plugin.capture.loader.ring import BatchTimes, Ring
from tb_dlprof_plugin.capture.loader.shared_memory import shared_memory
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.profile import IN_PROCESS, WORKER_UNKNOWN
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, LoaderRecording, RunFacts, TransformTime

FOLDER = "tb_dlprof_loader_"
"""How the name of the temporary directory begins that holds the workers' measurements."""
MOST_BATCHES = 400
"""That are kept and stored: 10 kB of a profile."""
_MOST_ITERATORS = 64
_MOST_TRANSFORMS = 64
_HOOK = "_worker_init_fn"
STARTED_BEFORE = (
    "The workers were started before the recording could measure them: make the iterator inside the profiled part, or "
    "run the script by tb-dlprof run."
)
FOREIGN = "{} is no iterator of torch's: of it the wait alone is known."
NOT_MEASURED = "The workers did not take the measuring function."


@dataclass(slots=True)
class _Asked:
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
class _Received:
    """The bytes of a batch were received, by the training's thread or the one that pins."""

    asked_ns: int
    received_ns: int
    unpickle_ns: int
    unpickle_cpu_ns: int
    pin_ns: int = -1


@dataclass(slots=True)
class _Iteration:
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
    asked: deque[_Asked] = field(default_factory=lambda: deque(maxlen=MOST_BATCHES))
    received: dict[int, deque[_Received]] = field(default_factory=dict)
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


class LoaderWatch:
    """Of this process. Everything is as before once each `install` has had its `remove`."""

    def __init__(self) -> None:
        self._users: set[int] = set()
        self._pid = 0
        self._folder = ""
        self._iterations: weakref.WeakKeyDictionary[Any, _Iteration] = weakref.WeakKeyDictionary()
        self._ended: deque[_Iteration] = deque(maxlen=_MOST_ITERATORS)
        self._undo: list[Callable[[], object]] = []
        self._foreign: set[type] = set()
        self._inside = threading.local()
        self._number = 0

    def install(self, user: object) -> None:
        """Watch until the same user calls `remove`. Never raises."""
        if self._pid != os.getpid():
            self._forget_parent()
        if not self._users:
            probe(self._wrap)
        self._users.add(id(user))

    def watch_foreign(self, kind: type) -> None:
        """Measure the waits for a loader of a class that makes no iterators of torch; call after `install`.

        Never raises. An iterator whose class takes no attributes, such as a generator, stays unknown.
        """
        if self._users and not issubclass(kind, DataLoader) and hasattr(kind, "__iter__"):
            probe(lambda: self._wrap_foreign_iter(kind))

    def remove(self, user: object) -> None:
        """Never raises; does nothing for one that has not installed."""
        if id(user) not in self._users:
            return
        self._users.discard(id(user))
        if not self._users:
            self._stop()

    def fill(self, facts: RunFacts) -> BatchRows | None:
        """Write what is known of the training's loader into the facts; returns its batches."""
        chosen = self._of_training()
        if not chosen:
            return None
        for one in chosen:
            one.drain()
        # Its workers may still be there.
        last = chosen[-1]
        facts.loading = recording = last.recording
        recording.loader = last.loader
        recording.cores = probe(usable_cores)
        sizes = (probe(lambda pid=pid: _own_bytes(pid)) for pid in last.worker_pids)  # type: ignore[misc]
        recording.worker_memory_bytes = [size for size in sizes if size]
        ready = sorted(at - one.made_ns for one in chosen for at in one.ready_ns)
        recording.ready_ns = ready[len(ready) // 2] if ready else None
        first = next((one for one in chosen if one.made_ns and one.recording.first_batch_ns is not None), None)
        recording.first_batch_ns = None if first is None else first.recording.first_batch_ns
        recording.transforms, recording.transform_samples = _transforms(chosen)
        if recording.workers and not recording.missing and not any(one.made for one in chosen):
            recording.missing = NOT_MEASURED
        if facts.dataloader is None:
            facts.dataloader = last.facts
        rows = _rows(chosen)
        size, tensors = (int(statistics.median(rows.columns[name])) for name in ("bytes", "tensors"))
        shared = probe(lambda: shared_memory(size, tensors))
        if shared is not None:
            recording.shared_write_ns, recording.shared_free_ns = shared
        return rows

    def new_cycle(self) -> None:
        """Forget iterators that are gone."""
        self._ended.clear()

    # ---- hooks

    def _wrap(self) -> None:
        original = _BaseDataLoaderIter.__next__
        watch = self

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            return watch._next(original, iterator)

        def unwrap() -> None:
            # A later replacement calls this one, which then calls the original alone.
            if _BaseDataLoaderIter.__next__ is __next__:
                setattr(_BaseDataLoaderIter, "__next__", original)  # noqa: B010 (a method)

        setattr(_BaseDataLoaderIter, "__next__", __next__)  # noqa: B010 (a method)
        self._undo.append(unwrap)
        if _HOOK not in vars(_BaseDataLoaderIter):
            setattr(_BaseDataLoaderIter, _HOOK, _InitFunction(self))
            self._undo.append(lambda: delattr(_BaseDataLoaderIter, _HOOK))

    def _next(self, original: Callable[[Any], Any], iterator: Any) -> Any:
        inside = self._inside
        if not self._users or getattr(inside, "on", False):
            return original(iterator)
        inside.on = True
        try:
            iteration = self._iterations.get(iterator) or self._first_seen(iterator)
            before = _before(iteration, iterator)
        except Exception:
            iteration, before = None, None
        asked_ns, on_cpu = time.perf_counter_ns(), time.thread_time_ns()
        try:
            batch = original(iterator)
        finally:
            inside.on = False
        if iteration is not None and before is not None:
            returned_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns() - on_cpu
            with contextlib.suppress(Exception):
                _after(iteration, iterator, before, asked_ns, returned_ns, cpu_ns)
        return batch

    def _wrap_foreign_iter(self, kind: Any) -> None:
        own, original, watch = "__iter__" in vars(kind), kind.__iter__, self

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:
            iterator = original(loader)
            probe(lambda: watch._wrap_foreign_next(type(iterator)))
            return iterator

        kind.__iter__ = __iter__
        self._undo.append(lambda: setattr(kind, "__iter__", original) if own else delattr(kind, "__iter__"))

    def _wrap_foreign_next(self, kind: Any) -> None:
        if not self._users or kind in self._foreign or issubclass(kind, _BaseDataLoaderIter):
            return
        own, original, watch = "__next__" in vars(kind), kind.__next__, self

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            asked_ns, on_cpu = time.perf_counter_ns(), time.thread_time_ns()
            batch = original(iterator)
            with contextlib.suppress(Exception):
                if watch._users:
                    watch._foreign_batch(iterator, asked_ns, time.perf_counter_ns(), time.thread_time_ns() - on_cpu)
            return batch

        kind.__next__ = __next__
        self._foreign.add(kind)
        self._undo.append(lambda: setattr(kind, "__next__", original) if own else delattr(kind, "__next__"))

    def _foreign_batch(self, iterator: Any, asked_ns: int, returned_ns: int, cpu_ns: int) -> None:
        iteration = self._iterations.get(iterator)
        if iteration is None:
            kind = type(iterator)
            name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
            recording = LoaderRecording(missing=FOREIGN.format(name))
            iteration = _Iteration(key=(id(kind), 0), loader=name, is_foreign=True, recording=recording)
            self._iterations[iterator] = iteration
            weakref.finalize(iterator, self._gone, iteration, self._pid).atexit = False
        gap = (asked_ns - iteration.returned_ns, -1) if iteration.returned_ns else (-1, -1)
        iteration.count += 1
        recorded = bool(torch.autograd._profiler_enabled())
        iteration.asked.append(_Asked(-1, asked_ns, returned_ns - asked_ns, cpu_ns, -1, *gap, recorded))
        iteration.returned_ns = time.perf_counter_ns()

    def _first_seen(self, iterator: Any) -> _Iteration:
        """Of an iterator whose workers, if it has some, run already."""
        iteration = self._new(iterator)
        if iteration.recording.workers:
            iteration.recording.missing = STARTED_BEFORE
        return iteration

    def _new(self, iterator: Any) -> _Iteration:
        loader = IteratedLoader(iterator)
        facts = dataloader_facts(loader)
        assert facts is not None
        dataset = loader.dataset
        iteration = _Iteration(
            key=(id(dataset), id(loader.batch_sampler)),
            loader=f"{type(iterator).__module__.partition('.')[0]}.{type(iterator).__name__}",
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
        self._iterations[iterator] = iteration
        weakref.finalize(iterator, self._gone, iteration, self._pid).atexit = False
        return iteration

    def _gone(self, iteration: _Iteration, pid: int) -> None:
        if pid == os.getpid():
            probe(iteration.end)
            # An iterator may outlive the watch, and belongs to none that begins later.
            if iteration.asked:
                self._ended.append(iteration)

    def started(self, iterator: Any, function: Any) -> Any:
        """An iterator is about to start its workers; returns the function that they begin with."""
        if not self._users or self._pid != os.getpid() or not iterator._num_workers:
            return function
        iteration = self._new(iterator)
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix=FOLDER)
            weakref.finalize(self, _remove_folder, self._folder, os.getpid())
        self._number += 1
        iteration.path = os.path.join(self._folder, str(self._number))
        iteration.ring = Ring(iteration.path, iterator._num_workers)
        iteration.made_ns = time.perf_counter_ns()
        return WorkerInit(iteration.path, function)

    # ---- the end

    def _of_training(self) -> list[_Iteration]:
        """Iterators of the loader that gave most batches while the profiler ran, in their order."""
        every = [*self._ended, *self._iterations.values()]
        by_loader: dict[tuple[int, int], list[_Iteration]] = {}
        for one in every:
            if one.asked:
                by_loader.setdefault(one.key, []).append(one)
        if not by_loader:
            return []
        chosen = max(
            by_loader.values(),
            key=lambda group: (
                # A loader of another package may have one of torch's inside.
                not group[0].is_foreign,
                sum(row.recorded for one in group for row in one.asked),
                sum(one.count for one in group),
            ),
        )
        return sorted(chosen, key=lambda one: one.asked[0].asked_ns)

    def _stop(self) -> None:
        undo, self._undo = self._undo, []
        self._foreign.clear()
        for one in reversed(undo):
            probe(one)
        if self._pid != os.getpid():
            return
        for iterator, iteration in list(self._iterations.items()):
            probe(lambda iterator=iterator: _unhook(iterator))  # type: ignore[misc]
            iteration.end()
            iteration.asked.clear()
        self._iterations.clear()
        self._ended.clear()
        folder, self._folder = self._folder, ""
        if folder:
            _remove_folder(folder, self._pid)

    def _forget_parent(self) -> None:
        """In a forked child: files and iterators are the parent's."""
        self._pid, self._folder = os.getpid(), ""
        self._users.clear()
        self._iterations, self._ended = weakref.WeakKeyDictionary(), deque(maxlen=_MOST_ITERATORS)
        undo, self._undo = self._undo, []
        self._foreign.clear()
        for one in reversed(undo):
            probe(one)


class _InitFunction:
    """The attribute of an iterator that its workers begin with."""

    def __init__(self, watch: LoaderWatch) -> None:
        self._watch = watch

    def __set__(self, iterator: Any, function: Any) -> None:
        given = function
        with contextlib.suppress(Exception):
            given = self._watch.started(iterator, function)
        iterator.__dict__[_HOOK] = given

    def __get__(self, iterator: Any, owner: Any = None) -> Any:
        if iterator is None:
            return self
        try:
            return iterator.__dict__[_HOOK]
        except KeyError:
            raise AttributeError(_HOOK) from None


def _before(iteration: _Iteration, iterator: Any) -> tuple[int, int, int]:
    """Batches that are ready, and what went since the last one was given; hooks are on the iterator from here on."""
    if not iteration.count:
        _hook(iteration, iterator)
    ready = -1
    tasks = getattr(iterator, "_task_info", None)
    if tasks is not None:
        with contextlib.suppress(NotImplementedError, AttributeError):
            ready = sum(len(task) > 1 for task in list(tasks.values())) + iterator._data_queue.qsize()
    if not iteration.returned_ns:
        return ready, -1, -1
    return ready, time.perf_counter_ns() - iteration.returned_ns, time.process_time_ns() - iteration.process_cpu_ns


def _after(
    iteration: _Iteration, iterator: Any, before: tuple[int, int, int], asked_ns: int, returned_ns: int, cpu_ns: int
) -> None:
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
    iteration.asked.append(_Asked(task, asked_ns, returned_ns - asked_ns, cpu_ns, *before, recorded))
    iteration.returned_ns, iteration.process_cpu_ns = time.perf_counter_ns(), time.process_time_ns()


def _hook(iteration: _Iteration, iterator: Any) -> None:
    """On the queue of an iterator with workers, else on its fetcher."""
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
            row = _Received(asked, times.received, end - times.received, time.thread_time_ns() - times.on_cpu)
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


def _unhook(iterator: Any) -> None:
    """What `_hook` put on it is gone; an iterator keeps its `WorkerInit`, which it does not call again."""
    fetcher, results = (getattr(iterator, name, None) for name in ("_dataset_fetcher", "_worker_result_queue"))
    if fetcher is not None:
        fetcher.__dict__.pop("fetch", None)
    if results is not None:
        results.__dict__.pop("get", None)
        receive = results.__dict__.get("_recv_bytes")
        results._recv_bytes = getattr(receive, "__wrapped__", receive)
        iterator._data_queue.__dict__.pop("put", None)
    function = iterator.__dict__.get(_HOOK)
    if isinstance(function, WorkerInit):
        iterator.__dict__[_HOOK] = function.function


def _rows(chosen: list[_Iteration]) -> BatchRows:
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
    asked: _Asked, made: Iterable[tuple[int, BatchTimes]], received: Iterable[_Received], to_unix: int
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


_OF_WORKER = tuple(name for name in BatchTimes._fields if name not in ("task", "begin_ns", "put_end_ns"))


def _transforms(chosen: list[_Iteration]) -> tuple[list[TransformTime], int | None]:
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


def _own_bytes(pid: int) -> int:
    """What a process holds for itself alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _start_method(iterator: Any) -> str | None:
    import multiprocessing

    method = getattr(iterator._workers[0], "_start_method", None) or multiprocessing.get_start_method(allow_none=True)
    return None if method is None else str(method)


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__name__)).replace("<locals>.", "")


def _remove_folder(folder: str, pid: int) -> None:
    if pid == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


LOADERS = LoaderWatch()
"""Of this process."""
