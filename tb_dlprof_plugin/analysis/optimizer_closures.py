"""Optimizers that call the model: their step is given a closure, as Lightning and LBFGS do it.

What the closure runs is not the optimizer's work, though it lies inside of ``Optimizer.step``. And where a step of the
training begins in there, the step before ends in the middle of ``Optimizer.step``, and the two ranges cross: neither is
around the other. The boundary is moved to where the optimizer's step begins, by what it did until it called the model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.analysis.steps import annotation_rows
from tb_dlprof_plugin.model.closures import closure_ends
from tb_dlprof_plugin.model.lookup import take_or, take_rows
from tb_dlprof_plugin.model.profile import Bools, Ints
from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.names.ops import OPTIMIZER_STEP, PROFILER_STEP


def with_steps_around_closures(timeline: Timeline) -> Timeline:
    """The timeline with each such step beginning where the optimizer's step does, and the one before ending there."""
    host = timeline.host
    steps, optimizers = annotation_rows(timeline, PROFILER_STEP), annotation_rows(timeline, OPTIMIZER_STEP)
    start, stop = host.start_ns.copy(), host.start_ns + host.duration_ns
    begins, ends = start[steps], stop[steps]
    moved = False
    for optimizer in optimizers.tolist():
        here = host.thread[steps] == host.thread[optimizer]
        inside = here & (begins > start[optimizer]) & (begins < stop[optimizer]) & (ends > stop[optimizer])
        if not inside.any():
            continue
        moved = True
        start[steps[inside]] = start[optimizer]
        ended = here & (begins < start[optimizer]) & (ends > start[optimizer]) & (ends < stop[optimizer])
        stop[steps[ended]] = start[optimizer]
    if not moved:
        return timeline
    order = np.lexsort((start - stop, start, host.thread))
    return replace(timeline, host=take_rows(replace(host, start_ns=start, duration_ns=stop - start), order))


def outermost_closure_calls(timeline: Timeline, marks: Bools, parent: Ints) -> Bools:
    """The calls that an optimizer's closure made itself: right below ``Optimizer.step``, before the last mark ended.

    Args:
        timeline: with the calls.
        marks: calls of modules and of backward nodes.
        parent: row of each call's parent, -1 for none.
    """
    host = timeline.host
    stop_ns = host.start_ns + host.duration_ns
    steps = annotation_rows(timeline, OPTIMIZER_STEP)
    steps = steps[np.argsort(host.start_ns[steps], kind="stable")]
    never = np.iinfo(np.int64).min
    end_ns = np.full(len(host), never, dtype=np.int64)
    end_ns[steps] = closure_ends(host.start_ns[steps], stop_ns[steps], host.start_ns[marks], stop_ns[marks])
    return host.start_ns < take_or(end_ns, parent, never)
