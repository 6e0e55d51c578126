"""Steps that begin inside an optimizer's step, because the optimizer calls the model: a closure, as Lightning has it.

The step before ends in the middle of ``Optimizer.step`` then, and the two ranges cross: neither is around the other,
and all that the closure ran counts as the optimizer's own as well. The boundary is moved to where the optimizer's step
begins, by what it did until it called the model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.analysis.steps import annotation_rows
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.timeline import HostEvents, Timeline
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
    return replace(timeline, host=_sorted(host, start, stop - start)) if moved else timeline


def _sorted(host: HostEvents, start_ns: Ints, duration_ns: Ints) -> HostEvents:
    columns = {name: getattr(host, name) for name in HostEvents.__slots__}
    columns |= {"start_ns": start_ns, "duration_ns": duration_ns}
    order = np.lexsort((-duration_ns, start_ns, host.thread))
    return HostEvents(**{name: column[order] for name, column in columns.items()})
