"""The Roofline page: FLOPs, bytes and rate of each op with a matrix routine, compared with the ceilings of the GPU."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.metrics.roofline import Roofline, RooflineRow, roofline
from tb_dlprof_plugin.model.direction import Direction
from tb_dlprof_plugin.model.formatting import dtypes_text, flop_count, shapes_text
from tb_dlprof_plugin.model.frameworks import PYTORCH, recording_of
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.names.gpu_peaks import Ceilings
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import OpText, SelectedRange, Verdict, selected_range
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

Bound = Literal["compute", "memory", "unknown"]

_MAX_ROWS = 1500
"""About 600 bytes each: a page is at most 1 MB."""
_NOTABLE_UNKNOWN = 5.0
_WHOLE = 100.0


class RooflineOp(msgspec.Struct, frozen=True):
    """An op whose matrix routines ran on the GPU; None is unknown.

    ``gpu_ns`` is the time of the kernels of its matrix routines. ``percent_of_ceiling`` may exceed 100:
    ``why_above_roof`` then has the reason, else it is "". ``bound`` names the lower roof.
    """

    id: str
    name: Annotated[str, Column("Op", "opName", width=270)]
    direction: Annotated[Direction, Column("Pass", "pass", "time tensor_cores shapes", missing="–")]
    gpu_ns: Annotated[int, Column("GPU time", "matrixTime", "time tensor_cores shapes", sums=True)]
    percent_of_ceiling: Annotated[
        float | None, Column("% of roof", "roofPercent", "time tensor_cores shapes", unit="percent")
    ]
    flops_per_second: Annotated[
        float | None, Column("Rate", "flopRate", "time tensor_cores shapes", unit="flops_per_second")
    ]
    ceiling_flops_per_second: Annotated[float | None, Column("Roof", "roof", "time", unit="flops_per_second")]
    precision: Annotated[str, Column("Ran in", "ranIn", "tensor_cores", choice=True)]
    bound: Annotated[Bound, Column("Bound by", "bound", "time")]
    measured: Annotated[
        bool,
        Column("Counted by", choice=True, terminal=False),
        Definition(
            "rooflineMeasured",
            "Whether FLOPs and bytes are counters of Nsight Compute (DRAM's bytes), or follow from the shapes.",
        ),
    ]
    possible_precision: Annotated[str, Column("Could run in", "couldRunIn", "tensor_cores", choice=True)]
    percent_of_possible: Annotated[
        float | None, Column("% of that roof", "possiblePercent", "tensor_cores", unit="percent")
    ]
    flops: Annotated[int | None, Column("FLOPs", "flops", "time", unit="flops", sums=True)]
    bytes: Annotated[
        int | None,
        Column("Bytes", "Least bytes to move: every input read once, every output written once.", "time", sums=True),
    ]
    flops_per_byte: Annotated[float | None, Column("FLOPs/byte", "intensity", "shapes")]
    calls: Annotated[int, Column("Calls", "calls", "time", sums=True, terminal=False)]
    op_type: Annotated[str, Column("Op type", "opType", "tensor_cores", width=170, terminal=False)]
    shapes: Annotated[str, Column("Shapes", "shapes", "shapes", width=220, terminal=False)]
    dtypes: Annotated[str, Column("Types", "dtypes", "shapes", width=130, terminal=False)]
    module: str
    tensor_cores: Verdict
    why_above_roof: str


class RooflinePage(msgspec.Struct, frozen=True):
    """``ops`` by falling time. ``flops`` and ``flops_per_iteration`` sum the matrix routines whose FLOPs are known.

    ``gpu`` is "" where none was used or several kinds; ``bytes_per_second``, ``roofs`` and ``source`` are empty where
    its ceilings are unknown. ``unknown_percent`` is the share of ``matrix_ns`` in ops whose FLOPs are unknown.
    ``percent_of_ceiling`` is over all ops whose ceiling is known, weighted by their time.
    """

    ref: RunRef
    headline: str
    range: SelectedRange
    has_gpu: bool
    gpu: str
    source: Annotated[str, Definition("rateSource", "Where the GPU's rates were published.")]
    bytes_per_second: Annotated[
        float | None, Definition("gpuBandwidth", "Peak rate of the GPU's memory, as its maker publishes it.")
    ]
    roofs: list[Roof]
    calls: int
    unknown_calls: int
    flops: int | None
    flops_per_iteration: float | None
    flops_per_second: float | None
    matrix_ns: int | None
    unknown_ns: int | None
    unknown_percent: float | None
    percent_of_ceiling: float | None
    ops: list[RooflineOp]
    total_rows: int


def roofline_page(view: ProfileView, ref: RunRef, selection: Selection) -> RooflinePage:
    """The matrix ops of the selected iterations against the roofs of the GPU."""
    totals = roofline(view, selection)
    has_gpu = view.profile.has_gpu
    ceilings = totals.ceilings
    flops = totals.flops if totals.calls > totals.unknown_calls else None
    counted = [row for row in totals.rows if row.flops is not None]
    known_ns = sum(row.time_ns for row in counted)
    overall = _overall(totals.rows)
    return RooflinePage(
        ref=ref,
        headline=_headline(view, totals, has_gpu, flops, selection.count, overall),
        range=selected_range(view, selection),
        has_gpu=has_gpu,
        gpu=totals.gpu,
        source=ceilings.source if ceilings else "",
        bytes_per_second=ceilings.bytes_per_second if ceilings else None,
        roofs=roofs(totals.rows, ceilings) if ceilings else [],
        calls=totals.calls,
        unknown_calls=totals.unknown_calls,
        flops=flops,
        flops_per_iteration=None if flops is None else flops / selection.count,
        flops_per_second=sum(row.flops or 0 for row in counted) * 1e9 / known_ns if known_ns else None,
        matrix_ns=totals.time_ns if has_gpu else None,
        unknown_ns=totals.unknown_ns if has_gpu else None,
        unknown_percent=percent(totals.unknown_ns, totals.time_ns) if has_gpu else None,
        percent_of_ceiling=overall,
        ops=[_op(view, row) for row in totals.rows[:_MAX_ROWS]],
        total_rows=len(totals.rows),
    )


def _op(view: ProfileView, row: RooflineRow) -> RooflineOp:
    return struct_from(
        RooflineOp,
        OpText(view, row.group),
        row,
        gpu_ns=row.time_ns,
        flops_per_second=row.rate,
        flops_per_byte=row.intensity,
        tensor_cores="unknown" if row.tensor_cores is None else "yes" if row.tensor_cores else "no",
        ceiling_flops_per_second=row.ceiling,
        percent_of_ceiling=row.percent,
        bound="unknown" if row.memory_bound is None else "memory" if row.memory_bound else "compute",
        why_above_roof=why_above_roof(row),
        percent_of_possible=row.possible_percent,
        shapes=shapes_text(view.profile.shapes_of(row.op)),
        dtypes=dtypes_text(view.profile.dtypes_of(row.op)),
    )


def _overall(rows: list[RooflineRow]) -> float | None:
    shares = [(row.percent, row.time_ns) for row in rows if row.percent is not None]
    time = sum(ns for _, ns in shares)
    return sum(share * ns for share, ns in shares) / time if time else None


def _headline(
    view: ProfileView, found: Roofline, has_gpu: bool, flops: int | None, iterations: int, overall: float | None
) -> str:
    if not found.calls and view.profile.source.framework != PYTORCH:
        return f"FLOPs are known of PyTorch's ops alone, and {recording_of(view.profile.source.framework)}."
    if not found.calls:
        return "No matrix product, convolution or attention ran in the selected iterations."
    if flops is None:
        if found.impossible:
            return "FLOPs are unknown: the recording's shapes and times cannot both be right."
        return "FLOPs are unknown: input shapes were not recorded, or are incomplete."
    amount = f"{flop_count(flops / iterations)} a step"
    if not has_gpu:
        return f"{amount}; no GPU in this recording."
    if found.ceilings is None:
        return f"{amount}; the peak rates of {found.gpu or 'this GPU'} are unknown."
    if overall is None:
        return f"{amount}; the applicable peak rates are unknown."
    if overall > _WHOLE:
        return f"{amount}; matrix kernels are above the roof of {found.gpu}: the ops' rows say why that can be."
    text = f"{amount}; matrix kernels reach {overall:.0f} % of what {found.gpu} can in the precision they ran in"
    share = percent(found.unknown_ns, found.time_ns) or 0.0
    return text + (f"; {share:.0f} % of their time has unknown FLOPs." if share > _NOTABLE_UNKNOWN else ".")


_CUDA_CORES = ("fp32", False)
_HALF = ("fp16", "bf16")


class Roof(msgspec.Struct, frozen=True):
    """A peak rate of the GPU; ``precision`` and ``tensor_cores`` are those of the ops below it.

    ``reached`` is True if an op ran in that precision, False for a roof that a change of precision would lead to. FP16
    and BF16 at one rate are one roof, whose ``precision`` is the one that most time ran in.
    """

    precision: str
    tensor_cores: bool
    label: str
    flops_per_second: float
    reached: bool


def precision_label(precision: str, tensor_cores: bool) -> str:
    """Such as "TF32", or "FP32 without Tensor Cores"; "" where unknown."""
    if not precision:
        return ""
    return precision.upper().replace("X", "x") + ("" if tensor_cores else " without Tensor Cores")


def roofs(rows: list[RooflineRow], ceilings: Ceilings) -> list[Roof]:
    """The roofs of the precisions that the ops ran in, could run in or are advised to run in, the highest first.

    FP32 ops off the Tensor Cores have TF32 above them, where the GPU has it: one setting leads there. The FP32 rate of
    the CUDA cores is drawn with any of them, as what mixed precision and TF32 are compared with.
    """
    time_ns: dict[tuple[str, bool], int] = {}
    for row in rows:
        if row.tensor_cores is None:
            continue
        ran = (row.precision, row.tensor_cores)
        time_ns[ran] = time_ns.get(ran, 0) + row.time_ns
        if row.possible_precision:
            time_ns.setdefault((row.possible_precision, True), 0)
        if ran == _CUDA_CORES and row.possible_precision in _HALF:
            time_ns.setdefault(("tf32", True), 0)
    if time_ns:
        time_ns.setdefault(_CUDA_CORES, 0)
    if any((half, True) in time_ns for half in _HALF):
        for half in _HALF:
            time_ns.setdefault((half, True), 0)
    found = [
        Roof(precision, tensor_cores, precision_label(precision, tensor_cores), rate, time > 0)
        for (precision, tensor_cores), time in time_ns.items()
        if (rate := ceilings.flops_per_second(precision, tensor_cores)) is not None
    ]
    return sorted(_halves_merged(found, time_ns), key=lambda roof: (-roof.flops_per_second, roof.label))


def _halves_merged(found: list[Roof], time_ns: dict[tuple[str, bool], int]) -> list[Roof]:
    halves = [roof for roof in found if roof.precision in _HALF and roof.tensor_cores]
    if len(halves) < len(_HALF) or len({roof.flops_per_second for roof in halves}) > 1:
        return found
    most = max(_HALF, key=lambda half: time_ns[half, True])
    merged = Roof(most, True, "FP16 and BF16", halves[0].flops_per_second, any(roof.reached for roof in halves))
    return [roof for roof in found if roof not in halves] + [merged]


_FEWER_PRODUCTS = {
    "convolution.winograd": "Winograd kernels multiply less often than the FLOPs say",
    "convolution.fft": "FFT kernels multiply less often than the FLOPs say",
    "attention": "under a causal mask attention skips products that the FLOPs count",
}
_CACHED = "data was still in the L2 cache"
_UNSEEN = "the algorithm multiplies less often than the FLOPs say, or data was still in the L2 cache"


def why_above_roof(row: RooflineRow) -> str:
    """Why an op is faster than its roof, as far as the names of its kernels show it; "" if it is not faster."""
    if row.percent is None or row.percent <= 100:
        return ""
    return _FEWER_PRODUCTS.get(row.saves_products) or (_CACHED if row.memory_bound else _UNSEEN)
