"""The step with another number of DataLoader workers, simulated from the measured batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.metrics.loader.batches import ENOUGH, measured_rows, measured_step, median_known, why_unknown
from tb_dlprof_plugin.metrics.loader.parts import MANY, slow_part, stages
from tb_dlprof_plugin.metrics.loader.work import loader_work
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.profile_view import ProfileView, per_view
from tb_dlprof_plugin.simulation.loader import COUNTS, LoaderWork, WorkersStep, fewest_workers, steps_with

WORTH = 0.03
"""Of the step: fewer workers that cost less than this are preferred, as they take memory and cores."""
_WORTH_MORE = 0.06
"""Of the step: what more workers than now must save at least."""
_FAR_OFF = 0.25
"""Share of the measured step by which the simulated one may be off with the recorded number of workers."""
_MOST_WORKERS = 8
"""More are advised only up to twice the cores: as many were measured (`lab/loader`), and each takes memory."""
MODEL_ERROR, _FEW_ERROR, _MANY_ERROR = 0.10, 0.25, 0.30
"""Shares of the step by which the simulation may be off besides what the draws differ by: with `ENOUGH` batches, with
as few as `FEWEST`, and of batches of `MANY` tensors that were recorded without workers, whose hand-over is an estimate.
By `lab/loader`."""
_NOTABLE = 0.03
"""Share of the step from which on what is uncertain is simulated by itself."""
_END_DRAWS = 3
"""Of an end of the interval."""


@dataclass(frozen=True, slots=True)
class LoaderForecast:
    """The step with other numbers of workers.

    Attributes:
        steps: with each number.
        now: with the recorded one.
        best: with the fewest that hide the loader as well as any number does; the recorded one where more are not
            worth it.
        unordered: with as many as now, if batches were given as they come; None where they are, or without workers.
    """

    steps: tuple[WorkersStep, ...]
    now: WorkersStep
    best: WorkersStep
    unordered: WorkersStep | None


def why_no_forecast(view: ProfileView) -> str | None:
    """Why there is no forecast of this loader, in one sentence; None where there is one."""
    unknown = why_unknown(view)
    if unknown is not None:
        return unknown
    now, measured_ns = _recorded_step(view), measured_step(view)
    if now is None or measured_ns is None or abs(now.ns / measured_ns - 1) <= _FAR_OFF:
        return None
    return (
        f"As recorded the step took {duration(measured_ns)}, simulated {duration(now.ns)}: the simulation does not "
        "describe this loader, and what another number of workers gives cannot be said."
    )


@per_view
def loader_forecast(view: ProfileView) -> LoaderForecast | None:
    """The step with other numbers of workers; None where `why_no_forecast`."""
    work, now = loader_work(view), _recorded_step(view)
    if work is None or now is None or why_no_forecast(view) is not None:
        return None
    error = _error(view, work)
    measured_ns = measured_step(view)
    if measured_ns is not None:
        # What it does not account for with this number of workers, it may not account for with another.
        error = max(error, now.ns / measured_ns - 1, measured_ns / now.ns - 1)
    found = [_with(view, work, now, count, error) for count in COUNTS]
    recorded = now.workers
    now = next((one for one in found if one.workers == recorded), None) or _with(view, work, now, recorded, error)
    unordered = None
    if now.workers and work.in_order:
        (unordered,) = steps_with(replace(work, in_order=False), (now.workers,), error)
    most = max(_MOST_WORKERS, 2 * work.cores, now.workers)
    best = fewest_workers([one for one in (*found, now) if one.workers <= most], WORTH)
    if best.workers > now.workers and best.ns > (1 - _WORTH_MORE) * now.ns:
        best = now
    return LoaderForecast(tuple(found), now, best, unordered)


@per_view
def _recorded_step(view: ProfileView) -> WorkersStep | None:
    """As simulated with the recorded number of workers; None where `why_unknown`."""
    work, recording = loader_work(view), view.profile.facts.loading
    if work is None or recording is None:
        return None
    return steps_with(work, (recording.workers or 0,), _error(view, work))[0]


def _with(view: ProfileView, work: LoaderWork, now: WorkersStep, count: int, error: float) -> WorkersStep:
    """The step with so many workers; its interval holds what the recording leaves open."""

    def step(changed: LoaderWork) -> WorkersStep:
        return steps_with(changed, (count,), error)[0]

    def end(changed: LoaderWork) -> WorkersStep:
        return steps_with(changed, (count,), error, _END_DRAWS)[0]

    # The thread that unpickles waits for the worker, the longer the more that one has to do: how much of the wait this
    # is, the recording does not tell. None of it is one end, all of it the other, half of it is expected.
    waits = float(work.unpickle_wait.mean())
    if count and now.workers and count != now.workers and waits >= _NOTABLE * now.ns:
        as_recorded = end(work)
        busy = now.workers * now.ns / (count * as_recorded.ns)
        expected = step(_waiting(work, (1 + busy) / 2))
        ends = [expected, as_recorded, end(_waiting(work, busy))]
    else:
        expected = step(work)
        ends = [expected]
    # Whether malloc gives large items, and without workers the batch, memory that is there or new pages each time, was
    # seen to differ from one start of a script to the next.
    recording = view.profile.facts.loading
    pages = (1 if count else 2) * ((recording.shared_write_ns if recording is not None else None) or 0.0)
    if pages >= _NOTABLE * expected.ns:
        ends += [end(_making(work, more)) for more in (-pages, pages)]
    return replace(expected, low_ns=min(one.low_ns for one in ends), high_ns=max(one.high_ns for one in ends))


def _waiting(work: LoaderWork, times: float) -> LoaderWork:
    return replace(work, unpickle_wait=work.unpickle_wait * times)


def _making(work: LoaderWork, more_ns: float) -> LoaderWork:
    make, alone = (np.maximum(cpu + more_ns, 0.0) for cpu in (work.make_cpu, work.alone_cpu))
    return replace(work, make_cpu=make, alone_cpu=alone)


def _error(view: ProfileView, work: LoaderWork) -> float:
    """Share of the step by which the simulation may be off besides what the draws differ by."""
    error = MODEL_ERROR if min(len(work.make_cpu), len(work.train)) >= ENOUGH else _FEW_ERROR
    recording = view.profile.facts.loading
    estimated = recording is not None and not recording.workers
    return _MANY_ERROR if estimated and (median_known(view.profile.loader_batches.tensors) or 0) >= MANY else error


@per_view
def loader_pace_ns(view: ProfileView) -> float | None:
    """Time in which the workers deliver a batch to a training that takes no time itself; None where `why_no_forecast`,
    or without workers."""
    work, recording = loader_work(view), view.profile.facts.loading
    if work is None or recording is None or not recording.workers or why_no_forecast(view) is not None:
        return None
    (step,) = steps_with(replace(work, train=np.zeros(1), train_cpu=np.zeros(1)), (recording.workers,))
    return step.ns


@per_view
def step_without_slow_part(view: ProfileView) -> WorkersStep | None:
    """The step with as many workers as now if the part that costs most cost nothing; of many tensors, if they were one.
    None where `why_no_forecast`, or where that part is reading items as a whole."""
    part, work, now = slow_part(view), loader_work(view), _recorded_step(view)
    if part is None or work is None or now is None or part.kind == "items" or why_no_forecast(view) is not None:
        return None
    batches, rows = view.profile.loader_batches, measured_rows(view.profile.loader_batches)
    if part.kind == "tensors":
        one = 1.0 / max(median_known(batches.tensors) or 0, 1)
        changed = replace(_waiting(work, one), put_cpu=work.put_cpu * one, unpickle=work.unpickle * one)
    elif part.kind == "slow items":
        usual = np.maximum(batches.slow_samples * batches.median_sample_ns, 0)
        more = np.maximum(batches.slow_samples_ns - usual, 0)[rows].astype(float)
        off = np.minimum(more, work.make_off)
        changed = replace(work, make_off=work.make_off - off, make_cpu=np.maximum(work.make_cpu - (more - off), 0.0))
    else:
        found = {stage.stage: stage.ns for stage in stages(view)}
        made = found["items"] + found["collate"]
        whole = made + found.get("put", 0.0) + found.get("unpickle", 0.0)
        left = max(1.0 - part.share * whole / made, 0.0)
        changed = replace(work, make_off=work.make_off * left, make_cpu=work.make_cpu * left)
    (step,) = steps_with(changed, (now.workers,))
    return step
