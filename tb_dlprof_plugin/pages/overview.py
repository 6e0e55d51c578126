"""The Summary page: where the time of a step goes and what would save most of it, and DLProf's dashboard."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tb_dlprof_plugin.metrics.energy import step_energy
from tb_dlprof_plugin.metrics.iterations import (
    StepTotals,
    category_sums,
    percent,
    step_totals,
)
from tb_dlprof_plugin.metrics.kernels import time_split
from tb_dlprof_plugin.metrics.memory import peak_allocated
from tb_dlprof_plugin.metrics.outlier_steps import steady
from tb_dlprof_plugin.metrics.step_account import iterations_with_recorder
from tb_dlprof_plugin.metrics.step_phases import step_parts
from tb_dlprof_plugin.metrics.tensor_cores import TensorCoreTotals, tensor_core_totals
from tb_dlprof_plugin.model.grouping import distinct
from tb_dlprof_plugin.pages.columns import Definition
from tb_dlprof_plugin.pages.common import (
    Coverage,
    NoteItem,
    OpRow,
    PossibleShare,
    SelectedRange,
    Slice,
    StepFigures,
    coverage_of,
    note_items,
    possible_share,
    run_title,
    selected_range,
    step_figures,
)
from tb_dlprof_plugin.pages.gpus import GpuUse, gpus
from tb_dlprof_plugin.pages.iteration_bins import IterationBar, bar_spans, bars_note, iteration_bar
from tb_dlprof_plugin.pages.layers import Layer, top_layers
from tb_dlprof_plugin.pages.ops import op_rows
from tb_dlprof_plugin.pages.precision import (
    NumericHealthPanel,
    PrecisionSummary,
    numeric_health_panel,
    precision_summary,
)
from tb_dlprof_plugin.pages.quantities import (
    DEVIATION,
    GPU_BUSY,
    GPU_MEMORY,
    JOULES,
    PEAK_ALLOCATED,
    RECORDED_STEP,
    SAMPLES,
    STEP,
    TENSOR_CORE_SHARE,
    TENSOR_CORE_UTILIZATION,
    WATTS,
)
from tb_dlprof_plugin.pages.sentences import step_words
from tb_dlprof_plugin.pages.shared_definitions import SLICES
from tb_dlprof_plugin.pages.step_account import account_slices, headline, kernels_label, part_labels
from tb_dlprof_plugin.pages.system import SystemItem, system_items
from tb_dlprof_plugin.pages.trust import TrustVerdict, trust_verdict
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import StepSource
from tb_dlprof_plugin.store.run_ref import RunRef


class PerformanceSummary(msgspec.Struct, frozen=True):
    """DLProf's performance summary over the selected iterations; percentages 0 to 100, None where unknown.

    ``tensor_core_time_percent`` is of the time of all kernels, copies and sets. Times and percentages are those of
    steps without the profiler, ``wall_clock_ns`` of as many as were selected; ``step_low_ns`` and ``step_high_ns`` are
    the ends of the interval of ``average_iteration_ns``. The recorded steps took ``recorded_iteration_ns`` on average,
    with ``iteration_deviation_ns`` among them; ``recorder_ns`` is the recorder's overhead over all of them.
    ``tensor_core_eligible_ns`` is the kernel time of eligible ops, of which the Tensor Core utilization is a share.
    ``threads`` is the number of CPU threads with recorded calls.
    """

    wall_clock_ns: Annotated[
        int,
        Definition("wallClock", "Time of as many steps without the profiler as iterations are selected."),
    ]
    gpu_utilization_percent: Annotated[float | None, GPU_BUSY]
    tensor_core_kernel_utilization_percent: Annotated[float | None, TENSOR_CORE_UTILIZATION]
    tensor_core_kernel_utilization_possible: PossibleShare | None
    tensor_core_eligible_ns: int | None
    tensor_core_time_percent: Annotated[float | None, TENSOR_CORE_SHARE]
    gpu_busy_ns: int | None
    total_iterations: Annotated[int, Definition("totalIterations", "Iterations in the recording.")]
    aggregated_iterations: Annotated[
        int,
        Definition("aggregatedIterations", "Iterations that the numbers on this page add up."),
    ]
    start_iteration: Annotated[int, Definition("startIteration", "Number of the first selected iteration.")]
    stop_iteration: Annotated[int, Definition("stopIteration", "Number of the last selected iteration.")]
    average_iteration_ns: Annotated[int, STEP]
    step_low_ns: int
    step_high_ns: int
    step_source: StepSource
    recorded_iteration_ns: Annotated[int, RECORDED_STEP]
    recorded_wall_clock_ns: int
    recorder_ns: Annotated[
        int,
        Definition(
            "recorder",
            "What the profiler added to the recorded steps: their time less that of as many steps without it. It "
            "is not part of the step or of any share.",
        ),
    ]
    iteration_deviation_ns: Annotated[int | None, DEVIATION]
    samples_per_second: Annotated[float | None, SAMPLES]
    threads: int
    peak_memory_bytes: Annotated[int | None, PEAK_ALLOCATED]
    memory_bytes: Annotated[int | None, GPU_MEMORY]
    joules_per_step: Annotated[float | None, JOULES]
    watts: Annotated[float | None, WATTS]


class Category(msgspec.Struct, frozen=True):
    """A time category, its label and one sentence that defines it."""

    key: str
    label: str
    definition: str
    recorded: bool


class Overview(msgspec.Struct, frozen=True):
    """Everything on the Summary page. ``headline`` answers "where did the time go?" in one sentence.

    ``account`` is one step without the profiler by what it consists of: its times sum to the step, and are those of the
    waterfall on the Compare page. ``layers`` are the five that take most of it. What to change is on the Advice page,
    whose forecasts take longer than all of this.

    ``step_words`` gives the source of the step's length. Shares are of steps without the profiler; ``iterations`` are
    as recorded, by ``buckets``: those of ``account``, and what the recorder added. ``categories`` are DLProf's, with
    their times in ``resource_usage``. ``bars_note`` says what a bar represents, empty if it is one iteration.
    """

    ref: RunRef
    title: str
    headline: str
    account: list[Slice]
    layers: list[Layer]
    trust: TrustVerdict
    step: StepFigures
    step_words: str
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
    buckets: list[Category]
    iterations: list[IterationBar]
    bars_note: str
    top_ops: list[OpRow]
    system: list[SystemItem]
    coverage: Coverage
    notes: list[NoteItem]


_TOP_OPS = 10
CATEGORIES: dict[str, tuple[str, str]] = {
    "tensor_core": ("Tensor Cores", "A Tensor Core kernel runs on the GPU."),
    "other_kernels": ("Other kernels", "Another kernel runs and no Tensor Core kernel does."),
    "memory": ("Memory", "A copy or set runs on the GPU and no kernel does."),
    "dataloader": ("Dataloader", "The GPU is idle and the training thread waits for a batch (DataLoader, tf.data)."),
    "io": ("I/O", "The CPU reads or writes files and none of the above applies. Recordings do not show it."),
    "cpu": ("CPU", "An op or CUDA call runs on the CPU and none of the above applies."),
    "other": ("Other", "None of the above: Python between ops, or waiting outside the framework."),
}
RECORDER = Category(
    "recorder", "Recorder", "Time that the profiler added to the recorded step; not part of the step without it.", True
)


def overview(view: ProfileView, ref: RunRef, selection: Selection) -> Overview:
    """The Overview page over the selected iterations, without any that are unlike the others (`steady`)."""
    profile, selected = view.profile, selection
    selection = steady(view, selected)
    steps = step_totals(view, selection)
    tensor_cores = tensor_core_totals(view, selection)
    has_gpu = profile.has_gpu
    account = account_slices(view, selection)
    buckets = _buckets(account, steps)
    return Overview(
        ref=ref,
        title=run_title(view),
        headline=headline(view, selection),
        account=account,
        layers=top_layers(view, selection),
        trust=trust_verdict(view, selected),
        step=step_figures(steps.estimate),
        step_words=step_words(steps.estimate),
        range=selected_range(view, selected),
        has_gpu=has_gpu,
        precision=precision_summary(view, ref.run),
        numeric_health=numeric_health_panel(view, selection),
        summary=_summary(view, selection, steps, tensor_cores),
        categories=_categories(view),
        gpu_utilization=_utilization(steps),
        gpus=gpus(view, selection),
        resource_usage=_resource_usage(view, selection, steps),
        parts=_parts(view, selection, steps.wall_ns),
        kernel_time=_kernel_time(view, selection) if has_gpu else [],
        tensor_core_efficiency=_efficiency(tensor_cores) if has_gpu and not profile.of_amd else [],
        buckets=buckets,
        iterations=_bars(view, selection, buckets),
        bars_note=bars_note(len(view.profile.iterations)),
        top_ops=op_rows(view, selection)[:_TOP_OPS],
        system=system_items(view),
        coverage=coverage_of(view),
        notes=note_items(view),
    )


def _summary(
    view: ProfileView, selection: Selection, steps: StepTotals, tensor_cores: TensorCoreTotals
) -> PerformanceSummary:
    profile = view.profile
    numbers = profile.iterations.number
    facts = profile.facts
    energy = step_energy(view, selection)
    return PerformanceSummary(
        wall_clock_ns=steps.wall_ns,
        gpu_utilization_percent=steps.gpu_utilization,
        tensor_core_kernel_utilization_percent=tensor_cores.utilization,
        tensor_core_kernel_utilization_possible=possible_share(tensor_cores.possible),
        tensor_core_eligible_ns=tensor_cores.eligible_ns if profile.has_gpu else None,
        tensor_core_time_percent=time_split(view, selection).tensor_core_percent,
        gpu_busy_ns=steps.gpu_busy_ns,
        total_iterations=len(profile.iterations),
        aggregated_iterations=selection.count,
        start_iteration=int(numbers[selection.first]),
        stop_iteration=int(numbers[selection.last]),
        average_iteration_ns=steps.average_ns,
        step_low_ns=round(steps.estimate.low_ns),
        step_high_ns=round(steps.estimate.high_ns),
        step_source=steps.estimate.source,
        recorded_iteration_ns=steps.recorded_ns,
        recorded_wall_clock_ns=steps.recorded_wall_ns,
        recorder_ns=steps.recorder_ns,
        iteration_deviation_ns=steps.deviation_ns,
        samples_per_second=steps.samples_per_second(facts.batch_size),
        threads=len(distinct(profile.calls.thread)),
        peak_memory_bytes=peak_allocated(view, selection)[0],
        memory_bytes=view.gpu.memory_bytes if view.gpu else None,
        joules_per_step=energy.joules if energy else None,
        watts=energy.watts if energy else None,
    )


def _resource_usage(view: ProfileView, selection: Selection, steps: StepTotals) -> list[Slice]:
    """The step by category; the two of kernels combined if it is unknown which of them use Tensor Cores."""
    times = dict(steps.category_ns)
    labels = {name: label for name, (label, _) in CATEGORIES.items()}
    if not time_split(view, selection).tensor_cores_known:
        times["other_kernels"] = (times["other_kernels"] or 0) + (times["tensor_core"] or 0)
        times["tensor_core"] = None
        labels["other_kernels"] = kernels_label(view)
    return [Slice(name, labels[name], value, percent(value, steps.wall_ns)) for name, value in times.items()]


def _parts(view: ProfileView, selection: Selection, wall_ns: int) -> list[Slice]:
    parts = step_parts(view, selection)
    labels = part_labels(view, parts)
    return [Slice(part.name.lower(), labels[part], value, percent(value, wall_ns)) for part, value in parts.items()]


def _categories(view: ProfileView) -> list[Category]:
    times = category_sums(view, slice(None))
    return [
        Category(name, label, definition, times[name] is not None) for name, (label, definition) in CATEGORIES.items()
    ]


def _buckets(account: list[Slice], steps: StepTotals) -> list[Category]:
    """What a step consists of, and what the recorder added."""
    definitions = SLICES["account"]
    return [Category(part.key, part.label, definitions[part.key], part.value_ns is not None) for part in account] + (
        [RECORDER] if steps.recorder_ns else []
    )


def _utilization(steps: StepTotals) -> list[Slice]:
    if steps.gpu_busy_ns is None:
        return []
    return [
        Slice("using", "Using", steps.gpu_busy_ns, steps.gpu_utilization),
        Slice("idle", "Idle", steps.gpu_idle_ns, steps.gpu_idle_percent),
    ]


def _kernel_time(view: ProfileView, selection: Selection) -> list[Slice]:
    split = time_split(view, selection)
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


def _bars(view: ProfileView, selection: Selection, buckets: list[Category]) -> list[IterationBar]:
    times = iterations_with_recorder(view, selection)
    keys = [bucket.key for bucket in buckets]
    if not view.profile.has_gpu:
        rest = keys.index("other")
    else:
        rest = keys.index("idle")
        if not buckets[keys.index("tensor_core")].recorded:
            times[:, keys.index("other_compute")] += times[:, keys.index("tensor_core")]

    def bar(first: int, last: int) -> IterationBar:
        sums = times[first : last + 1].sum(axis=0).tolist()
        known = [value if bucket.recorded else None for value, bucket in zip(sums, buckets, strict=False)]
        return iteration_bar(view, selection, (first, last), known, takes_rounding=rest)

    return [bar(*span) for span in bar_spans(len(view.profile.iterations))]
