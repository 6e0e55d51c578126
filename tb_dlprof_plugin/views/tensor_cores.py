"""The Tensor Cores page: which eligible ops use them, at which precision, and which do not and why."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.views.common import Direction, RunRef, SelectedRange, Slice, Verdict


class TensorCoreOp(msgspec.Struct, frozen=True):
    """A Tensor Core eligible op: ``tc_ns + non_tc_ns + unknown_ns == gpu_ns``; ``reason`` says why it does not use them."""

    id: str
    name: str
    module: str
    op_type: str
    direction: Direction
    using_tc: Verdict
    precision: str
    calls: int
    gpu_ns: int
    tc_ns: int
    non_tc_ns: int
    unknown_ns: int
    utilization_percent: float | None
    tc_kernels: list[str]
    non_tc_kernels: list[str]
    dtypes: str
    shapes: str
    reason: str


class TensorCoresPage(msgspec.Struct, frozen=True):
    """``by_precision`` splits the kernel time of eligible ops; ``ops`` by falling time off the Tensor Cores."""

    ref: RunRef
    headline: str
    range: SelectedRange
    has_gpu: bool
    supported_precisions: list[str]
    utilization_percent: float | None
    eligible_ns: int | None
    using_ns: int | None
    not_using_ns: int | None
    unknown_ns: int | None
    by_precision: list[Slice]
    ops: list[TensorCoreOp]
    total_rows: int
