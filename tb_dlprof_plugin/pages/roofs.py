"""The roofs that the Roofline page draws: peak rates of the precisions that matrix ops ran in and could run in."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.metrics.roofline import RooflineRow
from tb_dlprof_plugin.names.gpu_peaks import Ceilings

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
    one = Roof(most, True, "FP16 and BF16", halves[0].flops_per_second, any(roof.reached for roof in halves))
    return [roof for roof in found if roof not in halves] + [one]


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
