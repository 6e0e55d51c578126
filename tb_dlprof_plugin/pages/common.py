"""Structs that several pages share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

import msgspec

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.kernels import coverage
from tb_dlprof_plugin.metrics.share_range import ShareRange
from tb_dlprof_plugin.model.direction import Direction, direction_of
from tb_dlprof_plugin.model.formatting import share_between, short_kernel_name
from tb_dlprof_plugin.model.profile import KernelKind
from tb_dlprof_plugin.model.profile import Role as Roles
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.pages.quantities import RECORDED_STEP, STEP
from tb_dlprof_plugin.profile_view import ProfileView, Selection, group_name, kernel_id
from tb_dlprof_plugin.simulation.estimate import StepEstimate
from tb_dlprof_plugin.simulation.step_detection import unmarked
from tb_dlprof_plugin.store.header import header_of

Verdict = Literal["yes", "no", "unknown"]
Role = Literal["forward", "backward", "optimizer", "dataloader", "other"]
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class Slice(msgspec.Struct, frozen=True):
    """One part of a donut or stacked bar; ``value_ns`` and ``percent`` are None if unknown."""

    key: str
    label: Annotated[str, Column("Part", "What is part of the whole.")]
    value_ns: Annotated[int | None, Column("Time", "Its time in the selected iterations.", sums=True)]
    percent: Annotated[float | None, Column("Share", "Its share of the whole.")]


ITSELF = "(itself)"
"""The path of a compiled module among those in it."""


class PossibleShare(msgspec.Struct, frozen=True):
    """Where a share lies of which a part is unknown; ``text`` is such as "67 to 91 %"."""

    low_percent: float
    high_percent: float
    text: str


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

    ms: Annotated[float, STEP]
    low_ms: float
    high_ms: float
    source: str
    recorded_ms: Annotated[float, RECORDED_STEP]


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


@dataclass(frozen=True, slots=True)
class OpText:
    """What pages say of an op, a row of `ProfileView.groups`."""

    view: ProfileView
    group: int

    @property
    def id(self) -> str:
        return self.view.groups.ids[self.group]

    @property
    def name(self) -> str:
        return group_name(self.view, self.group)

    @property
    def module(self) -> str:
        return self.view.profile.strings[self.view.groups.module[self.group]]

    @property
    def op_type(self) -> str:
        return self.view.profile.strings[self.view.groups.op_type[self.group]]

    @property
    def direction(self) -> Direction:
        return direction_of(int(self.view.groups.role[self.group]))


@dataclass(frozen=True, slots=True)
class KernelText:
    """What pages say of a row of `Profile.kernels`: a kernel, copy or set."""

    view: ProfileView
    kernel: int

    @property
    def id(self) -> str:
        return kernel_id(self.view, self.kernel)

    @property
    def name(self) -> str:
        return self._text("name")

    @property
    def short_name(self) -> str:
        return short_kernel_name(self.name)

    @property
    def kind(self) -> str:
        return KernelKind(int(self.view.profile.kernels.kind[self.kernel])).name.lower()

    @property
    def family(self) -> str:
        return self._text("family")

    @property
    def tensor_core(self) -> Verdict:
        return VERDICTS[int(self.view.profile.kernels.tensor_core[self.kernel])]

    @property
    def precision(self) -> str:
        return self._text("precision")

    @property
    def rule(self) -> str:
        return self._text("rule")

    def _text(self, column: str) -> str:
        return self.view.profile.strings[getattr(self.view.profile.kernels, column)[self.kernel]]


def note_items(view: ProfileView) -> list[NoteItem]:
    """The notes of a recording."""
    return [NoteItem(note.code, note.text, note.count) for note in view.profile.notes]


def step_figures(estimate: StepEstimate) -> StepFigures:
    """The step as pages and JSON show it."""
    return StepFigures(
        ms=estimate.ns / 1e6,
        low_ms=estimate.low_ns / 1e6,
        high_ms=estimate.high_ns / 1e6,
        source=estimate.source,
        recorded_ms=estimate.recorded_ns / 1e6,
    )


def possible_share(possible: ShareRange | None) -> PossibleShare | None:
    """A range for a page."""
    if possible is None:
        return None
    return PossibleShare(possible.low, possible.high, share_between(possible.low, possible.high))


def selected_range(view: ProfileView, selection: Selection) -> SelectedRange:
    """The selection with the number of iterations it was taken from."""
    numbers = view.profile.iterations.number
    return SelectedRange(
        first=selection.first,
        last=selection.last,
        total=len(numbers),
        first_number=int(numbers[selection.first]),
        last_number=int(numbers[selection.last]),
        found_by="none" if unmarked(view) else view.profile.iterations.found_by,
    )


def coverage_of(view: ProfileView) -> Coverage:
    """How much of the GPU time is attributed to ops."""
    found = coverage(view)
    return struct_from(Coverage, found, linked_percent=percent(found.linked_ns, found.total_ns))


def run_title(view: ProfileView) -> str:
    """The run in a few words: "ResNet50, AMP FP16 (autocast), NVIDIA H200"."""
    from tb_dlprof_plugin.metrics.precision_mode import precision_mode

    header = header_of(view.profile)
    parts = (view.profile.facts.run_name, header.model, precision_mode(view).label, header.device)
    return ", ".join(dict.fromkeys(part for part in parts if part))
