"""Structs that several pages share."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernels import coverage
from tb_dlprof_plugin.metrics.precision_mode import precision_mode
from tb_dlprof_plugin.model.direction import Direction
from tb_dlprof_plugin.model.profile import Role as Roles
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.simulation.estimate import StepEstimate
from tb_dlprof_plugin.store.header import header_of

Verdict = Literal["yes", "no", "unknown"]
Role = Literal["forward", "backward", "optimizer", "dataloader", "other"]
CategoryKey = Literal["tensor_core", "other_kernels", "memory", "dataloader", "io", "cpu", "other"]


class Slice(msgspec.Struct, frozen=True):
    """One part of a donut or stacked bar; ``value_ns`` and ``percent`` are None if unknown."""

    key: str
    label: Annotated[str, Column("Part", "What is part of the whole.")]
    value_ns: Annotated[int | None, Column("Time", "Its time in the selected iterations.", sums=True)]
    percent: Annotated[float | None, Column("Share", "Its share of the whole.")]


class SelectedRange(msgspec.Struct, frozen=True):
    """The iterations that were aggregated: indices ``first`` to ``last``, both inclusive, of ``total``.

    ``first_number`` and ``last_number`` are the same two as the training counts them, used as labels of bars.
    ``found_by`` names what delimits iterations: "profiler_step", "optimizer_step", "step_annotation", "program_run",
    "inference", "key_node", or "none" if the whole recording is one.
    """

    first: int
    last: int
    total: int
    first_number: int
    last_number: int
    found_by: str


class StepFigures(msgspec.Struct, frozen=True):
    """The step without the profiler (ms) with its 95 % interval.

    ``source`` is one of: "measured" (timed without the profiler), "light" (timed with GPU activities alone),
    "simulated" (estimated) or "recorded" (as recorded). ``recorded_ms`` is the mean recorded step.
    """

    ms: float
    low_ms: float
    high_ms: float
    source: str
    recorded_ms: float


class NoteItem(msgspec.Struct, frozen=True):
    """Something that was repaired, lost or is not in the source; ``count`` is None if unknown."""

    code: str
    text: str
    count: int | None


class Coverage(msgspec.Struct, frozen=True):
    """How much of the kernel, copy and set time on the GPU is attributed to ops (ns, over the whole recording).

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
    """One op of the model: all calls with the same module, type and direction in the selected iterations.

    CPU times are None where the recording has none of its calls: averages of TensorRT's layers, ops in command buffers.
    """

    id: str
    name: Annotated[str, Column("Op", "opName", width=270)]
    role: Annotated[Role, Column("Pass", "pass", "time tensor_cores cpu shapes", width=90)]
    gpu_ns: Annotated[int | None, Column("GPU time", "gpuTime", "time tensor_cores shapes", sums=True, gpu=True)]
    gpu_percent: Annotated[
        float | None,
        Column("GPU %", "Share of the GPU time of all ops in the selected iterations.", "time", bar=True, gpu=True),
    ]
    calls: Annotated[int, Column("Calls", "calls", "time cpu shapes", sums=True)]
    tc_eligible: Annotated[Verdict, Column("TC eligible", "tcEligible", "tensor_cores", gpu=True)]
    using_tc: Annotated[Verdict, Column("Using TC", "usingTc", "tensor_cores", gpu=True)]
    kernel_calls: Annotated[int, Column("Kernel calls", "kernelCalls", "time cpu", sums=True, gpu=True, terminal=False)]
    precision: Annotated[
        str, Column("Precision", "precision", "tensor_cores shapes", choice=True, absent=("tc_eligible", "no"))
    ]
    op_type: Annotated[str, Column("Op type", "opType", "time tensor_cores", choice=True, width=150, terminal=False)]
    cpu_total_ns: Annotated[int | None, Column("CPU total", "cpuTotal", "time cpu", sums=True)]
    cpu_self_ns: Annotated[int | None, Column("CPU self", "cpuSelf", "cpu", sums=True, terminal=False)]
    module: Annotated[str, Column("Module", "module", missing="–", width=200, terminal=False)]
    shapes: Annotated[str, Column("Shapes", "shapes", "shapes", width=220)]
    dtypes: Annotated[str, Column("Types", "dtypes", "shapes", width=140, terminal=False)]
    direction: Direction


NO_GPU = "There is no GPU in this recording"
"""Begins the headline of a page about a GPU."""
VERDICTS: dict[int, Verdict] = {0: "unknown", 1: "no", 2: "yes"}
ROLES: dict[int, Role] = {
    Roles.OTHER: "other",
    Roles.FORWARD: "forward",
    Roles.BACKWARD: "backward",
    Roles.OPTIMIZER: "optimizer",
    Roles.DATALOADER: "dataloader",
}


def step_figures(estimate: StepEstimate) -> StepFigures:
    """The step as pages and JSON show it."""
    return StepFigures(
        ms=estimate.ns / 1e6,
        low_ms=estimate.low_ns / 1e6,
        high_ms=estimate.high_ns / 1e6,
        source=estimate.source,
        recorded_ms=estimate.recorded_ns / 1e6,
    )


def selected_range(view: ProfileView, selection: Selection) -> SelectedRange:
    """The selection with the number of iterations it was taken from."""
    numbers = view.profile.iterations.number
    return SelectedRange(
        first=selection.first,
        last=selection.last,
        total=len(numbers),
        first_number=int(numbers[selection.first]),
        last_number=int(numbers[selection.last]),
        found_by=view.profile.iterations.found_by,
    )


def coverage_of(view: ProfileView) -> Coverage:
    """How much of the GPU time is attributed to ops."""
    found = coverage(view)
    return Coverage(
        total_ns=found.total_ns,
        linked_ns=found.linked_ns,
        orphan_ns=found.orphan_ns,
        unattributed_ns=found.unattributed_ns,
        outside_ns=found.outside_ns,
        linked_percent=percent(found.linked_ns, found.total_ns),
    )


def run_title(view: ProfileView) -> str:
    """The run in a few words: "ResNet50, AMP FP16 (autocast), NVIDIA H200"."""
    header = header_of(view.profile)
    parts = (view.profile.facts.run_name, header.model, precision_mode(view).label, header.device)
    return ", ".join(dict.fromkeys(part for part in parts if part))
