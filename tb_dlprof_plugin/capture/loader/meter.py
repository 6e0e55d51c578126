"""Measures batches where they are made: in a worker process of a DataLoader, or in the training process without one.

`WorkerInit` takes the place of a ``worker_init_fn``, which it calls. A spawned worker imports this module: it needs the
standard library alone. Batches are made by the same calls with the same arguments; whatever fails here is left out.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from tb_dlprof_plugin.capture.loader.ring import BatchTimes, Ring
from tb_dlprof_plugin.capture.loader.transforms import TransformClock

SAMPLED = 10
"""One measured batch in so many has its transforms timed."""
_COST_NS, _SHARE, _MOST_LEFT_OUT = 30_000, 0.01, 4
"""What measuring a batch takes (`lab.loader.planted --cost`); the share of its time that it may take; where it takes
more, one batch in so many is measured, up to this number."""
ALL_OF_FIRST = 32
"""Batches that are all measured, whatever it takes: as many as a forecast needs."""
_CHEAP_NS = 100_000
"""Items that take less on average are timed in the same batches only: timing one takes about 1 µs."""
_SLOW = 4
"""An item that takes so many times the batch's median is slow."""
_MANY_TENSORS = 64
"""From so many on they are counted in the same batches only."""
_MOST_TENSORS = 100_000


class WorkerInit:
    """A ``worker_init_fn``.

    Args:
        path: of the `Ring`.
        function: the user's own, or None.
    """

    def __init__(self, path: str, function: Callable[[int], Any] | None) -> None:
        self.path, self.function = path, function

    def __call__(self, worker_id: int) -> Any:
        """In the worker, before it makes batches."""
        with contextlib.suppress(Exception):
            _begin(self.path, worker_id)
        return None if self.function is None else self.function(worker_id)


def _begin(path: str, worker_id: int) -> None:
    from torch.utils.data._utils import fetch

    ring = Ring(path)
    ring.start_slot(worker_id, time.perf_counter_ns())
    meter = BatchMeter(lambda row: ring.add(worker_id, row), lambda content: ring.write_text(worker_id, content))
    hooks = _WorkerHooks(ring, meter)
    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        hooks.wrap_fetch(kind)
    hooks.wrap_pickler()


class _WorkerHooks:
    """Of one worker, until the ring says stop."""

    def __init__(self, ring: Ring, meter: BatchMeter) -> None:
        self._ring, self._meter = ring, meter
        self._undo: list[Callable[[], None]] = []

    def wrap_fetch(self, kind: Any) -> None:
        original = kind.fetch

        @functools.wraps(original)
        def fetch(fetcher: Any, index: Any) -> Any:
            if not self._ring.is_on:
                self._remove()
                return original(fetcher, index)
            return self._meter.fetch(original, fetcher, index)

        kind.fetch = fetch
        self._undo.append(lambda: setattr(kind, "fetch", original))

    def wrap_pickler(self) -> None:
        """A queue serialises in a thread of its own, by this name of its module."""
        from multiprocessing import queues

        original: Any = queues._ForkingPickler  # type: ignore[attr-defined]
        queues._ForkingPickler = _TimedPickler(original, self._meter)  # type: ignore[attr-defined]
        self._undo.append(lambda: setattr(queues, "_ForkingPickler", original))

    def _remove(self) -> None:
        undo, self._undo = self._undo, []
        for one in undo:
            one()
        self._meter.detach()


class _TimedPickler:
    """multiprocessing's pickler; what is serialised as a batch is timed."""

    def __init__(self, original: Any, meter: BatchMeter) -> None:
        self._original, self._meter = original, meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def dumps(self, content: Any, *args: Any) -> Any:
        """As the original."""
        if not (isinstance(content, tuple) and len(content) == 2 and isinstance(content[0], int)):
            return self._original.dumps(content, *args)
        cpu, begin = time.thread_time_ns(), time.perf_counter_ns()
        try:
            return self._original.dumps(content, *args)
        finally:
            self._meter.was_put(content[0], time.perf_counter_ns() - begin, time.thread_time_ns() - cpu)


class BatchMeter:
    """Of one process.

    Args:
        add: takes the times of a batch, once it is complete.
        write: takes what is known of transforms: the names with their times, and of how many samples.
    """

    def __init__(self, add: Callable[[BatchTimes], None], write: Callable[[Any], None]) -> None:
        self._add, self._write = add, write
        self._made: deque[BatchTimes | None] = deque(maxlen=64)
        self._count = self._measured = 0
        self._every = 1
        self._fetcher: Callable[[], Any] = _nothing
        self._undo: list[Callable[[], None]] = []
        self._transforms: TransformClock | None = None
        self._transform_samples = 0
        self._owner: type | None = None
        self._times_items = False
        self._thread = 0
        self._deep = False
        self._open = False
        self._item_ns: list[int] = []
        self._collated: tuple[int, int, int, int] | None = None
        self._size = (-1, -1)
        self._mean_ns = 0.0
        self._waited = _RunQueue()

    def fetch(self, original: Callable[..., Any], fetcher: Any, index: Any) -> Any:
        """A batch of a fetcher, by its original method."""
        self._count += 1
        if self._measured >= ALL_OF_FIRST and self._count % self._every:
            self._made.append(None)
            return original(fetcher, index)
        sampled = self._measured % SAMPLED == 0
        self._measured += 1
        with contextlib.suppress(Exception):
            self._before(fetcher, sampled)
        self._open, self._collated = True, None
        waited, process = self._waited.ns(), time.process_time_ns()
        cpu, begin = time.thread_time_ns(), time.perf_counter_ns()
        data = None
        try:
            data = original(fetcher, index)
            return data
        finally:
            end, end_cpu = time.perf_counter_ns(), time.thread_time_ns()
            self._open = False
            row = None
            with contextlib.suppress(Exception):
                process_cpu = time.process_time_ns() - process
                queued = -1 if waited < 0 else self._waited.ns() - waited
                row = self._row(index, data, sampled, (begin, end, cpu, end_cpu, process_cpu, queued))
            # One for each batch: they are taken in their order.
            self._made.append(row)
            del data

    def was_put(self, task: int, took_ns: int, cpu_ns: int) -> None:
        """The oldest batch that was made is serialised."""
        with contextlib.suppress(Exception):
            row = self._made.popleft() if self._made else None
            if row is not None:
                end_ns = time.perf_counter_ns()
                self._add(row._replace(task=task, put_ns=took_ns, put_cpu_ns=cpu_ns, put_end_ns=end_ns))

    def detach(self) -> None:
        """Everything is as before the first batch."""
        if self._transforms is not None:
            self._transforms.stop()
        self._untime_items()
        while self._undo:
            self._undo.pop()()
        self._fetcher = _nothing

    def _before(self, fetcher: Any, sampled: bool) -> None:
        if fetcher is not self._fetcher():
            self.detach()
            self._attach(fetcher)
        self._item_ns = []
        cheap = 0 < self._mean_ns < _CHEAP_NS
        if (sampled or not cheap) != self._times_items:
            self._untime_items() if self._times_items else self._time_items()
        if sampled:
            if self._transforms is None:
                self._transforms = TransformClock(fetcher.dataset)
            if self._transforms:
                self._transforms.start()

    def _row(self, index: Any, data: Any, sampled: bool, clocks: tuple[int, ...]) -> BatchTimes:
        begin, end, cpu, end_cpu, process_cpu, queued = clocks
        if sampled and self._transforms is not None:
            self._transforms.stop()
        collate_begin, collate_end, collate_cpu, collate_end_cpu = self._collated or (end, end, end_cpu, end_cpu)
        if data is not None and (sampled or self._size[1] < _MANY_TENSORS):
            self._size = size_of(data)
        times = self._item_ns
        is_list = isinstance(index, Sequence)
        samples = len(index) if is_list else max(len(times), 1)
        median, slow, slow_ns, slowest = -1, -1, -1, -1
        if times:
            median = sorted(times)[len(times) // 2]
            late = [one for one in times if one >= _SLOW * median]
            slow, slow_ns = len(late), sum(late)
            at = times.index(max(times))
            if is_list and len(times) == len(index) and isinstance(index[at], int):
                slowest = index[at]
        self._mean_ns = (collate_begin - begin) / max(samples, 1)
        self._every = measured_every(end - begin)
        if sampled and self._transforms:
            self._transform_samples += samples
            self._write([self._transform_samples, self._transforms.times])
        return BatchTimes(
            task=-1,
            begin_ns=begin,
            items_ns=collate_begin - begin,
            items_cpu_ns=collate_cpu - cpu,
            collate_ns=collate_end - collate_begin,
            collate_cpu_ns=collate_end_cpu - collate_cpu,
            process_cpu_ns=process_cpu,
            queued_ns=queued,
            put_ns=-1,
            put_cpu_ns=-1,
            put_end_ns=-1,
            bytes=self._size[0],
            tensors=self._size[1],
            samples=samples,
            median_sample_ns=median,
            slow_samples=slow,
            slow_samples_ns=slow_ns,
            slowest_sample=slowest,
        )

    def _attach(self, fetcher: Any) -> None:
        # Weakly: nothing may hold an iterator's parts until the next garbage collection.
        self._fetcher = owner = weakref.ref(fetcher)
        self._thread = threading.get_ident()
        collate = fetcher.collate_fn

        def timed(items: Any) -> Any:
            if not self._open:
                return collate(items)
            cpu, begin = time.thread_time_ns(), time.perf_counter_ns()
            data = collate(items)
            self._collated = (begin, time.perf_counter_ns(), cpu, time.thread_time_ns())
            return data

        fetcher.collate_fn = timed
        self._undo.append(lambda: _set_back(owner(), "collate_fn", collate))
        items = getattr(fetcher, "dataset_iter", None)
        if items is not None:
            fetcher.dataset_iter = _TimedItems(items, self)
            self._undo.append(lambda: _set_back(owner(), "dataset_iter", items))
        elif fetcher.auto_collation and not getattr(fetcher.dataset, "__getitems__", None):
            self._owner = type(fetcher.dataset)
        elif fetcher.auto_collation:
            self._owner = _owner_inside(fetcher.dataset)

    def _time_items(self) -> None:
        """Replace the dataset's ``__getitem__``."""
        self._times_items = True
        owner = self._owner
        if owner is None:
            return
        own = "__getitem__" in vars(owner)
        original = getattr(owner, "__getitem__")  # noqa: B009 (typed as a generic class)

        @functools.wraps(original)
        def timed(dataset: Any, index: Any) -> Any:
            if not self._open or self._deep or threading.get_ident() != self._thread:
                return original(dataset, index)
            self._deep = True
            begin = time.perf_counter_ns()
            try:
                return original(dataset, index)
            finally:
                self._item_ns.append(time.perf_counter_ns() - begin)
                self._deep = False

        with contextlib.suppress(TypeError, AttributeError):
            setattr(owner, "__getitem__", timed)  # noqa: B010 (the same)
            self._restore_items = functools.partial(_put_back, owner, original if own else None)

    def _untime_items(self) -> None:
        self._times_items = False
        restore, self._restore_items = self._restore_items, None
        if restore is not None:
            restore()

    _restore_items: Callable[[], None] | None = None


class _TimedItems:
    """The iterator of an iterable dataset."""

    def __init__(self, items: Any, meter: BatchMeter) -> None:
        self._items, self._meter = items, meter

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if not self._meter._times_items or not self._meter._open:
            return next(self._items)
        begin = time.perf_counter_ns()
        item = next(self._items)
        self._meter._item_ns.append(time.perf_counter_ns() - begin)
        return item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._items, name)


def measured_every(batch_ns: int) -> int:
    """One batch in so many is measured after the first, where one takes so long."""
    return min(max(math.ceil(_COST_NS / (_SHARE * max(batch_ns, 1))), 1), _MOST_LEFT_OUT)


def _owner_inside(dataset: Any) -> type | None:
    """The class whose ``__getitem__`` a ``Subset`` calls for each item; None of a dataset that makes whole batches."""
    from torch.utils.data import Subset

    while isinstance(dataset, Subset):
        dataset = dataset.dataset
        if not getattr(dataset, "__getitems__", None):
            return type(dataset)
    return None


def _put_back(owner: Any, original: Any) -> None:
    if original is None:
        del owner.__getitem__
    else:
        owner.__getitem__ = original


def _set_back(owner: Any, name: str, value: Any) -> None:
    if owner is not None:
        setattr(owner, name, value)


def _nothing() -> None:
    return None


class _RunQueue:
    """How long this thread was ready to run while no core was free, from Linux' schedstat; -1 where it has none."""

    def __init__(self) -> None:
        self._files: dict[int, int] = {}

    def ns(self) -> int:
        """So far."""
        thread = threading.get_native_id()
        file = self._files.get(thread)
        if file is None:
            try:
                file = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            except OSError:
                file = -1
            self._files[thread] = file
        if file < 0:
            return -1
        try:
            return int(os.pread(file, 64, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return -1

    def __del__(self) -> None:
        for file in self._files.values():
            if file >= 0:
                with contextlib.suppress(OSError):
                    os.close(file)


def size_of(data: Any) -> tuple[int, int]:
    """The bytes and the number of the tensors and arrays in a batch; (-1, -1) of more than anybody counts."""
    total = tensors = 0
    left, seen = [data], 0
    while left:
        seen += 1
        if seen > _MOST_TENSORS:
            return -1, -1
        one = left.pop()
        if isinstance(one, (str, bytes, int, float, bool, type(None))):
            continue
        size = getattr(one, "nbytes", None)
        if isinstance(size, int) and hasattr(one, "dtype"):
            total, tensors = total + size, tensors + 1
        elif isinstance(one, (list, tuple, set)):
            left.extend(one)
        elif hasattr(one, "keys") and hasattr(one, "values"):
            left.extend(one.values())
    return total, tensors
