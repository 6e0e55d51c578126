"""The Ops page: every op of the selected iterations, and one op with its shapes, kernels and iterations."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.views.common import Coverage, OpRow, RunRef, SelectedRange, Verdict


class OpsPage(msgspec.Struct, frozen=True):
    """``rows`` by falling GPU time (CPU time without a GPU); ``total_rows`` counts those before the row limit."""

    ref: RunRef
    headline: str
    range: SelectedRange
    has_gpu: bool
    rows: list[OpRow]
    total_rows: int
    coverage: Coverage


class OpShapes(msgspec.Struct, frozen=True):
    """The calls of an op with one set of input shapes and data types."""

    shapes: str
    dtypes: str
    calls: int
    cpu_total_ns: int
    gpu_ns: int | None


class OpKernel(msgspec.Struct, frozen=True):
    """A kernel that the op launched."""

    id: str
    name: str
    short_name: str
    family: str
    tensor_core: Verdict
    precision: str
    rule: str
    calls: int
    total_ns: int
    average_ns: int
    percent: float | None
    bytes: int | None


class OpIteration(msgspec.Struct, frozen=True):
    """What the op took in one iteration."""

    index: int
    number: int
    calls: int
    cpu_total_ns: int
    gpu_ns: int | None


class OpDetail(msgspec.Struct, frozen=True):
    """One selected op."""

    ref: RunRef
    range: SelectedRange
    row: OpRow
    eligibility_reason: str
    shapes: list[OpShapes]
    kernels: list[OpKernel]
    iterations: list[OpIteration]
