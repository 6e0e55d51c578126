"""Sizes of layers do not fit Tensor Cores.

Linear layers and convolutions in FP16, BF16, FP8 or TF32. Their numbers of features or channels are no multiple of 16
bytes: of 8 in FP16 and BF16, 16 in FP8, 4 in TF32.

Why it matters: Kernels for Tensor Cores load 16 bytes at once. Rows of another length begin in between. cuBLAS and
cuDNN then take kernels that load single elements, several times as slow. Some have none on Tensor Cores at all. It hits
the forward pass and both gradients.

What to change: Round the sizes up: widths to the next multiple of 8, better of 64; a vocabulary with unused entries
at its end.

When to leave it: The size is given by the data and the layer small.

To confirm: Record again and open Compare: the layers' matrix kernels should take a fraction of their time.

In other tools:
- DLProf: Bad Tensor Shape Detector
- PyTorch: Matrix Multiplication Dimension Not Aligned Pattern

Read on:
- [NVIDIA: matrix multiplication background, requirements of Tensor Cores](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.evidence import op_rows
from tb_dlprof_plugin.advice.rule import Finding, Need, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.rule_context import PRECISIONS
from tb_dlprof_plugin.advice.rules.precision.precision_speedups import OpRatios, matrix_ops
from tb_dlprof_plugin.advice.savings import Saving, change, step_saving
from tb_dlprof_plugin.advice.text import listed, milliseconds
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.dtypes import InputDtypes, precision_of_dtypes
from tb_dlprof_plugin.model.profile import Bools, Role
from tb_dlprof_plugin.model.shapes import InputShapes, tensors_of
from tb_dlprof_plugin.names.alignment import Size, misaligned, multiple, product_sizes
from tb_dlprof_plugin.names.tensor_core_eligibility import is_convolution
from tb_dlprof_plugin.profile_view import op_name

RULE = Rule(
    __name__,
    __doc__,
    any_framework=True,
    needs=(Need.SHAPES, Need.GPU, Need.TENSOR_CORES),
    thresholds=("WORTHWHILE_SAVING_PERCENT", "STEP_NOISE"),
)

_PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::addmm_", "aten::_addmm_activation", "aten::_scaled_mm"})
_NAMES = {"N": "output features", "K": "input features"}
"""Of a product of inputs and weights; its rows are the batch, which lies along no matrix's rows in memory."""
_FIRST_LAYER = 8
"""Input channels below it are those of images, for which cuDNN has kernels of their own."""
_TILE = 64


@dataclass(frozen=True)
class _Layer:
    """A layer with odd sizes; ``layer_key`` is its module and type."""

    layer_key: tuple[int, int]
    name: str
    sizes: tuple[Size, ...]
    precision: str

    @property
    def text(self) -> str:
        """ "fc1: 4001 output features"."""
        parts = " and ".join(f"{size.value} {_NAMES.get(size.label, size.label)}" for size in self.sizes)
        return f"{self.name}: {parts}"


def check(context: RuleContext) -> Finding | Silent:
    """Fires where rounding sizes up should shorten the step by a notable share."""
    layers = _layers(context)
    if not layers:
        return Silent("All layers in half precision or TF32 have sizes that suit Tensor Core kernels.")
    launches = _launches(context, layers)
    time = context.per_step(launches)
    share = percent(time, context.step_ns) or 0.0
    names = listed([layer.text for layer in layers])
    if share < thresholds.WORTHWHILE_SAVING_PERCENT:
        return Silent(f"Layers with odd sizes ({names}) take {milliseconds(time)} a step ({share:.1f} %).")
    estimate = _estimate(context, launches, layers, time)
    if estimate is not None and (estimate.percent < thresholds.WORTHWHILE_SAVING_PERCENT or not estimate.low_ns):
        return Silent(
            f"Layers with odd sizes ({names}) take {milliseconds(time)} a step; rounded up they should shorten it by "
            f"{estimate.percent:.1f} %" + (", and may as well change nothing." if not estimate.low_ns else ".")
        )
    precision = layers[0].precision
    wanted = multiple(precision) or 1
    off = context.per_step(launches & ~context.on_tensor_cores)
    return RULE.finding(
        title=f"Sizes that are not multiples of {wanted} slow down {milliseconds(time)} of matrix kernels a step",
        seen=f"{len(layers)} layers in {precision.upper()} have sizes that are not multiples of {wanted} ({names}). "
        f"Their matrix kernels take {milliseconds(time)} a step ({share:.0f} %), forward and backward"
        + (f", {milliseconds(off)} of it off the Tensor Cores." if off else ", all on Tensor Cores, at a lower speed."),
        readings=[
            Reading("Layers with odd sizes", len(layers), "count"),
            Reading("Their matrix kernels, per step", time, "ns"),
            Reading("Share of the step", share, "percent", thresholds.WORTHWHILE_SAVING_PERCENT),
            Reading("Of them off the Tensor Cores, per step", off, "ns"),
        ],
        evidence=op_rows(context, launches),
        change=f"Round the sizes up: {_rounded(layers, wanted)}. Weights and inputs that are added can be 0.",
        code=_code(layers[0], wanted),
        saving=estimate
        or f"What kernels in {precision.upper()} gain by it was not measured, or this GPU's rates are unknown.",
    )


def _layers(context: RuleContext) -> list[_Layer]:
    """Forward ops of layers with odd sizes, one per module, type and sizes."""
    ops, strings, groups = context.profile.ops, context.profile.strings, context.view.groups
    row, group = context.view.launch_op, context.view.launch_group
    matrix = context.kernel_launches & context.view.launch_in_matrix_op & (row >= 0) & context.in_role(Role.FORWARD)
    found: dict[tuple[int, int, tuple[Size, ...]], _Layer] = {}
    pairs = np.unique(np.stack((row[matrix], group[matrix], context.launch_precision[matrix])), axis=1)
    for op, of_group, index in pairs.T.tolist():
        precision = _target(context, PRECISIONS[index], context.profile.dtypes_of(op), strings[ops.name[op]])
        sizes = _odd(strings[ops.name[op]], context.profile.shapes_of(op), precision)
        if sizes:
            layer_key = (int(groups.module[of_group]), int(groups.op_type[of_group]))
            name = op_name(strings[layer_key[0]], strings[layer_key[1]])
            found[(*layer_key, sizes)] = _Layer(layer_key, name, sizes, precision)
    return list(found.values())


def _target(context: RuleContext, precision: str, dtypes: InputDtypes, op: str) -> str:
    """The Tensor Core precision that the op has, or is kept from by its sizes."""
    if precision in ("fp16", "bf16", "fp8", "tf32"):
        return precision
    facts = context.facts
    allowed = facts.cudnn_allow_tf32 if is_convolution(op) else facts.matmul_allow_tf32
    return "tf32" if precision_of_dtypes(dtypes) == "fp32" and allowed else ""


def _odd(op: str, shapes: InputShapes, precision: str) -> tuple[Size, ...]:
    wrong = misaligned(product_sizes(op, shapes), precision)
    if op in _PRODUCTS:
        return tuple(size for size in wrong if size.label in _NAMES and size.value > 1)
    if is_convolution(op):
        return tuple(size for size in wrong if size.label == "output channels" or size.value >= _FIRST_LAYER)
    return ()


def _launches(context: RuleContext, layers: list[_Layer]) -> Bools:
    """Matrix kernels of these layers, forward and backward, whose inputs have an odd size."""
    groups = context.view.groups
    row, group = context.view.launch_op, context.view.launch_group
    values: dict[tuple[int, int], set[int]] = {}
    for layer in layers:
        values.setdefault(layer.layer_key, set()).update(size.value for size in layer.sizes)
    matrix = context.kernel_launches & context.view.launch_in_matrix_op & (row >= 0)
    keys, inverse = np.unique(np.stack((row[matrix], group[matrix])), axis=1, return_inverse=True)
    chosen = np.zeros(keys.shape[1], dtype=np.bool_)
    for at, (op, of_group) in enumerate(keys.T.tolist()):
        odd = values.get((int(groups.module[of_group]), int(groups.op_type[of_group])), set())
        sizes = {size for shape in tensors_of(context.profile.shapes_of(op)) for size in shape}
        chosen[at] = bool(odd & sizes)
    result = np.zeros(len(row), dtype=np.bool_)
    result[np.flatnonzero(matrix)[chosen[inverse.reshape(-1)]]] = True
    return result


def _estimate(context: RuleContext, launches: Bools, layers: list[_Layer], time: int) -> Saving | None:
    """By measured ops of the same kind with even and with odd sizes; None where there are none."""
    precision = layers[0].precision
    wanted = multiple(precision) or 1
    stays = {end: np.ones(len(launches)) for end in ("low", "expected", "high")}
    known = np.zeros(len(launches), dtype=np.bool_)
    ops = matrix_ops(context, launches)
    for one, ratio in zip(ops, OpRatios(context).aligned(ops, wanted, precision), strict=True):
        if ratio is None:
            continue
        mine = launches & (context.view.launch_op == one.op)
        known |= mine
        for end, shift in (("low", 1.0), ("expected", 0.0), ("high", -1.0)):
            stays[end][mine] = min(ratio.at(shift), 1.0)
    if not known.any():
        return None
    after = round(
        float((context.profile.launches.duration_ns * stays["expected"])[launches].sum()) / context.selection.count
    )
    return step_saving(
        context,
        change(context, (launches, stays["low"])),
        change(context, (launches, stays["expected"])),
        change(context, (launches, stays["high"])),
        f"The layers' matrix kernels take {milliseconds(time)} a step. With sizes that are multiples of {wanted} they "
        f"should take {milliseconds(after)}, as measured ops of the same kinds do with even and with odd sizes (within "
        "one standard deviation).",
    )


def _rounded(layers: list[_Layer], wanted: int) -> str:
    parts = []
    for layer in layers:
        for size in layer.sizes:
            better = _up(size.value, _TILE) if size.value > _TILE * _TILE // 8 else _up(size.value, wanted)
            label = _NAMES.get(size.label, size.label)
            parts.append(
                f"{layer.name} {label} {size.value} to {_up(size.value, wanted)}"
                + (f" or {better}" if better != _up(size.value, wanted) else "")
            )
    return listed(parts, 6)


def _up(size: int, wanted: int) -> int:
    return -(-size // wanted) * wanted


def _code(layer: _Layer, wanted: int) -> str:
    size = layer.sizes[0].value
    return f"size = -(-{size} // {wanted}) * {wanted}  # {_up(size, wanted)} instead of {size}\n"
