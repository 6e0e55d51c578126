"""The Kernels page: every kernel, copy and set that the selected iterations launched."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.views.common import Coverage, RunRef, SelectedRange, Slice, Verdict


class KernelOp(msgspec.Struct, frozen=True):
    """An op that launched the kernel."""

    id: str
    name: str
    total_ns: int


class KernelRow(msgspec.Struct, frozen=True):
    """One kernel name; ``rule`` says what decided its Tensor Core verdict. Times in ns over the selected iterations."""

    id: str
    name: str
    short_name: str
    kind: str
    family: str
    tensor_core: Verdict
    precision: str
    rule: str
    calls: int
    total_ns: int
    average_ns: int
    min_ns: int
    max_ns: int
    percent: float | None
    occupancy_percent: float | None
    grid: str
    block: str
    registers_per_thread: int | None
    shared_memory_bytes: int | None
    bytes: int | None
    ops: list[KernelOp]


class KernelsPage(msgspec.Struct, frozen=True):
    """``rows`` by falling time; ``by_family`` sums them per kind of work."""

    ref: RunRef
    headline: str
    range: SelectedRange
    has_gpu: bool
    by_family: list[Slice]
    rows: list[KernelRow]
    total_rows: int
    coverage: Coverage
