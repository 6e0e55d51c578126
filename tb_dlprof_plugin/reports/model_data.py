"""DLProf's dump of the "raw, correlated model data": every call of every op, with its launches.

For programs, not for a page. Lists of calls and launches are columns; a number named after another list is a position
in it, -1 for none.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from tb_dlprof_plugin.model.direction import DLPROF_DIRECTIONS, direction_of
from tb_dlprof_plugin.model.formatting import dtypes_text, shapes_text
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.pages.common import ROLES, VERDICTS, KernelText, Role, Verdict
from tb_dlprof_plugin.profile_view import ProfileView, op_name
from tb_dlprof_plugin.store.run_ref import RunRef


class ModelOp(msgspec.Struct, frozen=True):
    """One op of the model, with one set of input shapes; ``inner`` ops run inside another one."""

    name: str
    module: str
    op_type: str
    direction: str
    role: Role
    inner: bool
    shapes: str
    dtypes: str
    tc_eligible: Verdict


class ModelKernel(msgspec.Struct, frozen=True):
    """One kernel, copy or set."""

    name: str
    kind: str
    uses_tc: Verdict
    precision: str


class ModelIteration(msgspec.Struct, frozen=True):
    """One iteration, on the clock of all calls and launches (ns)."""

    number: int
    start_ns: int
    stop_ns: int


class ModelCalls(msgspec.Struct, frozen=True):
    """Calls of ops in order of thread and start; ``parent`` is the position of the op call around it."""

    op: list[int]
    parent: list[int]
    iteration: list[int]
    thread: list[int]
    start_ns: list[int]
    duration_ns: list[int]


class ModelLaunches(msgspec.Struct, frozen=True):
    """What ran on the GPU in order of start; ``call`` is the position of the innermost op call that launched it."""

    kernel: list[int]
    call: list[int]
    iteration: list[int]
    device: list[int]
    stream: list[int]
    start_ns: list[int]
    duration_ns: list[int]


class ModelData(msgspec.Struct, frozen=True):
    """All of one profile."""

    ref: RunRef
    base_time_unix_ns: int
    facts: dict[str, Any]
    iterations: list[ModelIteration]
    ops: list[ModelOp]
    kernels: list[ModelKernel]
    calls: ModelCalls
    launches: ModelLaunches


def model_data(view: ProfileView, ref: RunRef) -> ModelData:
    """The dump of a profile."""
    profile = view.profile
    calls, launches, iterations = profile.calls, profile.launches, profile.iterations
    is_op = (profile.ops.kind == CallKind.OP)[calls.op]
    rows = np.flatnonzero(is_op)
    # One more for -1, "none", which picks the last.
    position = np.full(len(calls) + 1, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    innermost = np.append(nearest(is_op, view.call_parent), -1)
    around = innermost[view.call_parent]
    launcher = innermost[launches.call]
    op_rows = np.unique(calls.op[rows])
    op_position = np.full(len(profile.ops), -1, dtype=np.int64)
    op_position[op_rows] = np.arange(len(op_rows))
    return ModelData(
        ref=ref,
        base_time_unix_ns=profile.base_time_unix_ns,
        facts=msgspec.to_builtins(profile.facts),
        iterations=[
            ModelIteration(*row)
            for row in zip(
                iterations.number.tolist(), iterations.start_ns.tolist(), iterations.stop_ns.tolist(), strict=True
            )
        ],
        ops=[_op(view, row) for row in op_rows.tolist()],
        kernels=[_kernel(view, row) for row in range(len(profile.kernels))],
        calls=ModelCalls(
            op=op_position[calls.op[rows]].tolist(),
            parent=position[around[rows]].tolist(),
            iteration=view.call_iteration[rows].tolist(),
            thread=calls.thread[rows].tolist(),
            start_ns=calls.start_ns[rows].tolist(),
            duration_ns=calls.duration_ns[rows].tolist(),
        ),
        launches=ModelLaunches(
            kernel=launches.kernel.tolist(),
            call=position[launcher].tolist(),
            iteration=view.launch_iteration.tolist(),
            device=launches.device.tolist(),
            stream=launches.stream.tolist(),
            start_ns=launches.start_ns.tolist(),
            duration_ns=launches.duration_ns.tolist(),
        ),
    )


def _op(view: ProfileView, row: int) -> ModelOp:
    ops, strings = view.profile.ops, view.profile.strings
    module, op_type, role = strings[ops.module[row]], strings[ops.op_type[row]], int(ops.role[row])
    return ModelOp(
        name=op_name(module, op_type),
        module=module,
        op_type=op_type,
        direction=DLPROF_DIRECTIONS[direction_of(role)],
        role=ROLES[role],
        inner=not bool(ops.top[row]),
        shapes=shapes_text(view.profile.shapes_of(row)),
        dtypes=dtypes_text(view.profile.dtypes_of(row)),
        tc_eligible=VERDICTS[int(ops.tensor_core_eligible[row])],
    )


def _kernel(view: ProfileView, row: int) -> ModelKernel:
    text = KernelText(view, row)
    return struct_from(ModelKernel, text, uses_tc=text.tensor_core)
