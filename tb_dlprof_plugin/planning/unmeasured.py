"""Kernels of classes whose time in another precision was never measured: they widen a forecast, and many refuse it.

Elementwise ops and reductions read and write each value once, whatever they compute: measured ones stand for them.
Nothing stands for others. Rows scattered with atomics, windows in 3-D and recurrent layers took from a hundredth to
2,000 times as long in half precision on an H100 (`lab/op_speed`, draw "irregular").
"""

from __future__ import annotations

import math

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Role
from tb_dlprof_plugin.names.ops import TRITON_KERNEL
from tb_dlprof_plugin.profile_view import ProfileView

MOST_PERCENT = 10.0
"""Of the GPU time, in kernels that were never measured: beyond it nothing is said of the step. Ours: with the spread
below they then move it by a tenth or two, as much as the CPU's share does."""
SPREAD = math.log(3.0)
"""Of the logarithm of their time. Ours: of the measured ops that scatter or gather rows 93 % took between a third and
three times as long in half precision, of convolutions of unusual kinds 60 %."""

ELEMENTWISE = frozenset({
    "abs", "add", "addcdiv", "addcmul", "amax", "amin", "avg_pool1d", "bernoulli", "bitwise_not", "cat", "chunk",
    "clamp", "clamp_min", "clamp_max", "clone", "concat", "constant_pad_nd", "contiguous", "copy", "cos", "detach",
    "div", "dropout", "elu", "eq", "erf", "exp", "expand", "expand_as", "fill", "flatten", "flip", "floor", "ge",
    "gelu", "glu", "group_norm", "gt", "hardsigmoid", "hardswish", "hardtanh", "instance_norm", "layer_norm", "le",
    "leaky_relu", "lerp", "log", "log_softmax", "lt", "masked_fill", "max", "maximum", "mean", "min", "minimum",
    "mish", "mul", "native_dropout", "ne", "neg", "norm", "ones_like", "pad", "permute", "pixel_shuffle",
    "pixel_unshuffle", "pow", "reciprocal", "relu", "relu6", "repeat", "reshape", "rms_norm", "roll", "rsqrt", "rsub",
    "select", "selu", "sigmoid", "sign", "silu", "sin", "slice", "softmax", "softplus", "split", "split_with_sizes",
    "sqrt", "square", "squeeze", "stack", "std", "sub", "sum", "t", "tanh", "threshold", "to", "transpose", "tril",
    "triu", "true_divide", "unbind", "unflatten", "unfold", "unsqueeze", "upsample_nearest2d", "var", "view", "where",
    "zeros_like", "zero",
})  # fmt: skip
"""Ops of which each value is read and written once, in both directions; names without "aten::" and a last "_"."""


def extension_kernels(view: ProfileView) -> Bools:
    """Per launch whether neither an op of PyTorch nor generated code launched its kernel; the optimizer's take no part
    in autocast."""
    ops = view.profile.ops
    foreign = ~view.profile.ops_named(lambda name: name.startswith(("aten::", TRITON_KERNEL)))
    foreign &= ops.role != Role.OPTIMIZER
    found: Bools = take_or(foreign, view.launch_op, False) & view.launch_is_kernel & ~view.launch_is_collective
    return found


def refusal(names: dict[str, float], whole_ns: float, precision: str) -> str:
    """Why nothing can be said of a step; "" where enough of it was measured.

    Args:
        names: GPU time (ns) of kernels that were never measured, by op.
        whole_ns: GPU time of all kernels.
        precision: that they would run in.
    """
    share = percent(sum(names.values()), whole_ns) or 0.0
    if share <= MOST_PERCENT:
        return ""
    worst = sorted(names, key=lambda name: -names[name])[:3]
    return (
        f"cannot be said: {share:.0f} % of its GPU time is in kernels whose time in {precision.upper()} was never "
        f"measured ({', '.join(worst)}). Record the run in {precision.upper()} and compare the two."
    )
