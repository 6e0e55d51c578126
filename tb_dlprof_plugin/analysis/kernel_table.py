"""The unique kernels of a recording with their Tensor Core verdicts, and the row of each launch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.analysis.grouping import group_rows
from tb_dlprof_plugin.analysis.machine import is_rocm
from tb_dlprof_plugin.kernels import KernelClass, classify_kernel
from tb_dlprof_plugin.storage.model import Ints, Kernels, Verdict
from tb_dlprof_plugin.storage.tree import climb
from tb_dlprof_plugin.trace.strings import StringTable
from tb_dlprof_plugin.trace.timeline import HostKind, Timeline

_VERDICT = {None: Verdict.UNKNOWN, False: Verdict.NO, True: Verdict.YES}


def build_kernels(
    timeline: Timeline, call: Ints, parent: Ints, compute_capability: tuple[int, int] | None
) -> tuple[Kernels, Ints]:
    """The table of unique (kernel, verdict) and, for each device event, its row.

    Context can decide a verdict, so one name may have several rows.

    Args:
        timeline: the trace.
        call: per device event the row of its launching host event, -1 for none.
        parent: per host event the row of its parent.
        compute_capability: of the GPU.
    """
    host, device, strings = timeline.host, timeline.device, timeline.strings
    op_row = call
    if len(host):
        # The launching op is the nearest event around the runtime call that is not itself one.
        runtime = host.kind == HostKind.RUNTIME
        nearest = climb(call, runtime, parent)
        op_row = np.where((nearest >= 0) & ~runtime[np.maximum(nearest, 0)], nearest, -1)
    known = np.maximum(op_row, 0)
    op_name = np.where(op_row >= 0, host.name[known], 0) if len(host) else np.zeros(len(device), dtype=np.int64)
    dtypes = np.where(op_row >= 0, host.dtypes[known], 0) if len(host) else op_name
    rocm = is_rocm(timeline)
    contexts, context_of_launch = group_rows(device.name, device.kind, op_name, dtypes)
    table = StringTable.over(strings)
    rows: dict[tuple[int, int, KernelClass], int] = {}
    row_of_context = []
    for name, kind, op, types in zip(*(column.tolist() for column in contexts), strict=True):
        verdict = classify_kernel(
            strings[name], op=strings[op], input_types=strings[types], compute_capability=compute_capability
        )
        if rocm and verdict.tensor_core:
            verdict = replace(verdict, tensor_core=None, precision=None, rule="rocm")
        row_of_context.append(rows.setdefault((name, kind, verdict), len(rows)))
    result = np.array(row_of_context, dtype=np.int64)[context_of_launch]
    classes = [verdict for _, _, verdict in rows]
    return (
        Kernels(
            name=np.array([name for name, _, _ in rows], dtype=np.int64),
            kind=np.array([kind for _, kind, _ in rows], dtype=np.int64),
            family=np.array([table.add(c.kind) for c in classes], dtype=np.int64),
            tensor_core=np.array([_VERDICT[c.tensor_core] for c in classes], dtype=np.int64),
            precision=np.array([table.add(c.precision or "") for c in classes], dtype=np.int64),
            rule=np.array([table.add(c.rule) for c in classes], dtype=np.int64),
        ),
        result,
    )
