"""Simulates a DataLoader: how long a step takes with another number of worker processes.

As torch does it, tasks go to the workers in turn, each has ``prefetch_factor`` of them under way. A batch that comes
too early waits for those before it. Handing a batch over takes time in the worker, on the way and in the training
process. CPU time is shared: where more threads are ready to run than there are cores, all of them get slower alike.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.model.profile import Floats

COUNTS = (*range(9), 10, 12, 16, 20, 24, 32)
"""Numbers of workers that are simulated."""
_BATCHES = 200
"""Of a simulation, besides those before the workers have worked for a while."""
_DRAWS = 7
"""Orders of batches, each drawn from those that were recorded."""
_OFF, _ON = 0, 1


@dataclass(frozen=True, slots=True)
class LoaderWork:
    """What batches and steps take, in ns; columns have a row per recorded batch, in any order.

    Attributes:
        make_cpu, make_off: making a batch, on a core and without one (disk, network, sleep).
        alone_cpu: making it in the training process, on a core: without new shared memory.
        put_cpu: serialising it, which takes a core; a thread of its own does it while the next batch is read.
        unpickle, unpickle_wait: making tensors of its bytes, and waiting for the worker to give their memory.
        pin: copying it into pinned memory, in a thread of its own where ``pins``.
        handover: from the worker to the thread that receives it.
        next_cpu: what else the training's thread does for a batch of a worker.
        train, train_cpu: the step without loading, and what all threads of its process compute in it.
        prefetch: batches under way per worker.
        in_order: whether batches are given in their order.
        cores: that the processes may use.
        others: threads of other programs that are ready to run on these cores, on average.
    """

    make_cpu: Floats
    make_off: Floats
    alone_cpu: Floats
    put_cpu: Floats
    unpickle: Floats
    unpickle_wait: Floats
    pin: Floats
    handover: float
    next_cpu: float
    train: Floats
    train_cpu: Floats
    prefetch: int
    in_order: bool
    pins: bool
    cores: float
    others: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkersStep:
    """The step with so many workers, in ns, with an interval; of it the training waits for ``wait_ns``."""

    workers: int
    ns: float
    low_ns: float
    high_ns: float
    wait_ns: float


def steps_with(
    work: LoaderWork, counts: Sequence[int] = COUNTS, error: float = 0.0, draws: int = _DRAWS
) -> list[WorkersStep]:
    """The step with each of these numbers of workers.

    Args:
        work: of the training.
        counts: numbers of workers.
        error: of the model itself, which makes intervals wider: a share of the step.
        draws: orders of batches that are simulated.
    """
    found = []
    for count in counts:
        drawn = [_simulated(work, count, random.Random(7919 * draw + 1)) for draw in range(draws)]
        steps = sorted(step for step, _ in drawn)
        middle = steps[draws // 2]
        wait = sorted(wait for _, wait in drawn)[draws // 2]
        found.append(WorkersStep(count, middle, steps[0] * (1 - error), steps[-1] * (1 + error), wait))
    return found


def fewest_workers(steps: Sequence[WorkersStep], worth: float) -> WorkersStep:
    """The one with the fewest workers whose step is as short as the shortest, but for this share of it."""
    best = min(one.ns for one in steps)
    return min((one for one in steps if one.ns <= (1 + worth) * best), key=lambda one: one.workers)


def _simulated(work: LoaderWork, workers: int, chance: random.Random) -> tuple[float, float]:
    """The mean step, and of it the mean wait."""
    warm = 2 * workers * work.prefetch
    batches = _BATCHES + warm
    simulation = _Simulation(work, workers, batches, chance)
    times = simulation.run()
    first = min(max(warm, 2), batches - 2)
    count = batches - 1 - first
    return (times[-1] - times[first]) / count, sum(simulation.waits[first + 1 :]) / count


class _Simulation:
    """Of one training. Threads are without a core until a time, or need a core for a time of their own clock, which
    runs slower the more of them there are."""

    def __init__(self, work: LoaderWork, workers: int, batches: int, chance: random.Random) -> None:
        self._work, self._workers, self._batches = work, workers, batches
        rows = [chance.randrange(len(work.make_cpu)) for _ in range(batches + workers * work.prefetch)]
        pick = np.array(rows)
        self._make = [work.make_off[pick].tolist(), (work.make_cpu if workers else work.alone_cpu)[pick].tolist()]
        self._put = work.put_cpu[pick].tolist()
        self._unpickle, self._pin = (work.unpickle + work.unpickle_wait)[pick].tolist(), work.pin[pick].tolist()
        self._next_cpu = work.next_cpu if workers else 0.0
        steps = np.array([chance.randrange(len(work.train)) for _ in range(batches)])
        self._train, self._train_cpu = work.train[steps].tolist(), work.train_cpu[steps].tolist()
        self.waits: list[float] = []
        self._now = self._clock = 0.0
        self._threads = 0.0
        self._off: list[tuple[float, int, object]] = []
        self._on: list[tuple[float, int, float, object]] = []
        self._number = 0
        self._tasks: list[deque[int]] = [deque() for _ in range(workers)]
        self._busy, self._puts = [False] * workers, [False] * workers
        self._read: list[int | None] = [None] * workers
        self._next_worker = 0
        self._sent = 0
        self._arrived: deque[int] = deque()
        self._received: set[int] = set()
        self._receiving = False
        self._given: list[float] = []
        self._asks = False
        self._asked_at = 0.0

    def run(self) -> list[float]:
        """When each batch was given."""
        if not self._workers:
            self._ask()
        else:
            for _ in range(self._workers * self._work.prefetch):
                self._send()
            self._ask()
        cores = self._work.cores
        while len(self._given) < self._batches:
            rate = min(1.0, cores / (self._threads + self._work.others)) if self._threads else 1.0
            at_off = self._off[0][0] if self._off else math.inf
            at_on = self._now + (self._on[0][0] - self._clock) / rate if self._on else math.inf
            then = max(min(at_off, at_on), self._now)
            self._clock += (then - self._now) * rate
            self._now = then
            if at_off <= at_on:
                _, _, what = heapq.heappop(self._off)
            else:
                _, _, weight, what = heapq.heappop(self._on)
                self._threads -= weight
            self._go_on(what)
        return self._given

    def _wait(self, ns: float, what: object) -> None:
        self._number += 1
        heapq.heappush(self._off, (self._now + ns, self._number, what))

    def _compute(self, ns: float, what: object, threads: float = 1.0) -> None:
        self._number += 1
        self._threads += threads
        heapq.heappush(self._on, (self._clock + ns, self._number, threads, what))

    def _go_on(self, what: object) -> None:
        assert isinstance(what, tuple)
        kind, one = what
        if kind == "made off":
            worker, task = one
            self._read[worker] = task
            self._make_on(worker)
        elif kind == "made":
            worker, task = one
            self._busy[worker] = False
            self._puts[worker] = True
            self._compute(self._put[task], ("put", one))
            self._begin(worker)
        elif kind == "put":
            worker, task = one
            self._puts[worker] = False
            self._wait(self._work.handover, ("arrived", task))
            self._make_on(worker)
        elif kind == "arrived":
            self._arrived.append(one)
            self._receive()
        elif kind == "unpickled":
            if self._work.pins:
                self._wait(self._pin[one], ("received", one))
            else:
                self._have(one)
        elif kind == "received":
            self._have(one)
        elif kind == "own off":
            self._compute(self._make[_ON][one], ("own", one))
        elif kind == "own":
            self._give(one)
        elif kind == "train off":
            threads = max(1.0, self._train_cpu[one] / max(self._train[one], 1.0))
            self._compute(self._train_cpu[one] / threads + self._next_cpu, ("trained", one), threads)
        elif kind == "trained":
            self._ask()

    def _send(self) -> None:
        """A task goes to a worker."""
        workers = self._workers
        at = self._next_worker
        if not self._work.in_order:
            # The next one that has not as many as it may have.
            for _ in range(workers):
                if len(self._tasks[at]) + self._busy[at] < self._work.prefetch:
                    break
                at = (at + 1) % workers
        self._next_worker = (at + 1) % workers
        self._tasks[at].append(self._sent)
        self._sent += 1
        self._begin(at)

    def _begin(self, worker: int) -> None:
        if not self._busy[worker] and self._tasks[worker]:
            task = self._tasks[worker].popleft()
            self._busy[worker] = True
            self._wait(self._make[_OFF][task], ("made off", (worker, task)))

    def _make_on(self, worker: int) -> None:
        """A worker goes on with a batch on a core: two threads of a process do not compute at a time."""
        task = self._read[worker]
        if task is not None and not self._puts[worker]:
            self._read[worker] = None
            self._compute(self._make[_ON][task], ("made", (worker, task)))

    def _ask(self) -> None:
        """The training asks for a batch."""
        self._asked_at = self._now
        if not self._workers:
            task = len(self._given)
            self._wait(self._make[_OFF][task], ("own off", task))
            return
        self._asks = True
        self._take()
        self._receive()

    def _receive(self) -> None:
        """The next batch that has arrived is received: by the training's thread while it waits, or by the one that
        pins."""
        if self._receiving or not self._arrived or not (self._asks or self._work.pins):
            return
        self._receiving = True
        task = self._arrived.popleft()
        self._compute(self._unpickle[task], ("unpickled", task))

    def _have(self, task: int) -> None:
        self._receiving = False
        self._received.add(task)
        self._take()
        self._receive()

    def _take(self) -> None:
        if not self._asks or not self._received:
            return
        task = len(self._given) if self._work.in_order else next(iter(self._received))
        if task in self._received:
            self._received.discard(task)
            self._asks = False
            self._send()
            self._give(len(self._given))

    def _give(self, number: int) -> None:
        self.waits.append(self._now - self._asked_at)
        self._given.append(self._now)
        if len(self._given) < self._batches:
            off = max(self._train[number] - self._train_cpu[number], 0.0)
            self._wait(off, ("train off", number))
