"""Which ops of an FP32 run would compute in half precision under autocast, and which casts that needs.

What autocast does with an op is in PyTorch's documentation, *Automatic Mixed Precision package - torch.amp*, "CUDA Ops
that can autocast to float16", "... to float32" and "... that promote to the widest input type", and in the op registry
of ``aten/src/ATen/autocast_mode.h``. Names are those of the ops without "aten::".

A trace records shapes, not tensors. So the ops of the forward pass are visited in order, and each input is matched with
the last unused output of its shape, else with the last one of its shape: it has the type that autocast would have given
it. A parameter is a tensor for which the backward pass accumulates a gradient. Of an addition with two inputs of one
shape one is a residual: it is matched with the last sum of that shape in its module, else with what the module was
given of it, else with the last sum or the first tensor of that shape.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.model.dtypes import FLOAT, InputDtypes
from tb_dlprof_plugin.model.profile import CallKind, Role
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList, shape_at
from tb_dlprof_plugin.names.ops import ACCUMULATE_GRAD
from tb_dlprof_plugin.profile_view import ProfileView

Rule = Literal["half", "fp32", "follow"]

HALF = frozenset({
    "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "convolution", "cudnn_convolution", "cudnn_convolution_transpose", "prelu", "addmm", "addmv",
    "addr", "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm", "chain_matmul",
    "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell", "gru_cell", "rnn_tanh_cell",
    "rnn_relu_cell", "lstm", "gru", "rnn_tanh", "rnn_relu", "_cudnn_rnn", "_scaled_dot_product_flash_attention",
    "scaled_dot_product_attention",
})  # fmt: skip
FP32 = frozenset({
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh",
    "tan", "pow", "softplus", "layer_norm", "native_layer_norm", "group_norm", "native_group_norm",
    "frobenius_norm", "nuclear_norm", "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss",
    "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss",
    "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss",
    "multi_margin_loss", "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp",
    "prod", "softmax", "log_softmax", "_softmax", "_log_softmax", "cumprod", "cumsum", "sum", "norm",
    "linalg_vector_norm", "linalg_matrix_norm", "cross_entropy_loss", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "rms_norm", "_fused_rms_norm",
})  # fmt: skip


def rule_of(op: str) -> Rule:
    """What autocast does with the op: computes in half precision, in FP32, or follows its inputs' types."""
    name = op.removeprefix("aten::")
    if name in HALF:
        return "half"
    return "fp32" if name in FP32 else "follow"


Shape = tuple[int, ...]

VIEWS = frozenset({
    "view", "reshape", "transpose", "permute", "flatten", "unflatten", "t", "squeeze", "unsqueeze", "contiguous",
    "movedim", "numpy_T", "swapaxes", "_unsafe_view", "view_as", "reshape_as", "_reshape_alias",
})  # fmt: skip
"""Ops whose output has as many elements as their input."""


@dataclass(slots=True)
class Output:
    """``shape`` is None until an input shows it; then ``count`` is the number of elements, None where unknown too."""

    shape: Shape | None
    count: int | None
    half: bool
    differentiated: bool = True
    taken: bool = False

    def fits(self, shape: Shape) -> bool:
        """Whether an input of this shape can be it."""
        if self.shape is not None:
            return self.shape == shape
        return self.count is None or self.count == math.prod(shape)


_SAME = frozenset({
    "relu", "relu_", "gelu", "silu", "silu_", "hardswish", "hardswish_", "hardsigmoid", "sigmoid", "tanh", "dropout",
    "dropout_", "feature_dropout", "batch_norm", "layer_norm", "group_norm", "softmax", "log_softmax", "leaky_relu",
    "leaky_relu_", "clone", "contiguous", "detach", "pow", "neg", "rsqrt", "exp", "mul", "mul_", "add", "add_", "sub",
    "sub_", "div", "div_", "hardtanh", "hardtanh_", "elu", "mish", "masked_fill", "where", "rms_norm", "relu6",
})  # fmt: skip


def output_shape(name: str, inputs: tuple[Shape, ...]) -> Shape | None:
    """Shape of the output, None if the inputs do not determine it."""
    if name in _SAME:
        return max(inputs, key=lambda shape: (math.prod(shape), len(shape)))
    if not all(inputs[:3]):
        # A product has no scalar among its matrices: these shapes are not its inputs.
        return None
    if name == "linear" and len(inputs) >= 2:
        return (*inputs[0][:-1], inputs[1][0])
    if name in ("matmul", "mm", "bmm") and len(inputs) >= 2 and len(inputs[0]) >= 2 and len(inputs[1]) >= 2:
        return (*inputs[0][:-1], inputs[1][-1])
    if name == "addmm" and len(inputs) >= 3:
        return (inputs[1][0], inputs[2][-1])
    if name == "scaled_dot_product_attention" and len(inputs) >= 3:
        return (*inputs[0][:-1], inputs[2][-1])
    return None


_SUMS = frozenset({"add", "add_", "__add__", "__iadd__"})
_REMEMBERED = 64
"""Number of recent outputs that an input may match: only residuals are older."""
_MOVES = ("to", "_to_copy", "copy_")
_JOINS = ("cat", "concat", "stack")
"""Ops of a list of tensors that promote to the widest type."""
_ATTENTION, _BY_PRODUCTS = "scaled_dot_product_attention", ("_scaled_dot_product_attention_math", "_safe_softmax")
"""Attention that no fused kernel computes takes FP32 copies of inputs in half precision, and gives half precision
(`allowFP16BF16ReductionMathSDP` in `aten/src/ATen/native/transformers/attention.cpp`). A learned bias prevents fused
ones in half precision, too; what else does in FP32, such as a number of heads, need not."""
_MASK = 3


@dataclass(slots=True)
class Cast:
    """A tensor that autocast converts: ``elements``; ``parameter``: a weight, converted once an iteration."""

    elements: int
    parameter: bool
    differentiated: bool


@dataclass(slots=True)
class FlowOp:
    """An op call that autocast decides on: ``half`` where it computes in half precision."""

    call: int
    half: bool
    casts: list[Cast]


@dataclass(slots=True)
class Flow:
    """The forward ops of one iteration; ``backward_half`` is by module and op type (rows of strings).

    ``parameter_elements`` is the number of elements of all parameters that got a gradient, ``parameters`` how many,
    and ``parameter_shapes`` their different shapes.
    """

    ops: list[FlowOp] = field(default_factory=list)
    backward_half: dict[tuple[int, int], bool] = field(default_factory=dict)
    parameter_elements: int = 0
    parameters: int = 0
    parameter_shapes: frozenset[Shape] = frozenset()


def float_shapes(shapes: InputShapes, dtypes: InputDtypes) -> tuple[Shape, ...]:
    """Shapes of the inputs that are FP32 tensors."""
    return tuple(
        shape
        for shape, dtype in zip(shapes, dtypes, strict=False)
        if dtype == FLOAT and shape is not None and not isinstance(shape, TensorList)
    )


def listed_shapes(shapes: InputShapes) -> tuple[Shape, ...]:
    """Shapes of the tensors in lists, whose types are not recorded."""
    return tuple(inner for shape in shapes if isinstance(shape, TensorList) for inner in shape if inner)


def _first_shape(shapes: InputShapes) -> Shape | None:
    """Shape of a first input that is a tensor of any type."""
    return (shape_at(shapes, 0) or ()) if shapes else None


def flow(view: ProfileView, iteration: int) -> Flow:
    """The forward pass of one iteration, as autocast would run it; kept with the view."""
    return view.kept((f"{__name__}.flow", iteration), lambda: _Walk(view, iteration).flow)


class _Walk:
    def __init__(self, view: ProfileView, iteration: int) -> None:
        profile = self._profile = view.profile
        self._ops, self._strings, self._calls = profile.ops, profile.strings, profile.calls
        self.flow = Flow()
        self._outputs: deque[Output] = deque(maxlen=_REMEMBERED)
        self._first: dict[Shape, bool] = {}
        self._sum: dict[Shape, bool] = {}
        self._open: list[str] = []
        self._given: dict[str, dict[Shape, bool]] = {}
        self._sum_of: dict[str, dict[Shape, bool]] = {}
        rows = np.flatnonzero(view.call_iteration == iteration)
        rows = rows[np.argsort(self._calls.start_ns[rows], kind="stable")]
        # Of compiled code autocast decided while it was compiled.
        compiled = compiled_calls(view)
        self._parameters = self.flow.parameter_shapes = self._accumulated(rows)
        votes: dict[tuple[int, int], list[bool]] = {}
        until = -1
        forward = np.isin(self._ops.role, (Role.FORWARD, Role.OTHER)) & (self._ops.kind == CallKind.OP)
        forward &= profile.ops_named(lambda name: name.startswith("aten::"))
        for row in rows[forward[self._calls.op[rows]] & ~compiled[rows]].tolist():
            op = int(self._calls.op[row])
            start = int(self._calls.start_ns[row])
            if start < until:
                continue
            plain = self._strings[self._ops.name[op]].removeprefix("aten::")
            if rule_of(plain) == "follow" and self._is_composite(row):
                continue
            until = start + int(self._calls.duration_ns[row])
            half = self._visit(row, op, plain)
            top = view.call_top[row]
            key_op = int(self._calls.op[top]) if top >= 0 else op
            key = (int(self._ops.module[key_op]), int(self._ops.op_type[key_op]))
            votes.setdefault(key, []).append(half)
        self.flow.backward_half = {key: 2 * sum(v) > len(v) for key, v in votes.items()}

    def _accumulated(self, rows: np.ndarray) -> frozenset[Shape]:  # type: ignore[type-arg]
        shapes: list[Shape] = []
        accumulates = self._profile.ops_named(lambda name: name == ACCUMULATE_GRAD)
        op = self._calls.op[rows]
        for each in op[accumulates[op]].tolist():
            shapes += self._inputs(each)[:1]
        self.flow.parameters = len(shapes)
        self.flow.parameter_elements = sum(math.prod(shape) for shape in shapes)
        return frozenset(shapes)

    def _inputs(self, op: int) -> tuple[Shape, ...]:
        return float_shapes(self._profile.shapes_of(op), self._profile.dtypes_of(op))

    def _is_composite(self, row: int) -> bool:
        """Whether an op without an autocast rule contains one that has a rule, which then decides."""
        depth, calls = int(self._calls.depth[row]), self._calls
        for inner in range(row + 1, min(row + 64, len(calls.depth))):
            if calls.depth[inner] <= depth:
                return False
            op = int(calls.op[inner])
            if self._ops.kind[op] == CallKind.OP and rule_of(self._strings[self._ops.name[op]]) != "follow":
                return True
        return False

    def _is_by_products(self, row: int) -> bool:
        """Whether an attention consists of matrix products and a softmax."""
        depth, calls = int(self._calls.depth[row]), self._calls
        for inner in range(row + 1, min(row + 64, len(calls.depth))):
            if calls.depth[inner] <= depth:
                return False
            if self._strings[self._ops.name[int(calls.op[inner])]].removeprefix("aten::") in _BY_PRODUCTS:
                return True
        return False

    def _visit(self, row: int, op: int, name: str) -> bool:
        inputs = self._inputs(op)
        if name in _MOVES:
            # Data that comes from the CPU or from integers is FP32, and has no gradient.
            shape = _first_shape(self._profile.shapes_of(op))
            self._outputs.append(Output(shape, None, False, differentiated=False))
            return False
        rule = rule_of(name)
        if name in _JOINS:
            half = self._is_joined_in_half(listed_shapes(self._profile.shapes_of(op)))
            self.flow.ops.append(FlowOp(row, half, []))
            return half
        module = self._strings[int(self._ops.module[op])]
        self._enter(module)
        taken = list(zip(inputs, self._taken(name, inputs, module), strict=True))
        for path in self._open:
            for shape, (is_half, _) in taken:
                self._given[path].setdefault(shape, is_half)
        casts: list[Cast] = []
        biased = len(taken) > _MASK and taken[_MASK][1][1]
        if name == _ATTENTION and biased and self._is_by_products(row):
            halves = [self._cast(shape, gradient) for shape, (is_half, gradient) in taken if is_half]
            self._produce(name, inputs, True, any(gradient for _, (_, gradient) in taken), module)
            self.flow.ops.append(FlowOp(row, False, halves))
            return False
        if rule == "half":
            half = bool(inputs)
            casts = [self._cast(shape, gradient) for shape, (is_half, gradient) in taken if not is_half and shape]
        elif rule == "fp32":
            half = False
            casts = [self._cast(shape, gradient) for shape, (is_half, gradient) in taken if is_half]
        else:
            types = [is_half for shape, (is_half, _) in taken if shape not in self._parameters or len(shape) > 1]
            # The widest type wins, except that a batch norm computes in that of its images.
            half = bool(types) and (types[0] if "batch_norm" in name else all(types))
        if inputs:
            differentiated = any(gradient for _, (_, gradient) in taken)
            self._produce(name, inputs, half, differentiated, module)
            self.flow.ops.append(FlowOp(row, half, casts))
        return half

    def _is_joined_in_half(self, shapes: tuple[Shape, ...]) -> bool:
        """Whether all tensors of a list that are known are in half precision; the list takes none of them away."""
        known = [
            next((output.half for output in reversed(self._outputs) if output.fits(shape)), None) for shape in shapes
        ]
        halves = [half for half in known if half is not None]
        return bool(halves) and all(halves)

    def _enter(self, module: str) -> None:
        """The modules around an op: those that begin with it have no data yet on what they were given."""
        parts = module.split(".") if module else []
        paths = [".".join(parts[: depth + 1]) for depth in range(len(parts))]
        for path in paths:
            if path not in self._open:
                self._given[path], self._sum_of[path] = {}, {}
        self._open = paths

    def _residual(self, shape: Shape, module: str) -> bool:
        """Whether the older one of two tensors of a shape that a module adds is in half precision."""
        for known in (self._sum_of.get(module, {}), self._given.get(module, {}), self._sum, self._first):
            if shape in known:
                return known[shape]
        return False

    def _cast(self, shape: Shape, differentiated: bool) -> Cast:
        parameter = shape in self._parameters
        return Cast(math.prod(shape), parameter, parameter or differentiated)

    def _taken(self, name: str, inputs: tuple[Shape, ...], module: str) -> list[tuple[bool, bool]]:
        """Of each input whether it is in half precision, and whether it has a gradient."""
        seen: set[Shape] = set()
        taken = []
        for shape in inputs:
            if shape in self._parameters:
                taken.append((False, True))
            elif shape in seen and name in _SUMS:
                taken.append((self._residual(shape, module), True))
            else:
                output = self._find(shape)
                taken.append((output.half, output.differentiated) if output else (False, True))
            seen.add(shape)
        return taken

    def _find(self, shape: Shape) -> Output | None:
        """The output that an input of this shape is matched with."""
        fitting = [output for output in reversed(self._outputs) if output.fits(shape)]
        matched = next((output for output in fitting if not output.taken), fitting[0] if fitting else None)
        if matched is None:
            return None
        matched.taken, matched.shape = True, shape
        self._first.setdefault(shape, matched.half)
        return matched

    def _produce(self, name: str, inputs: tuple[Shape, ...], half: bool, differentiated: bool, module: str) -> None:
        shape = output_shape(name, inputs)
        count = math.prod(inputs[0]) if name in VIEWS else None
        self._outputs.append(Output(shape, count, half, differentiated))
        if shape is not None:
            self._first.setdefault(shape, half)
            if name in _SUMS:
                self._sum[shape] = half
                self._sum_of.setdefault(module, {})[shape] = half
