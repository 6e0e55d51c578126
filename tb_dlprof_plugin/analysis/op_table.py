"""The unique ops of a recording, and the row of each call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.analysis.direct_launches import Adopted
from tb_dlprof_plugin.analysis.roles import Roles
from tb_dlprof_plugin.model.grouping import distinct, first_rows, group_rows
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Ints, Ops, Role, Verdict
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.names.ops import MODULE_PREFIX, short_op_name
from tb_dlprof_plugin.names.tensor_core_eligibility import eligibility_of


def build_ops(
    timeline: Timeline,
    adopted: Adopted,
    compute_capability: tuple[int, int] | None,
    compiled: Ints,
    fused: dict[int, str],
) -> tuple[Ops, Ints]:
    """The table of unique ops and, for each host event, its row. Op types are appended to ``timeline.strings``.

    Args:
        timeline: the trace.
        adopted: the roles of its host events, and the names that stand for op types.
        compute_capability: of the GPU that the run used; None without a GPU.
        compiled: per host event its row of `CompiledKernels`, -1 for none.
        fused: op types of rows of `CompiledKernels`, where they are not those of the events' names.
    """
    host, roles = timeline.host, adopted.roles
    op_type = _op_types(timeline, roles, adopted.lent_names)
    if fused:
        table = StringTable.over(timeline.strings)
        of_kernel = np.full(int(compiled.max()) + 1, -1, dtype=np.int64)
        rows = [row for row in fused if row < len(of_kernel)]
        of_kernel[rows] = [table.add(fused[row]) for row in rows]
        own = take_or(of_kernel, compiled, -1)
        op_type = np.where(own >= 0, own, op_type)
    name = _short_names(timeline)[host.name]
    unique, row = group_rows(
        name,
        roles.kind,
        op_type,
        roles.module,
        roles.role,
        host.shapes,
        host.dtypes,
        roles.top.astype(np.int64),
        (_continuations(roles) | adopted.by_time).astype(np.int64),
        compiled,
    )
    ops = Ops(
        name=unique[0],
        kind=unique[1],
        op_type=unique[2],
        module=unique[3],
        role=unique[4],
        shapes=unique[5],
        dtypes=unique[6],
        top=unique[7].astype(np.bool_),
        tensor_core_eligible=np.full(len(unique[0]), int(Verdict.NO), dtype=np.int64),
        continuation=unique[8].astype(np.bool_),
        compiled=unique[9],
    )
    eligible_ops = eligibility_of(
        ops, timeline.strings, timeline.input_shapes, timeline.input_dtypes, compute_capability
    )
    return replace(ops, tensor_core_eligible=eligible_ops), row


def _op_types(timeline: Timeline, roles: Roles, lent_names: Ints) -> Ints:
    """String index per call: its own type, for a backward node that of the forward op it belongs to."""
    strings = timeline.strings
    table = StringTable.over(strings)
    # Only names of host events: kernel names would double the table.
    used = distinct(np.concatenate((timeline.host.name, lent_names[lent_names >= 0])))
    of_name = np.zeros(len(strings), dtype=np.int64)
    stated = timeline.stated_ops
    of_name[used] = [table.add(stated[i].op_type if i in stated else short_op_name(strings[i])) for i in used.tolist()]
    names = timeline.host.name.copy()
    linked = roles.forward_call >= 0
    names[linked] = names[roles.forward_call[linked]]
    names = np.where(lent_names >= 0, lent_names, names)
    return of_name[names]


def _short_names(timeline: Timeline) -> Ints:
    """String index by name index: module ranges lose their prefix, because the module column has the path."""
    result = np.arange(len(timeline.strings), dtype=np.int64)
    ranges = [i for i, text in enumerate(timeline.strings) if text.startswith(MODULE_PREFIX)]
    result[ranges] = 0
    return result


def _continuations(roles: Roles) -> Bools:
    """Marks all backward nodes of one forward op but the first."""
    result = np.zeros(len(roles.kind), dtype=np.bool_)
    rows = np.flatnonzero((roles.forward_call >= 0) & (roles.role == Role.BACKWARD))
    result[rows] = True
    result[rows[first_rows(roles.forward_call[rows])]] = False
    return result
