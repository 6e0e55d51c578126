"""How many DataLoader workers a training needs: simulated, from a recording of its batches or from its waits alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.metrics.loader.forecast import WORTH, LoaderForecast
from tb_dlprof_plugin.metrics.loader.work import HANDOVER_NS
from tb_dlprof_plugin.simulation.loader import LoaderWork, WorkersStep, fewest_workers, steps_with

WORKERS = (1, 2, 4, 8)
_WORTH = 0.03
"""Share of the step that waiting has to be, before workers can gain."""
_BUSY = 0.5
"""Share of the loading on a CPU from which on each worker needs one for itself."""
_START_S, _START_EACH_S = 0.02, 0.015
"""That the first batch of an epoch is late because workers start, and for each one more: medians of two CPU cores."""


@dataclass(frozen=True, slots=True)
class Loading:
    """What one step waits for batches.

    Attributes:
        wait_s: seconds of a step.
        cpu_s: of these on the CPU, in the thread of the training.
        workers: of the loader, now.
        step_s: seconds of a step.
        train_cpu_s: seconds that all threads of the process compute in a step, without ``cpu_s``.
        epochs: that a step takes of the dataset, after each of which workers start again; 0 where they stay.
    """

    wait_s: float
    cpu_s: float
    workers: int
    step_s: float
    train_cpu_s: float = 0.0
    epochs: float = 0.0


def workers_needed(
    loading: Loading, cpu_count: int, counts: Sequence[int] = WORKERS, recorded: LoaderForecast | None = None
) -> tuple[int, float] | None:
    """The fewest workers with which the step is as short as with any of these numbers, and the percent of the step that
    they save; None where the steps do not wait, or no number of workers is better than today's.

    Args:
        loading: of today's loader.
        cpu_count: CPUs that the training may use.
        counts: numbers of workers that may be chosen.
        recorded: of an earlier recording of this training; it counts where it has today's number of workers.
    """
    if loading.step_s <= 0 or loading.wait_s < _WORTH * loading.step_s:
        return None
    if recorded is not None and recorded.now.workers == loading.workers:
        steps, now_ns = {one.workers: one for one in recorded.steps}, recorded.now.ns
    else:
        steps = {
            one.workers: replace(one, ns=one.ns + 1e9 * loading.epochs * (_START_S + one.workers * _START_EACH_S))
            for one in steps_with(_work(loading, cpu_count), counts)
        }
        now_ns = 1e9 * loading.step_s
    larger: list[WorkersStep] = [steps[one] for one in counts if one > loading.workers and one in steps]
    if not larger:
        return None
    chosen = fewest_workers(larger, WORTH)
    saved = 100 * (1 - chosen.ns / now_ns)
    return (chosen.workers, saved) if saved > 100 * _WORTH else None


def _work(loading: Loading, cpu_count: int) -> LoaderWork:
    """Batches that all take the same: the wait where there are no workers, else, as the steps wait for them, a step for
    each of the workers."""
    rest_ns = np.full(1, max(1e9 * (loading.step_s - loading.wait_s), 0.0))
    # One thread at least, which may wait for a GPU.
    train_cpu_ns = np.maximum(rest_ns, 1e9 * loading.train_cpu_s)
    made_ns = 1e9 * (loading.wait_s if not loading.workers else loading.step_s * loading.workers)
    on_cpu = loading.workers > 0 or loading.cpu_s > _BUSY * loading.wait_s
    # In the worker, on the way and in the training each: about what one tensor takes.
    nothing, handover = np.zeros(1), np.full(1, float(HANDOVER_NS))
    return LoaderWork(
        make_cpu=np.full(1, made_ns if on_cpu else 0.0),
        make_off=np.full(1, 0.0 if on_cpu else made_ns),
        alone_cpu=np.full(1, made_ns if on_cpu else 0.0),
        put_cpu=handover,
        unpickle=handover,
        unpickle_wait=nothing,
        pin=nothing,
        handover=float(HANDOVER_NS),
        next_cpu=0.0,
        train=rest_ns,
        train_cpu=train_cpu_ns,
        prefetch=2,
        in_order=True,
        pins=False,
        cores=float(cpu_count),
    )
