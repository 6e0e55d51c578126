"""The outputs of visited ops: their shapes if the inputs determine them, else what is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
