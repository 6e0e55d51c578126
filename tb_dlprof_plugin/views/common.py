"""Structs that several pages share."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["yes", "no", "unknown"]
Direction = Literal["fprop", "bprop", ""]
Role = Literal["forward", "backward", "optimizer", "dataloader", "other"]
CategoryKey = Literal["tensor_core", "other_kernels", "memory", "dataloader", "io", "cpu", "other"]


class Slice(msgspec.Struct, frozen=True):
    """One part of a donut or stacked bar; ``value_ns`` and ``percent`` are None where the source cannot tell."""

    key: str
    label: str
    value_ns: int | None
    percent: float | None


class SelectedRange(msgspec.Struct, frozen=True):
    """The iterations that were aggregated: indices ``first`` to ``last``, both inclusive, of ``total``."""

    first: int
    last: int
    total: int


class RunRef(msgspec.Struct, frozen=True):
    """What names one profile: the TensorBoard run, the training process in it, its rank and the profiling cycle."""

    run: str
    session: str
    rank: int
    cycle: int


class NoteItem(msgspec.Struct, frozen=True):
    """Something that was repaired, lost or is not in the source; ``count`` is None where it cannot be counted."""

    code: str
    text: str
    count: int | None


class Coverage(msgspec.Struct, frozen=True):
    """How much of the kernel, copy and set time on the GPU the op tables explain (ns, over the whole recording).

    ``linked + orphan + unattributed == total``; ``outside`` is the part of ``linked`` launched outside every
    iteration. Orphans were launched before the recording began and belong to no op.
    """

    total_ns: int
    linked_ns: int
    orphan_ns: int
    unattributed_ns: int
    outside_ns: int
    linked_percent: float | None


class OpRow(msgspec.Struct, frozen=True):
    """One op of the model: all calls with the same module, type and direction in the selected iterations."""

    id: str
    name: str
    module: str
    op_type: str
    direction: Direction
    role: Role
    calls: int
    cpu_total_ns: int
    cpu_self_ns: int
    gpu_ns: int | None
    gpu_percent: float | None
    kernel_calls: int
    tc_eligible: Verdict
    using_tc: Verdict
    precision: str
    shapes: str
    dtypes: str
