"""Facts about the DataLoader of a run: whether it has worker processes, how long it takes, where epochs begin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.advice.savings import Saving, less_cpu, partly
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.loader.forecast import LoaderForecast, loader_forecast
from tb_dlprof_plugin.model.intervals import covered, union
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.call_names import calls_named
from tb_dlprof_plugin.simulation.pauses import loading_times

_ALONE, _WORKERS = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
_NEXT = "enumerate(DataLoader)#"
_SEED, _SEED_READ = "aten::random_", "aten::item"

ON_THE_CPU = (
    "What worker processes save cannot be said: they take the cores that the training computes on, and a batch that "
    "they hand over takes time, too. `tb-dlprof try` measures it."
)
"""Of a run without a GPU. Ours: on two busy cores a batch of 8 to 1,500 kB took 2.5 to 14 ms from a worker, and 0.6 to
2 ms in the training process."""


def worker_processes(context: RuleContext) -> int | None:
    """How many the DataLoader has: of the hook's facts, else 0 where the trace's iterators have none; None: unknown."""
    loader = context.facts.dataloader
    if loader is not None and loader.num_workers is not None:
        return loader.num_workers
    alone, workers = (_nexts(context, kind).any() for kind in (_ALONE, _WORKERS))
    return 0 if alone and not workers else None


def loads(context: RuleContext) -> Bools:
    """The DataLoader's ``__next__`` calls in the selected iterations, as a mask over `Profile.calls`."""
    return _nexts(context, "") & context.view.selected_calls(context.selection)


def loading_ns(context: RuleContext) -> int:
    """Time per step that the training thread spends in them, whatever the GPU does."""
    return int(context.profile.calls.duration_ns[loads(context)].sum()) // context.selection.count


def by_workers(context: RuleContext) -> tuple[Saving, LoaderForecast] | None:
    """What the fewest workers save that hide the loader, by what the hook measured of its batches; None where it did
    not measure them, or where no number of workers is better."""
    forecast = loader_forecast(context.view)
    if forecast is None or forecast.best.workers <= forecast.now.workers:
        return None
    now, best = forecast.now, forecast.best
    step_ns = context.step_ns
    low, expected, high = (
        max(0.0, step_ns * (1 - ns / now.ns)) for ns in (best.high_ns, best.ns, min(best.low_ns, best.ns))
    )
    measured = len(context.profile.loader_batches)
    text = (
        f"{measured} batches, as measured in the loader, simulated with their order, hand-over and "
        f"{context.profile.facts.loading.cores or 1:g} cores: {ms(now.ns)} a step with {now.workers} workers, "  # type: ignore[union-attr]
        f"{ms(best.ns)} ({ms(best.low_ns)} to {ms(best.high_ns)}) with {best.workers}."
    )
    loading = loading_times(context.view, context.view.selection())
    return partly(context, less_cpu(loading), low, expected, high, text), forecast


def settings_raised(base: ProfileView, candidate: ProfileView) -> str:
    """The settings of the DataLoader that were raised or switched on."""
    before, after = base.profile.facts.dataloader, candidate.profile.facts.dataloader
    if before is None or after is None:
        return ""
    changes = []
    for name, old, new in (
        ("num_workers", before.num_workers, after.num_workers),
        ("prefetch_factor", before.prefetch_factor, after.prefetch_factor),
    ):
        if old is not None and new is not None and new > old:
            changes.append(f"{name} {old} to {new}")
    for name, was, now in (
        ("persistent_workers", before.persistent_workers, after.persistent_workers),
        ("pin_memory", before.pin_memory, after.pin_memory),
    ):
        if was is False and now:
            changes.append(f"{name} on")
    return ", ".join(changes)


@dataclass(frozen=True, slots=True)
class EpochStarts:
    """Where the training thread made a DataLoader iterator with worker processes; one row each (ns).

    Attributes:
        iteration: index of the iteration.
        start_ns: when the iterator drew its seed, before it started the workers.
        starting_ns: from there to the first ``__next__``, with the GPU idle.
        ending_ns: of the ``__next__`` before that found the epoch at its end and stopped the workers, with the GPU
            idle; 0 where that lies outside the recording.
        waiting_ns: of the first ``__next__``, with the GPU idle.
    """

    iteration: Ints
    start_ns: Ints
    starting_ns: Ints
    ending_ns: Ints
    waiting_ns: Ints

    def __len__(self) -> int:
        return len(self.iteration)


def epoch_starts(context: RuleContext) -> EpochStarts:
    """Of the selected iterations.

    An iterator draws a random seed and reads it (``aten::random_``, ``aten::item``); then it starts its workers,
    without any op, and its first ``__next__`` follows. A loader with persistent workers keeps its
    iterator, and draws none.
    """
    view, calls, launches = context.view, context.profile.calls, context.profile.launches
    first = np.flatnonzero(_nexts(context, _WORKERS) & view.selected_calls(context.selection))
    every = np.flatnonzero(_nexts(context, ""))
    same = view.call_parent
    named = {name: calls_named(view, CallKind.OP, name.__eq__) for name in (_SEED, _SEED_READ)}
    outermost = np.flatnonzero(view.call_top == np.arange(len(calls)))
    position = np.searchsorted(outermost, first) - 1
    known = position >= 1
    first, position = first[known], position[known]
    read, seed = outermost[position], outermost[position - 1]
    drawn = named[_SEED_READ][read] & named[_SEED][seed] & (same[read] == same[first]) & (same[seed] == same[first])
    drawn &= calls.thread[read] == calls.thread[first]
    first, seed = first[drawn], seed[drawn]
    busy = union(launches.start_ns, launches.start_ns + launches.duration_ns)

    def idle(start: Ints, stop: Ints) -> Ints:
        return stop - start - covered(busy, start, stop)

    stop = calls.start_ns + calls.duration_ns
    position = np.searchsorted(every, first) - 1
    before = every[np.maximum(position, 0)] if len(every) else first
    # Between the end of an epoch and the start of the next nothing is trained.
    between = np.searchsorted(outermost, seed) - np.searchsorted(outermost, before)
    ends = (position >= 0) & (before < seed) & (calls.thread[before] == calls.thread[seed]) & (between <= _SEED_OPS)
    return EpochStarts(
        iteration=view.call_iteration[first],
        start_ns=calls.start_ns[seed],
        starting_ns=idle(calls.start_ns[seed], calls.start_ns[first]),
        ending_ns=np.where(ends, idle(calls.start_ns[before], stop[before]), 0),
        waiting_ns=idle(calls.start_ns[first], stop[first]),
    )


_SEED_OPS = 4
"""Ops between the two calls of ``__next__``, at most: those inside the first, and ``aten::empty``."""


def _nexts(context: RuleContext, kind: str) -> Bools:
    return calls_named(context.view, CallKind.ANNOTATION, lambda name: name.startswith(_NEXT) and kind in name)
