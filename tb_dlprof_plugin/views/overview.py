"""The Overview page: DLProf's dashboard."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.frame import Frame, Selection
from tb_dlprof_plugin.measures.iterations import StepTotals, category_sums, percent, step_totals
from tb_dlprof_plugin.measures.kernels import time_split
from tb_dlprof_plugin.measures.ops import op_totals
from tb_dlprof_plugin.measures.parts import step_parts
from tb_dlprof_plugin.measures.tensor_cores import TensorCoreTotals, tensor_core_totals
from tb_dlprof_plugin.storage.model import Role
from tb_dlprof_plugin.views.bars import IterationBar, bar_spans, bars_note, iteration_bar
from tb_dlprof_plugin.views.common import (
    Coverage,
    NoteItem,
    OpRow,
    RunRef,
    SelectedRange,
    Slice,
    coverage_of,
    run_title,
    selected_range,
)
from tb_dlprof_plugin.views.gpus import GpuUse, gpus
from tb_dlprof_plugin.views.ops import op_rows
from tb_dlprof_plugin.views.precision import (
    NumericHealthPanel,
    PrecisionSummary,
    numeric_health_panel,
    precision_summary,
)
from tb_dlprof_plugin.views.system import SystemItem, system_items
from tb_dlprof_plugin.views.text import duration, share
from tb_dlprof_plugin.views.trust import TrustVerdict, trust_verdict


class PerformanceSummary(msgspec.Struct, frozen=True):
    """DLProf's performance summary over the selected iterations; percentages 0 to 100, None where unknown.

    ``tensor_core_time_percent`` is of the time of all kernels, copies and sets.
    """

    wall_clock_ns: int
    gpu_utilization_percent: float | None
    tensor_core_kernel_utilization_percent: float | None
    tensor_core_time_percent: float | None
    gpu_busy_ns: int | None
    total_iterations: int
    aggregated_iterations: int
    start_iteration: int
    stop_iteration: int
    average_iteration_ns: int
    iteration_deviation_ns: int | None
    unprofiled_step_ns: int | None
    unprofiled_steps: int | None
    samples_per_second: float | None
    peak_memory_bytes: int | None
    memory_bytes: int | None


class Category(msgspec.Struct, frozen=True):
    """A time category, its label and one sentence that defines it."""

    key: str
    label: str
    definition: str
    recorded: bool


class FindingLine(msgspec.Struct, frozen=True):
    """A finding in one line; the Advice page has the rest."""

    id: str
    rule: str
    severity: str
    title: str
    saving_ns: int | None
    saving_percent: float | None


class Overview(msgspec.Struct, frozen=True):
    """Everything on the Overview page. ``headline`` answers "where did the time go?" in one sentence.

    ``bars_note`` says what a bar of ``iterations`` stands for, empty where it is one iteration.
    """

    ref: RunRef
    title: str
    headline: str
    trust: TrustVerdict
    range: SelectedRange
    has_gpu: bool
    precision: PrecisionSummary
    numeric_health: NumericHealthPanel | None
    summary: PerformanceSummary
    categories: list[Category]
    gpu_utilization: list[Slice]
    gpus: list[GpuUse]
    resource_usage: list[Slice]
    parts: list[Slice]
    kernel_time: list[Slice]
    tensor_core_efficiency: list[Slice]
    iterations: list[IterationBar]
    bars_note: str
    top_ops: list[OpRow]
    system: list[SystemItem]
    findings: list[FindingLine]
    coverage: Coverage
    notes: list[NoteItem]


_TOP_OPS = 10
_PARTS = {
    Role.FORWARD: "Forward",
    Role.BACKWARD: "Backward",
    Role.OPTIMIZER: "Optimizer",
    Role.DATALOADER: "Data loading",
    Role.OTHER: "Other",
}
CATEGORIES: dict[str, tuple[str, str]] = {
    "tensor_core": ("Tensor Cores", "A Tensor Core kernel runs on the GPU."),
    "other_kernels": ("Other kernels", "Another kernel runs and no Tensor Core kernel does."),
    "memory": ("Memory", "A copy or set runs on the GPU and no kernel does."),
    "dataloader": ("Dataloader", "The GPU is idle and the training thread waits in the DataLoader."),
    "io": ("I/O", "The CPU reads or writes files and none of the above applies. PyTorch traces do not record it."),
    "cpu": ("CPU", "An op or CUDA call runs on the CPU and none of the above applies."),
    "other": ("Other", "None of the above: Python between ops, or waiting outside PyTorch."),
}


def overview(frame: Frame, ref: RunRef, selection: Selection) -> Overview:
    """The Overview page over the selected iterations."""
    profile = frame.profile
    steps = step_totals(frame, selection)
    totals = op_totals(frame, selection)
    tensor_cores = tensor_core_totals(totals)
    has_gpu = profile.has_gpu
    return Overview(
        ref=ref,
        title=run_title(frame),
        headline=_headline(frame, selection, steps),
        trust=trust_verdict(frame, selection),
        range=selected_range(frame, selection),
        has_gpu=has_gpu,
        precision=precision_summary(frame, ref.run),
        numeric_health=numeric_health_panel(frame, selection),
        summary=_summary(frame, selection, steps, tensor_cores),
        categories=_categories(frame),
        gpu_utilization=_utilization(steps),
        gpus=gpus(frame, selection),
        resource_usage=_resource_usage(frame, selection, steps),
        parts=_parts(frame, selection, steps.wall_ns),
        kernel_time=_kernel_time(frame, selection) if has_gpu else [],
        tensor_core_efficiency=_efficiency(tensor_cores) if has_gpu else [],
        iterations=_bars(frame, selection),
        bars_note=bars_note(len(frame.profile.iterations)),
        top_ops=op_rows(frame, selection)[:_TOP_OPS],
        system=system_items(frame),
        findings=[
            FindingLine(
                f.id,
                f.rule,
                f.severity,
                f.title,
                f.saving.expected_ns if f.saving else None,
                f.saving.percent if f.saving else None,
            )
            for f in advise(frame, selection).findings
        ],
        coverage=coverage_of(frame),
        notes=[NoteItem(n.code, n.text, n.count) for n in profile.notes],
    )


def _summary(
    frame: Frame, selection: Selection, steps: StepTotals, tensor_cores: TensorCoreTotals
) -> PerformanceSummary:
    profile = frame.profile
    numbers = profile.iterations.number
    facts = profile.facts
    gpu = next((g for g in profile.system.gpus if g.id in profile.iterations.gpu_ids), None)
    return PerformanceSummary(
        wall_clock_ns=steps.wall_ns,
        gpu_utilization_percent=steps.gpu_utilization,
        tensor_core_kernel_utilization_percent=tensor_cores.utilization if profile.has_gpu else None,
        tensor_core_time_percent=time_split(frame, selection).tensor_core_percent,
        gpu_busy_ns=steps.gpu_busy_ns,
        total_iterations=len(profile.iterations),
        aggregated_iterations=selection.count,
        start_iteration=int(numbers[selection.first]),
        stop_iteration=int(numbers[selection.last]),
        average_iteration_ns=steps.average_ns,
        iteration_deviation_ns=steps.deviation_ns,
        unprofiled_step_ns=facts.unprofiled_step_ns,
        unprofiled_steps=facts.unprofiled_steps,
        samples_per_second=facts.batch_size * 1e9 / steps.average_ns if facts.batch_size and steps.average_ns else None,
        peak_memory_bytes=facts.peak_memory_allocated_bytes,
        memory_bytes=gpu.memory_bytes if gpu else None,
    )


def _resource_usage(frame: Frame, selection: Selection, steps: StepTotals) -> list[Slice]:
    """The step by category; the two of kernels together where it is not known which of them use Tensor Cores."""
    times = dict(steps.category_ns)
    labels = {name: label for name, (label, _) in CATEGORIES.items()}
    if not time_split(frame, selection).tensor_cores_known:
        times["other_kernels"] = (times["other_kernels"] or 0) + (times["tensor_core"] or 0)
        times["tensor_core"] = None
        labels["other_kernels"] = "Kernels, on Tensor Cores or not"
    return [Slice(name, labels[name], value, percent(value, steps.wall_ns)) for name, value in times.items()]


def _parts(frame: Frame, selection: Selection, wall_ns: int) -> list[Slice]:
    parts = step_parts(frame, selection)
    labels = dict(_PARTS)
    if parts[Role.FORWARD] is None:
        labels[Role.OTHER] = "Forward and other"
    return [Slice(part.name.lower(), labels[part], value, percent(value, wall_ns)) for part, value in parts.items()]


def _categories(frame: Frame) -> list[Category]:
    known = category_sums(frame, slice(None))
    return [
        Category(name, label, definition, known[name] is not None) for name, (label, definition) in CATEGORIES.items()
    ]


def _utilization(steps: StepTotals) -> list[Slice]:
    if steps.gpu_busy_ns is None:
        return []
    idle = steps.wall_ns - steps.gpu_busy_ns
    return [
        Slice("using", "Using", steps.gpu_busy_ns, steps.gpu_utilization),
        Slice("idle", "Idle", idle, percent(idle, steps.wall_ns)),
    ]


def _kernel_time(frame: Frame, selection: Selection) -> list[Slice]:
    split = time_split(frame, selection)
    whole = split.kernel_ns + split.memory_ns
    parts = [
        ("tensor_core", "Tensor Core kernels", split.tensor_core_ns),
        ("other_kernels", "Other kernels", split.other_ns),
        ("memory", "Memory", split.memory_ns),
    ]
    if split.unknown_ns:
        parts.append(("unknown", "Unknown kernels", split.unknown_ns))
    return [Slice(key, label, value, percent(value, whole)) for key, label, value in parts]


def _efficiency(totals: TensorCoreTotals) -> list[Slice]:
    parts = [
        ("using", "Using Tensor Cores", totals.using_ns),
        ("not_using", "Eligible, not using", totals.not_using_ns),
    ]
    if totals.unknown_ns:
        parts.append(("unknown", "Eligible, unknown", totals.unknown_ns))
    return [Slice(key, label, value, percent(value, totals.eligible_ns)) for key, label, value in parts]


def _bars(frame: Frame, selection: Selection) -> list[IterationBar]:
    return [
        iteration_bar(frame, selection, (first, last), list(category_sums(frame, slice(first, last + 1)).values()))
        for first, last in bar_spans(len(frame.profile.iterations))
    ]


def _headline(frame: Frame, selection: Selection, steps: StepTotals) -> str:
    average = duration(steps.average_ns)
    known = {name: value for name, value in steps.category_ns.items() if value is not None}
    if not frame.profile.has_gpu:
        first = max(known, key=lambda name: known[name])
        part = share(percent(known[first], steps.wall_ns))
        return f"Each step takes {average} on the CPU; the largest part is {CATEGORIES[first][0]}, {part}."
    told = time_split(frame, selection).tensor_cores_known
    tensor = share(percent(known.get("tensor_core"), steps.wall_ns) if told else None)
    works = f"works {share(steps.gpu_utilization)}"
    waits = {name: known[name] for name in _WAITS if name in known}
    first = max(waits, key=lambda name: waits[name])
    waiting = percent(waits[first], steps.wall_ns) or 0.0
    if waiting > (steps.gpu_utilization or 0.0):
        return (
            f"The GPU waits for {_WAITS[first]} {share(waiting)} of each {average} step; it {works}, {tensor} on "
            "Tensor Cores."
        )
    text = f"The GPU {works} of each {average} step, {tensor} on Tensor Cores"
    return f"{text}, and waits for {_WAITS[first]} {share(waiting)}." if waiting >= 1 else f"{text}."


_WAITS = {"dataloader": "data", "cpu": "the CPU", "other": "Python"}
