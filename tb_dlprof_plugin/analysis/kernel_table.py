"""The unique kernels of a recording with their Tensor Core verdicts, and the row of each launch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Ints, Kernels, Verdict
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.names import KernelClass, classify_kernel

_VERDICT = {None: Verdict.UNKNOWN, False: Verdict.NO, True: Verdict.YES}


@dataclass(frozen=True, slots=True)
class LaunchContexts:
    """The inputs of a verdict, a row for each GPU activity: indices of strings, and of lists of data types for
    ``op_dtypes``; 0 where there is no op."""

    name: Ints
    kind: Ints
    op_name: Ints
    op_dtypes: Ints


def launch_contexts(
    name: Ints, kind: Ints, call: Ints, parent: Ints, is_op: Bools, op_name: Ints, op_dtypes: Ints
) -> LaunchContexts:
    """The contexts of GPU activities: each with the innermost op around the call that launched it.

    Args:
        name: of each activity.
        kind: of each activity.
        call: per activity the row of its launching call, -1 for none.
        parent: per call the row of its parent.
        is_op: per call whether it is an op.
        op_name: per call its name.
        op_dtypes: per call its input types.
    """
    op = take_or(nearest(is_op, parent), call, -1)
    return LaunchContexts(name, kind, take_or(op_name, op, 0), take_or(op_dtypes, op, 0))


def build_kernels(
    contexts: LaunchContexts,
    strings: list[str],
    input_dtypes: list[InputDtypes],
    compute_capability: tuple[int, int] | None,
    rocm: bool,
) -> tuple[Kernels, Ints]:
    """The table of unique (kernel, verdict) and, for each GPU activity, its row. Appends to ``strings``.

    Context can decide a verdict, so one name may have several rows.

    Args:
        contexts: of the activities.
        strings: the string table.
        input_dtypes: the lists of data types.
        compute_capability: of the GPU.
        rocm: whether the GPU is AMD's, which has no Tensor Cores: the verdict is then never yes.
    """
    unique, context_of_launch = group_rows(contexts.name, contexts.kind, contexts.op_name, contexts.op_dtypes)
    table = StringTable.over(strings)
    rows: dict[tuple[int, int, KernelClass], int] = {}
    row_of_context = []
    for name, kind, op, types in zip(*(column.tolist() for column in unique), strict=True):
        verdict = classify_kernel(
            strings[name], op=strings[op], input_types=input_dtypes[types], compute_capability=compute_capability
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
