"""The Overview page: DLProf's dashboard."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.views.common import Coverage, NoteItem, OpRow, RunRef, SelectedRange, Slice


class PerformanceSummary(msgspec.Struct, frozen=True):
    """DLProf's performance summary over the selected iterations; percentages 0 to 100, None where unknown."""

    wall_clock_ns: int
    gpu_utilization_percent: float | None
    tensor_core_kernel_utilization_percent: float | None
    gpu_busy_ns: int | None
    total_iterations: int
    aggregated_iterations: int
    start_iteration: int
    stop_iteration: int
    average_iteration_ns: int
    iteration_deviation_ns: int | None
    samples_per_second: float | None
    peak_memory_bytes: int | None
    memory_bytes: int | None


class IterationBar(msgspec.Struct, frozen=True):
    """One bar: ``category_ns`` in the order of `Overview.categories`, None for a category that was not recorded."""

    index: int
    number: int
    start_ns: int
    duration_ns: int
    category_ns: list[int | None]
    selected: bool


class Category(msgspec.Struct, frozen=True):
    """A time category, its label and one sentence that defines it."""

    key: str
    label: str
    definition: str
    recorded: bool


class SystemItem(msgspec.Struct, frozen=True):
    """One line of the system configuration; ``value`` is None for what was not recorded."""

    group: str
    label: str
    value: str | None


class FindingLine(msgspec.Struct, frozen=True):
    """A finding in one line; the Advice page has the rest."""

    id: str
    rule: str
    severity: str
    title: str
    saving_ns: int | None
    saving_percent: float | None


class Overview(msgspec.Struct, frozen=True):
    """Everything on the Overview page. ``headline`` answers "where did the time go?" in one sentence."""

    ref: RunRef
    title: str
    headline: str
    range: SelectedRange
    has_gpu: bool
    summary: PerformanceSummary
    categories: list[Category]
    gpu_utilization: list[Slice]
    resource_usage: list[Slice]
    kernel_time: list[Slice]
    tensor_core_efficiency: list[Slice]
    iterations: list[IterationBar]
    top_ops: list[OpRow]
    system: list[SystemItem]
    findings: list[FindingLine]
    coverage: Coverage
    notes: list[NoteItem]
