"""Counts the signs of a profile's precision: matrix time by precision, casts, wrappers, libraries' kernels.

Plain counts over the whole recording; `precision_mode` interprets them.

How each way to mixed precision looks in a trace:

- ``torch.autocast`` casts in the dispatcher: the recorded op holds the casts and then the same op again
  (``aten::conv2d`` > ``aten::to``, ``aten::conv2d``).
- Apex O1 patches Python functions (apex/amp/wrap.py): the casts are before the op, not in it.
- Apex' own kernels are ``multi_tensor_apply_kernel`` outside ``at::native`` with a functor of amp_C: ``ScaleFunctor<in,
  out>`` (csrc/multi_tensor_scale_kernel.cu) unscales gradients, and under O2 also changes between FP16 gradients or
  weights and FP32 masters (apex/amp/_process_optimizer.py).
- Transformer Engine's autograd functions are ops (``_LayerNormLinear``, before 2.0 ``tex_ts::te_gemm_ts``), its own
  kernels are in the namespace ``transformer_engine``, and its FP8 products are cuBLAS kernels of type e4m3 or e5m2
  (TransformerEngine issue 1391).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.duration_stats import sums
from tb_dlprof_plugin.model.dtypes import FLOAT, dtype_named
from tb_dlprof_plugin.model.grouping import group_rows
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.precision import op_precisions
from tb_dlprof_plugin.model.profile import Attribution, Bools, CallKind, Ints, Role, Verdict
from tb_dlprof_plugin.model.shapes import shape_at
from tb_dlprof_plugin.model.tree import any_in_subtree, nearest, outermost
from tb_dlprof_plugin.names.kernel_verdicts import cuda_core_precision
from tb_dlprof_plugin.names.ops import COPY, OPTIMIZER_STEP
from tb_dlprof_plugin.names.tensor_core_eligibility import is_convolution, is_depthwise, is_matrix_op, is_vector_op
from tb_dlprof_plugin.profile_view import ProfileView

HALF = ("fp16", "bf16")
_TRANSFORMER_ENGINE_OPS = frozenset({
    "_Linear", "_LinearBackward", "_LayerNormLinear", "_LayerNormLinearBackward", "_LayerNormMLP",
    "_LayerNormMLPBackward", "_GroupedLinear", "_GroupedLinearBackward",
})  # fmt: skip
_TRANSFORMER_ENGINE_PREFIXES = ("tex_ts::", "transformer_engine::")
_APEX_FUNCTOR = re.compile(r"\b(\w+Functor)<(?:([\w:]+)(?:, ?([\w:]+))?)?")
_AMP_C_SCALING = frozenset({"ScaleFunctor", "AxpbyFunctor", "UnscaleFunctor"})


@dataclass(frozen=True, slots=True)
class Part:
    """Matrix work of one op of the model in one precision ("" for unknown), forward and backward together."""

    module: str
    op_type: str
    precision: str
    ns: int


@dataclass(frozen=True, slots=True)
class Signals:
    """Counts over the whole recording.

    Attributes:
        parts: kernel time of matrix work; without a GPU the CPU time of the matrix ops.
        product_ns: the same without attention, by precision.
        half_ops: forward matrix ops whose inputs are FP16 or BF16.
        wrapped_ops: those of them that autocast wrapped: inside an op of the same name.
        half_weights: different shapes of weights that they multiply by.
        cast_weights: those of them that were cast from FP32 in the recording.
        casts: casts of FP32 tensors by what they were cast to.
        shapes_recorded: whether any op has its input shapes.
        gradscaler_ops: calls of GradScaler's ``aten::_amp_*``.
        apex: launches of kernels of Apex' amp_C by what they convert, such as ("fp16", "fp32"), outside and inside the
            optimizer; the optimizers' own functors are left out.
        transformer_engine_ops, transformer_engine_kernels: calls and launches.
        scaled_products: calls of ``aten::_scaled_mm``.
        compiled_kernels: launches of Triton kernels that torch.compile made, and how many of them cast.
        optimizer_steps: annotations of ``Optimizer.step``.
    """

    parts: tuple[Part, ...]
    product_ns: dict[str, int]
    half_ops: int
    wrapped_ops: int
    half_weights: int
    cast_weights: int
    casts: dict[str, int]
    shapes_recorded: bool
    gradscaler_ops: int
    apex: dict[tuple[str, str], int]
    transformer_engine_ops: int
    transformer_engine_kernels: int
    scaled_products: int
    compiled_kernels: int
    casting_compiled_kernels: int
    optimizer_steps: int


def precision_signals(view: ProfileView) -> Signals:
    """All signals of a profile."""
    profile = view.profile
    ops, calls, strings = profile.ops, profile.calls, profile.strings
    names = [strings[i] for i in ops.name.tolist()]
    calls_of_op = np.bincount(calls.op, minlength=len(ops))
    matrix = np.array([is_matrix_op(name) and not is_vector_op(name) for name in names], dtype=np.bool_)
    parts, product_ns = _parts(view, matrix)
    wrapped, half = _half_ops(view, matrix)
    cast_shapes, casts = _casts(view, names)
    weights = _weights(view, half)
    compiled, casting = _compiled(view)

    def count(wanted: Callable[[str], bool]) -> int:
        return int(calls_of_op[view.profile.ops_named(wanted)].sum())

    return Signals(
        parts=parts,
        product_ns=product_ns,
        half_ops=int(half.sum()),
        wrapped_ops=int((half & wrapped).sum()),
        half_weights=len(weights),
        cast_weights=len(weights & cast_shapes),
        casts=casts,
        shapes_recorded=bool(ops.shapes.any()),
        gradscaler_ops=count(lambda name: name.startswith("aten::_amp_")),
        apex=_apex(view),
        transformer_engine_ops=count(_of_transformer_engine),
        transformer_engine_kernels=_launches_named(view, "transformer_engine::"),
        scaled_products=count("aten::_scaled_mm".__eq__),
        compiled_kernels=compiled,
        casting_compiled_kernels=casting,
        optimizer_steps=count(lambda name: name.startswith(OPTIMIZER_STEP)),
    )


def _of_transformer_engine(name: str) -> bool:
    return name in _TRANSFORMER_ENGINE_OPS or name.startswith(_TRANSFORMER_ENGINE_PREFIXES)


def _parts(view: ProfileView, matrix: Bools) -> tuple[tuple[Part, ...], dict[str, int]]:
    profile = view.profile
    calls, ops, strings = profile.calls, profile.ops, profile.strings
    of_op = op_precisions(profile)
    is_matrix = matrix[calls.op]
    times: Counter[tuple[str, str, str]] = Counter()
    products: Counter[str] = Counter()
    if profile.has_gpu:
        rows, inner = _matrix_launches(view, is_matrix)
        launches, kernels = profile.launches, profile.kernels
        op = take_or(calls.op, inner, -1)
        keys = (launches.kernel[rows], op, view.launch_group[rows])
        for kernel, owner, place, ns in _row_sums(keys, launches.duration_ns[rows]):
            inputs = of_op[owner] if owner >= 0 else ""
            precision = _of_tensor_cores(view, kernel) or inputs or _of_name(view, kernel)
            times[(*_place(view, place), precision)] += ns
            if strings[kernels.family[kernel]] != "attention":
                products[precision] += ns
    else:
        rows = np.flatnonzero(is_matrix & (outermost(is_matrix, view.call_parent) == np.arange(len(calls))))
        # One more than the duration, so that calls of 0 ns count.
        for owner, place, ns in _row_sums((calls.op[rows], view.call_group[rows]), calls.duration_ns[rows] + 1):
            times[(*_place(view, place), of_op[owner])] += ns
            if "attention" not in strings[ops.name[owner]]:
                products[of_op[owner]] += ns
    parts = tuple(Part(module, op_type, precision, ns) for (module, op_type, precision), ns in times.items())
    return parts, dict(products)


def _row_sums(keys: tuple[Ints, ...], values: Ints) -> list[list[int]]:
    """Each different row of ``keys`` with the sum of its values."""
    unique, inverse = group_rows(*keys)
    return np.vstack((*unique, sums(inverse, values, len(unique[0])))).T.tolist()  # type: ignore[no-any-return]


def _matrix_launches(view: ProfileView, is_matrix: Bools) -> tuple[Ints, Ints]:
    """Rows of the launches of matrix work, and the call of the matrix op around each, -1 where no such op is recorded.

    Kernels that only serve the product (changes of layout, sums over its parts) are left out: they have no precision of
    their own. So are depthwise convolutions and products with vectors, which are not matrix work.
    """
    profile = view.profile
    calls, ops, launches, kernels, strings = (
        profile.calls, profile.ops, profile.launches, profile.kernels, profile.strings,
    )  # fmt: skip
    owner = np.full(len(launches), -1, dtype=np.int64)
    if len(calls):
        around = nearest(is_matrix, view.call_parent)
        owner = take_or(around, launches.call, -1)
    verdict = kernels.tensor_core[launches.kernel]
    wanted = view.launch_computes_product | (verdict == Verdict.YES) | ((verdict == Verdict.UNKNOWN) & (owner >= 0))
    op = take_or(calls.op, owner, view.launch_op)
    other = np.array(
        [
            is_vector_op(strings[name])
            or (is_convolution(strings[name]) and is_depthwise(strings[name], profile.input_shapes[row]))
            for name, row in zip(ops.name.tolist(), ops.shapes.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    if len(other):
        wanted &= ~take_or(other, op, False)
    wanted &= view.launch_is_kernel
    rows = np.flatnonzero(wanted & (launches.attribution != Attribution.ORPHAN))
    return rows, owner[rows]


def _of_tensor_cores(view: ProfileView, kernel: int) -> str:
    """Precision of a Tensor Core kernel, "" for any other. What runs off them has the precision of its inputs."""
    index = int(view.profile.kernels.precision[kernel])
    return view.profile.strings[index]


def _of_name(view: ProfileView, kernel: int) -> str:
    kernels, strings = view.profile.kernels, view.profile.strings
    off = kernels.tensor_core[kernel] == Verdict.NO
    return cuda_core_precision(strings[kernels.name[kernel]]) if off else ""


def _place(view: ProfileView, group: int) -> tuple[str, str]:
    if group < 0:
        return "", ""
    groups, strings = view.groups, view.profile.strings
    return strings[groups.module[group]], strings[groups.op_type[group]]


def _half_ops(view: ProfileView, matrix: Bools) -> tuple[Bools, Bools]:
    """Which calls autocast wrapped, and which are outermost forward ops that multiply FP16 or BF16 matrices."""
    profile = view.profile
    calls, ops = profile.calls, profile.ops
    parent, name = view.call_parent, ops.name[calls.op]
    half = np.array([precision in HALF for precision in op_precisions(profile)], dtype=np.bool_)
    forward = np.isin(ops.role[calls.op], (Role.FORWARD, Role.OTHER))
    holds = any_in_subtree((matrix & half)[calls.op], view.call_end)
    top = ops.top[calls.op] & forward & holds
    # The same op directly inside: only a dispatcher that comes back, as autocast's, leaves that.
    inside = (parent >= 0) & (name == name[np.maximum(parent, 0)]) & (ops.kind[calls.op] == CallKind.OP) & holds
    wraps = np.zeros(len(calls), dtype=np.bool_)
    wraps[parent[inside]] = True
    return any_in_subtree(wraps, view.call_end), top


def _casts(view: ProfileView, names: list[str]) -> tuple[set[tuple[int, ...]], dict[str, int]]:
    """Shapes of FP32 tensors that the forward pass cast to FP16 or BF16, and all such casts by target."""
    profile = view.profile
    ops = profile.ops
    calls_of_op = np.bincount(profile.calls.op, minlength=len(ops))
    shapes: set[tuple[int, ...]] = set()
    casts: Counter[str] = Counter()
    for op in np.flatnonzero(np.array([name == COPY for name in names], dtype=np.bool_)).tolist():
        # The first input is written, the second is read.
        types = profile.dtypes_of(op)
        if len(types) < 2 or types[1] != FLOAT or types[0].precision not in HALF:
            continue
        casts[types[0].precision] += int(calls_of_op[op])
        shape = shape_at(profile.shapes_of(op), 1)
        if shape is not None and ops.role[op] == Role.FORWARD:
            shapes.add(tuple(sorted(shape)))
    return shapes, dict(casts)


def _weights(view: ProfileView, half: Bools) -> set[tuple[int, ...]]:
    """Shapes of the second inputs of the ops, each sorted: a linear layer's product takes the transposed weight."""
    ops, strings = view.profile.ops, view.profile.strings
    shapes = set()
    for op in np.unique(view.profile.calls.op[half]).tolist():
        shape = shape_at(view.profile.shapes_of(op), 1)
        # Products of two activations have batches on both sides; weights of convolutions have as many sizes as images.
        convolution = "conv" in strings[ops.name[op]]
        if shape is not None and (convolution or len(shape) == 2):
            shapes.add(tuple(sorted(shape)))
    return shapes


def _apex(view: ProfileView) -> dict[tuple[str, str], int]:
    profile = view.profile
    launched = np.bincount(profile.launches.kernel, minlength=len(profile.kernels))
    conversions: Counter[tuple[str, str]] = Counter()
    for kernel, times in enumerate(launched.tolist()):
        if converted := apex_conversion(profile.strings[profile.kernels.name[kernel]]):
            conversions[converted] += times
    return dict(conversions)


def apex_conversion(kernel: str) -> tuple[str, str] | None:
    """What a kernel of Apex' amp_C converts, such as ("fp16", "fp32"); None for any other kernel.

    torch's own multi-tensor kernels are in ``at::native``, Transformer Engine's copies in ``transformer_engine``.
    """
    if "multi_tensor_apply_kernel" not in kernel or "at::native" in kernel or "transformer_engine" in kernel:
        return None
    functor = _APEX_FUNCTOR.search(kernel)
    if functor is None or functor[1] not in _AMP_C_SCALING:
        return None
    first, second = (dtype_named(name or "").precision for name in functor.groups()[1:])
    return first, second or first


def _launches_named(view: ProfileView, text: str) -> int:
    profile = view.profile
    named = np.array([text in profile.strings[i] for i in profile.kernels.name.tolist()], dtype=np.bool_)
    return int(named[profile.launches.kernel].sum()) if len(named) else 0


def _compiled(view: ProfileView) -> tuple[int, int]:
    """Launches of kernels that torch.compile made, and of those that cast: Inductor names kernels after their ops."""
    profile = view.profile
    launched = np.bincount(profile.launches.kernel, minlength=len(profile.kernels)).tolist()
    names = [profile.strings[i] for i in profile.kernels.name.tolist()]
    made = [(name, times) for name, times in zip(names, launched, strict=True) if name.startswith("triton_")]
    return sum(times for _, times in made), sum(times for name, times in made if "_to_copy" in name)
