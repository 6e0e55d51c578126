"""The sweep: runs as lines over the one fact in which they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

import msgspec

from tb_dlprof_plugin.comparison.run_table import FACTS, Fact
from tb_dlprof_plugin.comparison.sweep import Sweep, SweepLine, SweepPoint, in_order, sweep, swept_facts
from tb_dlprof_plugin.metrics.run_figures import RunFigures
from tb_dlprof_plugin.model.direction import Direction, read_direction
from tb_dlprof_plugin.model.formatting import byte_size, duration, energy, flop_count, uncapitalized
from tb_dlprof_plugin.model.request import Option, Request
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.names.kernel_groups import GROUPS, PARENTS, group_label, groups_named
from tb_dlprof_plugin.pages.quantities import (
    FLOPS,
    GPU_BUSY,
    JOULES,
    JOULES_PER_SAMPLE,
    LAUNCHES,
    PEAK_ALLOCATED,
    SAMPLES,
    STEP,
    TENSOR_CORE_SHARE,
    TENSOR_CORE_UTILIZATION,
    WATTS,
)
from tb_dlprof_plugin.pages.recorded_run import FailedRun, RecordedRun, ambiguous_models, computed_in, fact_text
from tb_dlprof_plugin.store.run_ref import RunRef

SweepUnit = Literal["ns", "per_second", "percent", "bytes", "flops", "flops_per_second", "count", "joules", "watts"]
_NUMBERS = ("batch_size", "workers", "gpus", "processes")
_OF_STEP = ("step_time", "samples_per_second", "gpu_utilization", "flops_rate")
"""Measures that depend on the step."""
_OPTIONS = 200
"""Op types to choose from."""


class SweepError(VisibleMessage, ValueError):
    """The requested sweep is invalid; the message lists valid ones."""


class SweepOption(msgspec.Struct, frozen=True):
    """A value that may be chosen."""

    key: str
    label: str


class SweepMark(msgspec.Struct, frozen=True):
    """A point of a line; ``position`` is an index of `SweepPage.positions`.

    ``estimated`` is True if the value depends on an estimated step.
    """

    position: int
    ref: RunRef
    value: float
    estimated: bool


class SweepCurve(msgspec.Struct, frozen=True):
    """A line, named by the facts in which the lines differ. Where these hold the precision, ``precision_key`` is what
    it was computed in, as in `RunRow`; it gives the colour."""

    label: str
    precision_key: str
    marks: list[SweepMark]


class SweepLeftOut(msgspec.Struct, frozen=True):
    """A run that is in no line, and why."""

    run: str
    why: str


class SweepPage(msgspec.Struct, frozen=True):
    """``positions`` are the values of the fact in order, ``ordered`` says whether they are numbers.

    ``common`` are the facts that all lines share. ``done`` of ``total`` runs have been read; the page asks again until
    all are.
    """

    headline: str
    done: int
    total: int
    over: str
    over_label: str
    overs: list[SweepOption]
    measure: str
    measure_label: str
    measures: list[SweepOption]
    unit: SweepUnit
    kernel_group: str
    kernel_groups: list[SweepOption]
    op: str
    ops: list[SweepOption]
    ordered: bool
    positions: list[str]
    curves: list[SweepCurve]
    common: list[str]
    notes: list[str]
    left_out: list[SweepLeftOut]
    failed: list[FailedRun]


_Read = Callable[[RunFigures], float | None]
MEASURES: dict[str, tuple[str, SweepUnit, _Read]] = {
    "step_time": (STEP.label, "ns", lambda run: run.step.ns or None),
    "samples_per_second": (SAMPLES.label, "per_second", lambda run: run.samples_per_second),
    "gpu_utilization": (GPU_BUSY.label, "percent", lambda run: run.gpu_utilization),
    "tensor_core_utilization": (
        TENSOR_CORE_UTILIZATION.label, "percent", lambda run: run.tensor_core_utilization,
    ),
    "tensor_core_share": (TENSOR_CORE_SHARE.label, "percent", lambda run: run.tensor_core_share),
    "share": ("Share of the GPU time", "percent", lambda run: None),
    "flops": (FLOPS.label, "flops", lambda run: run.flops),
    "flops_rate": ("FLOP/s of the step", "flops_per_second", lambda run: run.flops_rate),
    "memory": (PEAK_ALLOCATED.label, "bytes", lambda run: run.peak_memory_bytes),
    "launches": (LAUNCHES.label, "count", lambda run: run.launches),
    "energy": (JOULES.label, "joules", lambda run: run.joules_per_step),
    "energy_per_sample": (JOULES_PER_SAMPLE.label, "joules", lambda run: run.joules_per_sample),
    "power": (WATTS.label, "watts", lambda run: run.watts),
}  # fmt: skip
"""Label, unit and value of everything that can be drawn over a fact; of "share" an op or kernels are named, too."""


@dataclass(frozen=True)
class SweepRequest(Request):
    """What to draw: by default the fact with most lines; ``kernel_group`` or ``op`` go with the measure "share"."""

    over: Annotated[
        str | None, Option(f"Fact on the x axis: {', '.join(FACTS)}; by default the one with most lines.")
    ] = None
    measure: Annotated[
        str | None,
        Option(f"Figure: {', '.join(MEASURES)}; step_time by default, share of an op or a kernel group."),
    ] = None
    _: KW_ONLY
    op: Annotated[str | None, Option("Show the share of this type of op, such as max_pool2d.")] = None
    direction: Annotated[str | None, Option("Direction of the op: forward or backward; both by default.")] = None
    kernel_group: Annotated[
        str | None, Option("Show the share of these kernels, such as convolution.winograd or copy.")
    ] = None

    @property
    def drawn(self) -> str:
        """The measure."""
        return self.measure or ("share" if self.op or self.kernel_group else "step_time")


def sweep_page(
    recorded: Sequence[RecordedRun],
    request: SweepRequest,
    failed: Sequence[FailedRun] = (),
    total: int | None = None,
) -> SweepPage:
    """The runs as lines.

    Raises:
        SweepError: there is no such fact, measure, direction or kernel group, or "share" lacks its op or kernel group.
    """
    runs = list(recorded)
    named = [run.run for run in runs]
    swept = swept_facts(named)
    over = request.over or (swept[0] if swept else "batch_size")
    if over not in FACTS:
        raise SweepError(f"there is no fact {over!r}; the facts are {', '.join(FACTS)}")
    read, label = _reader(request)
    made = sweep(named, over, read, uncapitalized(label))
    ambiguous = ambiguous_models(runs)
    refs = {run.run.name: run.ref for run in runs}
    xs = in_order({point.x for line in made.lines for point in line.points})
    place = {x: at for at, x in enumerate(xs)}
    curves = [
        SweepCurve(
            label=_line_label(line, ambiguous),
            precision_key=computed_in(_precision(line)),
            marks=[
                SweepMark(place[point.x], refs[point.run.name], point.value, _estimated(point, request.drawn))
                for point in line.points
            ],
        )
        for line in made.lines
    ]
    done = len(runs) + len(failed)
    unit = MEASURES[request.drawn][1]
    return SweepPage(
        headline=_headline(made, curves, label, unit, swept),
        done=done,
        total=done if total is None else total,
        over=over,
        over_label=FACTS[over],
        overs=[SweepOption(fact, FACTS[fact]) for fact in dict.fromkeys([*swept, over])],
        measure=request.drawn,
        measure_label=label,
        measures=[SweepOption(key, name) for key, (name, *_) in MEASURES.items()],
        unit=unit,
        kernel_group=request.kernel_group or "",
        kernel_groups=_kernel_groups(runs),
        op=_op_key(request.op, _direction(request)) if request.op else "",
        ops=_ops(runs),
        ordered=over in _NUMBERS,
        positions=[_position(over, x, ambiguous) for x in xs],
        curves=curves,
        common=[fact_text(fact, value, ambiguous) for fact, value in made.common.items() if value is not None],
        notes=_notes(made, request.drawn),
        left_out=[SweepLeftOut(left.run.name, left.why) for left in made.left_out],
        failed=list(failed),
    )


def _reader(request: SweepRequest) -> tuple[_Read, str]:
    """What is drawn of each run, and its label."""
    if request.drawn not in MEASURES:
        raise SweepError(f"there is no measure {request.drawn!r}; the measures are {', '.join(MEASURES)}")
    if request.drawn == "share":
        return _share(request)
    if request.op or request.kernel_group:
        raise SweepError("an op or a kernel group needs the measure 'share'")
    label, _, read = MEASURES[request.drawn]
    return read, label


def _share(request: SweepRequest) -> tuple[_Read, str]:
    if request.op and request.kernel_group:
        raise SweepError("a share is of an op or of a kernel group, not of both")
    if request.op:
        op, direction = request.op, _direction(request)
        label = f"Share of the GPU time in {op}" + (f", {direction}" if direction else "")
        return lambda figures: figures.op_share(op, direction), label
    if not request.kernel_group:
        raise SweepError("a share is of an op or of a kernel group: name one")
    groups = groups_named(request.kernel_group)
    if not groups:
        known = ", ".join([*PARENTS, *GROUPS])
        raise SweepError(f"there is no kernel group {request.kernel_group!r}; the groups are {known}")
    name = group_label(request.kernel_group)
    return lambda figures: figures.group_share(groups), f"Share of the GPU time: {uncapitalized(name)}"


def _kernel_groups(runs: list[RecordedRun]) -> list[SweepOption]:
    """The groups that occur, each group of several before its parts."""
    seen = {group for one in runs for group in one.run.figures.group_ns}
    result: list[SweepOption] = []
    for group in GROUPS:
        if group not in seen:
            continue
        parent = group.partition(".")[0]
        if parent in PARENTS and all(option.key != parent for option in result):
            result.append(SweepOption(parent, group_label(parent)))
        result.append(SweepOption(group, group_label(group)))
    return result


def _ops(runs: list[RecordedRun]) -> list[SweepOption]:
    """The op types that occur, by their largest share in any run."""
    most: dict[str, float] = {}
    for one in runs:
        figures = one.run.figures
        for op in figures.op_types:
            key, share = _op_key(op.op_type, op.direction), figures.op_share(op.op_type, op.direction) or 0.0
            most[key] = max(most.get(key, 0.0), share)
    names = sorted(most, key=lambda key: (-most[key], key))[:_OPTIONS]
    return [SweepOption(name, name) for name in names]


def _direction(request: SweepRequest) -> Direction:
    try:
        return read_direction(request.direction)
    except ValueError as error:
        raise SweepError(str(error)) from None


def _op_key(op: str, direction: Direction) -> str:
    return f"{op} {direction}" if direction else op


def _estimated(point: SweepPoint, measure: str) -> bool:
    return measure in _OF_STEP and point.run.figures.step.estimated


def _line_label(line: SweepLine, ambiguous: frozenset[str]) -> str:
    return ", ".join(fact_text(fact, value, ambiguous) for fact, value in line.facts.items()) or "all runs"


def _precision(line: SweepLine) -> str | None:
    value = line.facts.get("precision")
    return value if isinstance(value, str) else None


def _position(over: str, x: Fact, ambiguous: frozenset[str]) -> str:
    if over in (*_NUMBERS, "torch"):
        return str(x)
    return fact_text(over, x, ambiguous)


def _notes(made: Sweep, measure: str) -> list[str]:
    points = [point.run.figures for line in made.lines for point in line.points]
    if measure in _OF_STEP:
        count = sum(figures.step.estimated for figures in points)
        return (
            [f"Steps are without the profiler; those of {count} of {len(points)} runs, marked ~, are estimated."]
            if count
            else []
        )
    if measure != "memory":
        return []
    of_process = [figures for figures in points if figures.peak_memory_of == "process"]
    notes = []
    if of_process:
        notes.append(
            f"{len(of_process)} of {len(points)} runs did not record memory: theirs is the peak of the whole process."
        )
    if any(_same_process(line) for line in made.lines):
        notes.append(
            "Runs of one line share one peak to the byte: they were recorded in one process, whose peak counts from "
            "its start. Call torch.cuda.reset_peak_memory_stats() between runs, or record with profile_memory=True."
        )
    return notes


def _same_process(line: SweepLine) -> bool:
    peaks = [p.run.figures.peak_memory_bytes for p in line.points if p.run.figures.peak_memory_of == "process"]
    return len(peaks) > len(set(peaks))


def _headline(made: Sweep, curves: list[SweepCurve], label: str, unit: SweepUnit, found: list[str]) -> str:
    over = FACTS[made.over]
    if not curves:
        if found:
            return f"No two runs differ in the {over} alone; they do in {_list([FACTS[fact] for fact in found])}."
        return (
            "No two runs differ in a single recorded fact: record the same training with another batch size, for "
            "example, into a directory of its own."
        )
    count = sum(len(curve.marks) for curve in curves)
    lines = "one line" if len(curves) == 1 else f"{len(curves)} lines"
    text = f"{label} over {over}: {count} runs in {lines}"
    if len(curves) == 1:
        first, last = made.lines[0].points[0].value, made.lines[0].points[-1].value
        text += f", from {value_text(first, unit)} to {value_text(last, unit)}"
    if made.left_out:
        text += f"; {len(made.left_out)} left out"
    return f"{text}."


def value_text(value: float, unit: SweepUnit) -> str:
    """A value with its unit."""
    if unit == "ns":
        return duration(value)
    if unit == "bytes":
        return byte_size(value)
    if unit == "flops":
        return flop_count(value)
    if unit == "flops_per_second":
        return f"{flop_count(value)}/s"
    if unit == "percent":
        return f"{value:.1f} %"
    if unit == "joules":
        return energy(value)
    if unit == "watts":
        return f"{value:,.0f} W"
    return f"{value:,.1f}" if unit == "per_second" else f"{value:,.0f}"


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
