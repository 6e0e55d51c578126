"""Applies the function in processes of this machine, or in the workers of any `concurrent.futures.Executor`.

A process that dies takes its pool with it. The items that were being worked on are then tried again, each in a process
of its own: the one that kills that too is the one that failed.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures import BrokenExecutor as Broken

from tb_dlprof_plugin.fleet.engines.engine import Failure, R, T

_AHEAD = 2
"""Items that each worker is given, so that it need not wait for the next. They are all suspects when one dies."""
_TRIES_ALONE = 2
"""A suspect may not have been begun before, and a process can be killed for what others take."""


class Processes:
    """See `Engine`; ``workers``: how many processes, by default one for each CPU that this process may use."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or _cpus()

    def map_unordered(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R | Failure]]:
        """As they come."""
        left = list(items)
        while left:
            with _pool(min(self._workers, len(left))) as pool:
                suspects: list[T] = []
                yield from _through(pool, function, left, self._workers, suspects)
            for item in suspects:
                yield item, _alone(function, item)


class InExecutor:
    """See `Engine`; on an executor that the caller made and ends."""

    def __init__(self, executor: Executor, workers: int | None = None) -> None:
        self._executor, self._workers = executor, workers or getattr(executor, "_max_workers", None) or _cpus()

    def map_unordered(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R | Failure]]:
        """As they come; what a broken executor had left are failures."""
        left, suspects = list(items), list[T]()
        yield from _through(self._executor, function, left, self._workers, suspects)
        for item in (*suspects, *left):
            yield item, Failure("the executor broke", died=True)


def _through(
    pool: Executor, function: Callable[[T], R], left: list[T], workers: int, suspects: list[T]
) -> Iterator[tuple[T, R | Failure]]:
    """Takes items off ``left``, first to last; those that were underway when the pool broke are ``suspects``."""
    left.reverse()
    underway: dict[Future[R], T] = {}
    broken = False
    try:
        while underway or (left and not broken):
            while left and not broken and len(underway) < _AHEAD * workers:
                item = left.pop()
                try:
                    underway[pool.submit(function, item)] = item
                except Broken:
                    left.append(item)
                    broken = True
            done, _ = wait(underway, return_when=FIRST_COMPLETED)
            for future in done:
                item = underway.pop(future)
                error = future.exception()
                if isinstance(error, Broken):
                    broken = True
                    suspects.append(item)
                else:
                    yield item, Failure.of(error) if error is not None else future.result()
    finally:
        for future in underway:
            future.cancel()
        left.reverse()


def _alone(function: Callable[[T], R], item: T) -> R | Failure:
    for _ in range(_TRIES_ALONE):
        with _pool(1) as pool:
            try:
                return pool.submit(function, item).result()
            except Broken:
                continue
            except Exception as error:
                return Failure.of(error)
    return Failure("its process died each time (out of memory, or killed)", died=True)


def _pool(workers: int) -> ProcessPoolExecutor:
    # Forked children would inherit the locks of this process' threads.
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
