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
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from tb_dlprof_plugin.capture.analysis_job import BatchRows
from tb_dlprof_plugin.capture.facts.machine import usable_cores
from tb_dlprof_plugin.capture.loader.foreign import ForeignLoaders
from tb_dlprof_plugin.capture.loader.iteration import (
    HOOK,
    Iteration,
    after,
    after_foreign,
    before,
    foreign_iteration,
    iteration_of,
    unhook,
)
from tb_dlprof_plugin.capture.loader.meter import WorkerInit
from tb_dlprof_plugin.capture.loader.ring import Ring
from tb_dlprof_plugin.capture.loader.rows import rows_of, transforms_of
from tb_dlprof_plugin.capture.loader.shared_memory import shared_memory
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import RunFacts

FOLDER = "tb_dlprof_loader_"
"""How the name of the temporary directory begins that holds the workers' measurements."""
_MOST_ITERATORS = 64
STARTED_BEFORE = (
    "The workers were started before the recording could measure them: make the iterator inside the profiled part, or "
    "run the script by tb-dlprof run."
)
NOT_MEASURED = "The workers did not take the measuring function."


class LoaderWatch:
    """Of this process. Everything is as before once each `install` has had its `remove`."""

    def __init__(self) -> None:
        self._users: set[int] = set()
        self._pid = 0
        self._folder = ""
        self._iterations: weakref.WeakKeyDictionary[Any, Iteration] = weakref.WeakKeyDictionary()
        self._ended: deque[Iteration] = deque(maxlen=_MOST_ITERATORS)
        self._undo: list[Callable[[], object]] = []
        self._foreign = ForeignLoaders(self._foreign_batch)
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
            probe(lambda: self._foreign.watch(kind))

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
        recording.transforms, recording.transform_samples = transforms_of(chosen)
        if recording.workers and not recording.missing and not any(one.made for one in chosen):
            recording.missing = NOT_MEASURED
        if facts.dataloader is None:
            facts.dataloader = last.facts
        rows = rows_of(chosen)
        known = [(size, rows.columns["tensors"][at]) for at, size in enumerate(rows.columns["bytes"]) if size > 0]
        shared = probe(lambda: shared_memory(*sorted(known)[len(known) // 2])) if known else None
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
        if HOOK not in vars(_BaseDataLoaderIter):
            setattr(_BaseDataLoaderIter, HOOK, _InitFunction(self))
            self._undo.append(lambda: delattr(_BaseDataLoaderIter, HOOK))

    def _next(self, original: Callable[[Any], Any], iterator: Any) -> Any:
        inside = self._inside
        if not self._users or getattr(inside, "on", False):
            return original(iterator)
        inside.on = True
        try:
            iteration = self._iterations.get(iterator) or self._first_seen(iterator)
            since = before(iteration, iterator)
        except Exception:
            iteration, since = None, None
        asked_ns, on_cpu = time.perf_counter_ns(), time.thread_time_ns()
        try:
            batch = original(iterator)
        finally:
            inside.on = False
        if iteration is not None and since is not None:
            returned_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns() - on_cpu
            with contextlib.suppress(Exception):
                after(iteration, iterator, since, asked_ns, returned_ns, cpu_ns)
        return batch

    def _first_seen(self, iterator: Any) -> Iteration:
        """Of an iterator whose workers, if it has some, run already."""
        iteration = self._new(iterator)
        if iteration.recording.workers:
            iteration.recording.missing = STARTED_BEFORE
        return iteration

    def _new(self, iterator: Any) -> Iteration:
        return self._keep(iterator, iteration_of(iterator))

    def _foreign_batch(self, iterator: Any, asked_ns: int, returned_ns: int, cpu_ns: int) -> None:
        iteration = self._iterations.get(iterator) or self._keep(iterator, foreign_iteration(iterator))
        after_foreign(iteration, asked_ns, returned_ns, cpu_ns)

    def _keep(self, iterator: Any, iteration: Iteration) -> Iteration:
        self._iterations[iterator] = iteration
        weakref.finalize(iterator, self._gone, iteration, self._pid).atexit = False
        return iteration

    def _gone(self, iteration: Iteration, pid: int) -> None:
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

    def _of_training(self) -> list[Iteration]:
        """Iterators of the loader that gave most batches while the profiler ran, in their order."""
        every = [*self._ended, *self._iterations.values()]
        by_loader: dict[tuple[int, int], list[Iteration]] = {}
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
        self._foreign.stop()
        for one in reversed(undo):
            probe(one)
        if self._pid != os.getpid():
            return
        for iterator, iteration in list(self._iterations.items()):
            probe(lambda iterator=iterator: unhook(iterator))  # type: ignore[misc]
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
        self._foreign.stop()
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
        iterator.__dict__[HOOK] = given

    def __get__(self, iterator: Any, owner: Any = None) -> Any:
        if iterator is None:
            return self
        try:
            return iterator.__dict__[HOOK]
        except KeyError:
            raise AttributeError(HOOK) from None


def _own_bytes(pid: int) -> int:
    """What a process holds for itself alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _remove_folder(folder: str, pid: int) -> None:
    if pid == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


LOADERS = LoaderWatch()
"""Of this process."""
