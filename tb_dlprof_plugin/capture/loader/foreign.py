"""Measures the waits for loaders that make no iterators of torch, whose class is known by ``dataloader=`` alone."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from typing import Any

from torch.utils.data.dataloader import _BaseDataLoaderIter

from tb_dlprof_plugin.capture.warn import probe


class ForeignLoaders:
    """Of this process.

    Args:
        given: takes an iterator that gave a batch, when it was asked, when it returned, and the thread's CPU time (ns).
    """

    def __init__(self, given: Callable[[Any, int, int, int], None]) -> None:
        self._given = given
        self._iterators: set[type] = set()
        self._undo: list[Callable[[], object]] = []
        self._on = False

    def watch(self, kind: Any) -> None:
        """Measure the iterators that a class of loaders makes."""
        self._on = True
        own, original = "__iter__" in vars(kind), kind.__iter__

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:
            iterator = original(loader)
            probe(lambda: self._wrap_next(type(iterator)))
            return iterator

        kind.__iter__ = __iter__
        self._undo.append(lambda: setattr(kind, "__iter__", original) if own else delattr(kind, "__iter__"))

    def stop(self) -> None:
        """Everything is as before."""
        self._on = False
        undo, self._undo = self._undo, []
        self._iterators.clear()
        for one in reversed(undo):
            probe(one)

    def _wrap_next(self, kind: Any) -> None:
        if not self._on or kind in self._iterators or issubclass(kind, _BaseDataLoaderIter):
            return
        own, original = "__next__" in vars(kind), kind.__next__

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:
            asked_ns, on_cpu = time.perf_counter_ns(), time.thread_time_ns()
            batch = original(iterator)
            with contextlib.suppress(Exception):
                if self._on:
                    self._given(iterator, asked_ns, time.perf_counter_ns(), time.thread_time_ns() - on_cpu)
            return batch

        kind.__next__ = __next__
        self._iterators.add(kind)
        self._undo.append(lambda: setattr(kind, "__next__", original) if own else delattr(kind, "__next__"))
