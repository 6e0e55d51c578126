"""How many DataLoader workers a training needs, by the times of its own loader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WORKERS = (1, 2, 4, 8)
_WORTH = 0.03
"""Share of the step that waiting has to be, before workers can gain."""
_ENOUGH = 0.9
"""Share of the step without waiting in which the workers should have a batch ready."""
_BUSY = 0.5
"""Share of the loading on a CPU from which on each worker needs one for itself."""


@dataclass(frozen=True, slots=True)
class Loading:
    """What one step waits for batches.

    Attributes:
        wait_s: seconds of a step.
        cpu_s: of these on the CPU, in the process of the training.
        workers: of the loader, now.
        step_s: seconds of a step.
    """

    wait_s: float
    cpu_s: float
    workers: int
    step_s: float


def workers_needed(loading: Loading, cpu_count: int, counts: Sequence[int] = WORKERS) -> tuple[int, float] | None:
    """The fewest workers with which no step waits, or as many as there are CPUs for, and the percent of the step that
    they save; None where the steps do not wait, or no number of workers is better than today's.

    Workers deliver a batch each ``work / workers`` seconds. The work of a batch is the wait where there are no workers;
    where there are some, and the steps wait for them, it is a step for each of them.

    Args:
        loading: of today's loader.
        cpu_count: CPUs that the training may use.
        counts: numbers of workers that may be chosen.
    """
    rest_s = loading.step_s - loading.wait_s
    if loading.step_s <= 0 or loading.wait_s < _WORTH * loading.step_s:
        return None
    work_s = loading.wait_s if not loading.workers else loading.step_s * loading.workers
    on_cpu = loading.workers > 0 or loading.cpu_s > _BUSY * loading.wait_s
    most = max(cpu_count - 1, 1) if on_cpu else WORKERS[-1]
    found = None
    for count in sorted(counts):
        if loading.workers < count <= max(most, 1):
            saved = 100 * (1 - max(rest_s, work_s / count) / loading.step_s)
            if found is None or saved > found[1]:
                found = count, saved
            if work_s / count <= _ENOUGH * rest_s:
                break
    return found if found is not None and found[1] > 100 * _WORTH else None
