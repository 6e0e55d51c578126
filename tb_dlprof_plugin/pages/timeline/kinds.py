"""The kind (colour) and the label of each event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.profile import CallKind, Ints, KernelKind, Role, Verdict
from tb_dlprof_plugin.names.cuda_calls import COPIES, LAUNCHES_KERNELS, SETS
from tb_dlprof_plugin.names.ops import short_op_name
from tb_dlprof_plugin.pages.common import ROLES
from tb_dlprof_plugin.pages.idle_causes import IdleCause
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.call_names import launching_calls
from tb_dlprof_plugin.simulation.synchronisation import SyncKind, sync_kinds

EventKind = Literal[
    "forward", "backward", "optimizer", "dataloader", "other", "launch", "wait", "copy", "runtime", "module",
    "annotation", "overhead", "tensor_core", "other_kernels", "unknown_kernels", "memory", "idle_dataloader",
    "idle_cpu_launch", "idle_python", "idle_other",
]  # fmt: skip
"""Ops by their part of the step, other calls by what they do, GPU work as on every page, idle gaps by their
cause, as in the account of a step."""

KINDS: tuple[EventKind, ...] = get_args(EventKind)
NUMBER: dict[EventKind, int] = {kind: number for number, kind in enumerate(KINDS)}

LABEL_LENGTH = 90
"""Characters of a label: more than a wide screen shows of one event. The whole name is in the event's details."""

IDLE_KINDS: dict[IdleCause, EventKind] = {
    "dataloader": "idle_dataloader",
    "cpu_launch": "idle_cpu_launch",
    "python": "idle_python",
    "idle": "idle_other",
}


@dataclass(frozen=True, slots=True)
class Named:
    """Per event a row of ``labels`` and ``kinds``."""

    of: Ints
    labels: list[str]
    kinds: list[EventKind]


def named_calls(view: ProfileView, rows: Ints, kind: Ints) -> Named:
    """Labels and kinds of some rows of `Profile.calls`, which have these `call_kinds`."""
    return _distinct(view.profile.calls.op[rows], kind, lambda row: call_label(view, row))


def named_launches(view: ProfileView, rows: Ints) -> Named:
    """Labels and kinds of some rows of `Profile.launches`."""
    kernels, strings = view.profile.kernels, view.profile.strings
    kernel = view.profile.launches.kernel[rows]
    of_kernel = np.select(
        [
            kernels.kind != KernelKind.KERNEL,
            kernels.tensor_core == Verdict.YES,
            kernels.tensor_core == Verdict.NO,
        ],
        [NUMBER["memory"], NUMBER["tensor_core"], NUMBER["other_kernels"]],
        NUMBER["unknown_kernels"],
    )
    return _distinct(kernel, of_kernel[kernel], lambda row: cut(short_kernel_name(strings[kernels.name[row]])))


def call_label(view: ProfileView, op: int) -> str:
    """Label of a row of `Profile.ops`: a module's path, or the model's name."""
    ops, strings = view.profile.ops, view.profile.strings
    if ops.kind[op] == CallKind.MODULE:
        return cut(strings[ops.module[op]] or view.profile.facts.model or "model")
    # The namespaces would be all that fits into a narrow event.
    return cut(short_op_name(strings[ops.name[op]]))


def cut(text: str) -> str:
    """Names come from the traced program (untrusted, any length)."""
    return text if len(text) <= LABEL_LENGTH else text[: LABEL_LENGTH - 1] + "…"


def call_kinds(view: ProfileView) -> Ints:
    """Per row of `Profile.calls` the number of its kind."""
    calls, ops = view.profile.calls, view.profile.ops
    kind, role = ops.kind[calls.op], ops.role[calls.op]
    by_role = np.zeros(len(Role), dtype=np.int64)
    for part, name in ROLES.items():
        by_role[part] = NUMBER[name]
    runtime = kind == CallKind.RUNTIME
    launch = runtime & (launching_calls(view) | view.is_cuda_call(*LAUNCHES_KERNELS))
    copies = view.is_cuda_call(*COPIES, *SETS)
    waits = runtime & (sync_kinds(view, view.selection()) != SyncKind.NONE)
    plain_mark = (kind == CallKind.ANNOTATION) & (role == Role.OTHER)
    return np.select(
        [waits, copies, launch, runtime, kind == CallKind.MODULE, kind == CallKind.OVERHEAD, plain_mark],
        [NUMBER[name] for name in ("wait", "copy", "launch", "runtime", "module", "overhead", "annotation")],
        by_role[role],
    ).astype(np.int64)


def _distinct(thing: Ints, kind: Ints, label_of: Callable[[int], str]) -> Named:
    """Merges names with the same label and kind."""
    if not len(thing):
        return Named(thing, [], [])
    unique, of = np.unique(np.stack((thing, kind)), axis=1, return_inverse=True)
    places: dict[tuple[str, int], int] = {}
    again = [places.setdefault((label_of(row), number), len(places)) for row, number in unique.T.tolist()]
    return Named(
        of=np.array(again, dtype=np.int64)[of.reshape(-1)],
        labels=[label for label, _ in places],
        kinds=[KINDS[number] for _, number in places],
    )
