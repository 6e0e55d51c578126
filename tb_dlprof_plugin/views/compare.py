"""The Compare page: two runs side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.comparison import Comparison, OpSide, compare
from tb_dlprof_plugin.measures import Frame, Selection
from tb_dlprof_plugin.measures.frame import op_name
from tb_dlprof_plugin.measures.iterations import StepTotals, percent, step_totals
from tb_dlprof_plugin.measures.kernels import TimeSplit, kernel_totals, time_split
from tb_dlprof_plugin.measures.ops import op_totals
from tb_dlprof_plugin.measures.tensor_cores import TensorCoreTotals, tensor_core_totals
from tb_dlprof_plugin.storage.header import header_of
from tb_dlprof_plugin.storage.model import Attribution
from tb_dlprof_plugin.storage.model import Verdict as Verdicts
from tb_dlprof_plugin.views.common import (
    DIRECTIONS,
    Direction,
    RunRef,
    SelectedRange,
    Slice,
    Verdict,
    run_title,
    selected_range,
)
from tb_dlprof_plugin.views.overview import CATEGORIES
from tb_dlprof_plugin.views.text import duration

_Unit = Literal["ns", "percent", "count", "bytes", "per_second"]
_Better = Literal["lower", "higher", ""]
_ORPHAN_PERCENT = 5.0
_UNEVEN_PERCENT = 20.0
_WITHOUT_GPU = ("step_time", "samples_per_second")


class CompareSide(msgspec.Struct, frozen=True):
    """One of the two runs."""

    ref: RunRef
    title: str
    precision: str
    model: str
    device: str
    range: SelectedRange


class CompareMetric(msgspec.Struct, frozen=True):
    """One measure of both runs; ``ratio`` is a / b for times (above 1: b is faster), None where either is unknown.

    ``gain`` says how many times better b is, above 1 for better whatever the measure: a / b where lower is better and
    b / a where higher is. None where neither is better, a side is unknown or the divisor is 0.
    """

    key: str
    label: str
    unit: _Unit
    a: float | None
    b: float | None
    ratio: float | None
    gain: float | None
    better: _Better


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


def compare_page(a: CompareInput, b: CompareInput) -> ComparePage:
    """Run ``b`` against the base ``a``."""
    comparison = compare(a.frame, b.frame, a.selection, b.selection)
    a_step, b_step = a.steps.average_ns, b.steps.average_ns
    speedup = a_step / b_step if b_step else None
    ops = _ops(comparison)
    return ComparePage(
        a=a.side(),
        b=b.side(),
        headline=_headline(a, b, speedup),
        basis=comparison.basis,
        speedup=speedup,
        metrics=_metrics(a, b),
        a_categories=a.categories(),
        b_categories=b.categories(),
        families=_families(a, b),
        ops=ops,
        total_rows=len(ops),
        matched_percent=comparison.matched_percent,
        warnings=_warnings(a, b),
    )


class CompareInput:
    """One run with everything the page needs of it."""

    def __init__(self, frame: Frame, ref: RunRef, selection: Selection) -> None:
        self.frame, self.ref, self.selection = frame, ref, selection
        self.steps: StepTotals = step_totals(frame, selection)
        self.split: TimeSplit = time_split(frame, selection)
        totals = op_totals(frame, selection)
        self.tensor_cores: TensorCoreTotals = tensor_core_totals(totals)
        self.kernel_calls = int(frame.selected_launches(selection).sum())

    def side(self) -> CompareSide:
        header = header_of(self.frame.profile)
        return CompareSide(
            ref=self.ref,
            title=run_title(self.frame),
            precision=header.precision,
            model=header.model,
            device=header.device,
            range=selected_range(self.frame, self.selection),
        )

    def categories(self) -> list[Slice]:
        count, step = self.selection.count, self.steps.average_ns
        per_step = {name: None if value is None else value // count for name, value in self.steps.category_ns.items()}
        return [Slice(name, CATEGORIES[name][0], value, percent(value, step)) for name, value in per_step.items()]

    def tensor_core_ns(self) -> float | None:
        """Tensor Core kernel time per step."""
        return self.per_step(self.split.tensor_core_ns)

    def per_step(self, value_ns: int | None) -> float | None:
        return None if value_ns is None or not self.frame.profile.has_gpu else value_ns / self.selection.count


def _metrics(a: CompareInput, b: CompareInput) -> list[CompareMetric]:
    def both(read: Callable[[CompareInput], float | None]) -> tuple[float | None, float | None]:
        return read(a), read(b)

    rows: list[tuple[str, str, _Unit, _Better, tuple[float | None, float | None]]] = [
        ("step_time", "Step time", "ns", "lower", both(lambda s: s.steps.average_ns)),
        ("gpu_busy", "GPU busy per step", "ns", "lower", both(lambda s: s.per_step(s.steps.gpu_busy_ns))),
        ("kernel_time", "Kernel time per step", "ns", "lower", both(lambda s: s.per_step(s.split.kernel_ns))),
        ("tensor_core_time", "Tensor Core kernel time per step", "ns", "", both(CompareInput.tensor_core_ns)),
        ("memory_time", "Copies and sets per step", "ns", "lower", both(lambda s: s.per_step(s.split.memory_ns))),
        ("kernel_calls", "GPU launches per step", "count", "lower", both(lambda s: s.per_step(s.kernel_calls))),
        ("gpu_utilization", "GPU utilization", "percent", "higher", both(lambda s: s.steps.gpu_utilization)),
        (
            "tensor_core_utilization",
            "Tensor Core Kernel Utilization",
            "percent",
            "higher",
            both(lambda s: s.tensor_cores.utilization),
        ),
        ("samples_per_second", "Samples per second", "per_second", "higher", both(_rate)),
        (
            "peak_memory",
            "Peak memory allocated",
            "bytes",
            "lower",
            both(lambda s: s.frame.profile.facts.peak_memory_allocated_bytes),
        ),
    ]
    if not a.frame.profile.has_gpu and not b.frame.profile.has_gpu:
        rows = [row for row in rows if row[0] in _WITHOUT_GPU]
    return [
        CompareMetric(
            key,
            label,
            unit,
            left,
            right,
            left / right if left is not None and right else None,
            _gain(left, right, better),
            better,
        )
        for key, label, unit, better, (left, right) in rows
    ]


def _gain(a: float | None, b: float | None, better: _Better) -> float | None:
    if a is None or b is None or better == "":
        return None
    over, under = (a, b) if better == "lower" else (b, a)
    return over / under if under else None


def _rate(side: CompareInput) -> float | None:
    batch = side.frame.profile.facts.batch_size
    return batch * 1e9 / side.steps.average_ns if batch and side.steps.average_ns else None


def _families(a: CompareInput, b: CompareInput) -> list[CompareKernelFamily]:
    left, right = _by_family(a), _by_family(b)
    nothing = (0, 0.0, 0)
    rows = []
    for family in {**left, **right}:
        (a_ns, a_calls, a_tc), (b_ns, b_calls, b_tc) = left.get(family, nothing), right.get(family, nothing)
        rows.append(CompareKernelFamily(family, a_ns, b_ns, a_calls, b_calls, a_tc, b_tc))
    return sorted(rows, key=lambda row: -max(row.a_ns, row.b_ns))


def _by_family(side: CompareInput) -> dict[str, tuple[int, float, int]]:
    """Per family: time per step, calls per step, Tensor Core time per step."""
    profile, count = side.frame.profile, side.selection.count
    totals = kernel_totals(side.frame, side.selection)
    result: dict[str, tuple[int, float, int]] = {}
    for family in np.unique(profile.kernels.family).tolist():
        rows = profile.kernels.family == family
        time = int(totals.total_ns[rows].sum())
        tensor = int(totals.total_ns[rows & (profile.kernels.tensor_core == Verdicts.YES)].sum())
        if time:
            result[profile.strings[family]] = (time // count, int(totals.calls[rows].sum()) / count, tensor // count)
    return result


def _ops(comparison: Comparison) -> list[CompareOp]:
    rows = []
    for pair in comparison.pairs:
        a, b = pair.a, pair.b
        rows.append(
            CompareOp(
                name=op_name(pair.module, pair.op_type),
                module=pair.module,
                op_type=pair.op_type,
                direction=DIRECTIONS.get(pair.role, ""),
                a_id=a.id if a else None,
                b_id=b.id if b else None,
                a_ns=a.time_ns if a else None,
                b_ns=b.time_ns if b else None,
                difference_ns=b.time_ns - a.time_ns if a and b else None,
                speedup=a.time_ns / b.time_ns if a and b and b.time_ns else None,
                a_precision=a.precision if a else "",
                b_precision=b.precision if b else "",
                a_using_tc=_using(a),
                b_using_tc=_using(b),
                a_kernels=round(a.kernels) if a and a.kernels is not None else None,
                b_kernels=round(b.kernels) if b and b.kernels is not None else None,
            )
        )
    return rows


def _using(side: OpSide | None) -> Verdict:
    if side is None or side.kernels is None:
        return "unknown"
    if side.tensor_core_ns > 0:
        return "yes"
    return "unknown" if side.eligible_unknown_ns > 0 else "no"


def _headline(a: CompareInput, b: CompareInput, speedup: float | None) -> str:
    if speedup is None:
        return "One of the runs has no step time to compare."
    first, second = duration(a.steps.average_ns), duration(b.steps.average_ns)
    if 0.98 <= speedup <= 1.02:
        return f"Both runs take about the same: {first} and {second} a step."
    if speedup > 1:
        return f"The candidate is {speedup:.2f} times as fast: {first} became {second} a step."
    return f"The candidate is slower: {first} became {second} a step, {1 / speedup:.2f} times as long."


def _warnings(a: CompareInput, b: CompareInput) -> list[str]:
    left, right = a.side(), b.side()
    texts = []
    if left.model and right.model and left.model != right.model:
        texts.append(f"The models differ: {left.model} and {right.model}.")
    if left.device != right.device:
        texts.append(f"The devices differ: {left.device} and {right.device}.")
    batches = (a.frame.profile.facts.batch_size, b.frame.profile.facts.batch_size)
    if None not in batches and batches[0] != batches[1]:
        texts.append(f"The batch sizes differ: {batches[0]} and {batches[1]}; compare samples per second.")
    for name, side in (("base", a), ("candidate", b)):
        spread = percent(side.steps.deviation_ns, side.steps.average_ns)
        if spread is not None and spread > _UNEVEN_PERCENT:
            texts.append(
                f"The {name}'s steps vary much, {duration(side.steps.average_ns)} ± "
                f"{duration(side.steps.deviation_ns or 0)}: pick a range of even iterations."
            )
        orphans = percent(_orphan_ns(side), int(side.frame.profile.launches.duration_ns.sum()))
        if orphans is not None and orphans > _ORPHAN_PERCENT:
            texts.append(
                f"{orphans:.0f} % of the {name}'s GPU time was launched before its recording began: "
                "it lies in no op and in no iteration."
            )
    return texts


def _orphan_ns(side: CompareInput) -> int:
    launches = side.frame.profile.launches
    return int(launches.duration_ns[launches.attribution == Attribution.ORPHAN].sum())
