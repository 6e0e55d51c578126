"""The Compare page: two runs side by side."""

from __future__ import annotations

from typing import Literal

import msgspec

from tb_dlprof_plugin.views.common import Direction, RunRef, SelectedRange, Slice, Verdict


class CompareSide(msgspec.Struct, frozen=True):
    """One of the two runs."""

    ref: RunRef
    title: str
    precision: str
    model: str
    device: str
    range: SelectedRange


class CompareMetric(msgspec.Struct, frozen=True):
    """One measure of both runs; ``ratio`` is a / b for times (above 1: b is faster), None where either is unknown."""

    key: str
    label: str
    unit: Literal["ns", "percent", "count", "bytes", "per_second"]
    a: float | None
    b: float | None
    ratio: float | None
    better: Literal["lower", "higher", ""]


class CompareOp(msgspec.Struct, frozen=True):
    """One op of both runs, times per iteration. An op that only one run has carries None on the other side.

    ``basis`` is the time that ``difference_ns`` (b - a) and ``speedup`` (a / b) are of: GPU time where both runs have
    a GPU, else CPU time.
    """

    name: str
    module: str
    op_type: str
    direction: Direction
    a_id: str | None
    b_id: str | None
    a_ns: int | None
    b_ns: int | None
    difference_ns: int | None
    speedup: float | None
    a_precision: str
    b_precision: str
    a_using_tc: Verdict
    b_using_tc: Verdict
    a_kernels: int | None
    b_kernels: int | None


class CompareKernelFamily(msgspec.Struct, frozen=True):
    """Kernel time per iteration of one family of kernels."""

    family: str
    a_ns: int
    b_ns: int
    a_calls: float
    b_calls: float
    a_tensor_core_ns: int
    b_tensor_core_ns: int


class ComparePage(msgspec.Struct, frozen=True):
    """``a`` is the base, ``b`` the candidate; everything is per iteration, so that ranges of other lengths compare."""

    a: CompareSide
    b: CompareSide
    headline: str
    basis: Literal["gpu", "cpu"]
    speedup: float | None
    metrics: list[CompareMetric]
    a_categories: list[Slice]
    b_categories: list[Slice]
    families: list[CompareKernelFamily]
    ops: list[CompareOp]
    total_rows: int
    matched_percent: float | None
    warnings: list[str]
