"""GPU work launched outside every op: by a CUDA extension inside an annotation or module, or by a CUDA graph.

No operator is recorded for it, but its launching call is known: Apex' FusedAdam inside its ``Optimizer.step``, a graph
inside ``cudaGraphLaunch``. The launching calls then are rows of their own, named after the innermost annotation around
them, else after the call. What lies in neither stays unattributed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.analysis.grouping import distinct
from tb_dlprof_plugin.analysis.roles import Roles
from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.model.timeline import HostKind, Timeline
from tb_dlprof_plugin.model.tree import inherit
from tb_dlprof_plugin.names.cuda_calls import CudaCall, cuda_call_column

_STEP_PREFIX = "ProfilerStep#"


def adopt_direct_launches(timeline: Timeline, roles: Roles, call: Ints, parent: Ints) -> tuple[Roles, Ints]:
    """Roles in which such calls are outermost ops, and per host event the string index of the name that it lends them.

    Args:
        timeline: the trace.
        roles: of its host events.
        call: per device event the row of its launching host event, -1 for none.
        parent: per host event the row of its parent.
    """
    host, strings = timeline.host, timeline.strings
    lent = np.full(len(host), -1, dtype=np.int64)
    rows = distinct(call[call >= 0])
    rows = rows[(host.kind[rows] == HostKind.RUNTIME) & (roles.top_call[rows] < 0)]
    if not len(rows):
        return roles, lent
    step = np.array([text.startswith(_STEP_PREFIX) for text in strings], dtype=np.bool_)
    graph = cuda_call_column(strings, host.name[rows].tolist()) == CudaCall.GRAPH_LAUNCH
    named = (roles.kind == CallKind.ANNOTATION) & ~step[host.name]
    annotation = inherit(np.where(named, host.name, -1), named, parent)[rows]
    adopted = (annotation >= 0) | (roles.module[rows] > 0) | graph[host.name[rows]]
    rows, annotation = rows[adopted], annotation[adopted]
    lent[rows] = np.where(annotation >= 0, annotation, host.name[rows])
    top, top_call = roles.top.copy(), roles.top_call.copy()
    top[rows] = True
    top_call[rows] = rows
    return replace(roles, top=top, top_call=top_call), lent
