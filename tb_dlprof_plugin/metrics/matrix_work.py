"""FLOPs and least bytes of one matrix op, from its name, shapes and data types.

The rules are those of ``torch.utils.flop_counter``: a multiply-add is two FLOPs, biases and the softmax of an attention
are free, a causal mask saves nothing. Where torch counts the weight gradient of a grouped convolution as if it had no
groups, the groups are counted here. The least bytes are every input read once and every output written once. What the
recorded shapes do not determine is None.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tb_dlprof_plugin.model.dtypes import InputDtypes, element_bytes
from tb_dlprof_plugin.model.shapes import InputShapes, Shape, TensorList, shape_at

_PRODUCTS: dict[str, tuple[int, int, int | None]] = {
    "aten::mm": (0, 1, None), "aten::bmm": (0, 1, None), "aten::_scaled_mm": (0, 1, None),
    "aten::_int_mm": (0, 1, None), "aten::addmm": (1, 2, 0), "aten::addmm_": (1, 2, 0),
    "aten::_addmm_activation": (1, 2, 0), "aten::baddbmm": (1, 2, 0), "aten::baddbmm_": (1, 2, 0),
    "aten::addbmm": (1, 2, 0), "aten::_grouped_mm": (0, 1, None), "aten::_scaled_grouped_mm": (0, 1, None),
}  # fmt: skip
"""Which inputs are the two factors, and which is added."""
_LINEAR = frozenset({"aten::mkldnn_linear", "aten::_mkldnn_linear"})
_FORWARD_CONVOLUTIONS = frozenset({
    "aten::cudnn_convolution", "aten::cudnn_convolution_relu", "aten::cudnn_convolution_add_relu",
    "aten::miopen_convolution", "aten::mkldnn_convolution", "aten::slow_conv2d_forward", "aten::_slow_conv2d_forward",
    "aten::slow_conv3d_forward", "aten::slow_conv_dilated2d", "aten::slow_conv_dilated3d", "aten::_conv_depthwise2d",
    "aten::conv_depthwise3d", "aten::convolution_overrideable",
})  # fmt: skip
_TRANSPOSED_CONVOLUTIONS = frozenset({
    "aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose", "aten::slow_conv_transpose2d",
    "aten::slow_conv_transpose3d",
})  # fmt: skip
_BACKWARD_CONVOLUTIONS = frozenset({"aten::convolution_backward"})
# Queries as (batch, heads, length, depth).
_HEADS_FIRST = frozenset({
    "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_fused_attention_overrideable", "aten::_cudnn_attention_forward",
})  # fmt: skip
# Queries as (batch, length, heads, depth).
_LENGTH_FIRST = frozenset({"aten::_flash_attention_forward", "aten::_efficient_attention_forward"})
_HEADS_FIRST_BACKWARD = frozenset({
    "aten::_scaled_dot_product_flash_attention_backward", "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_cudnn_attention_backward", "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::_scaled_dot_product_fused_attention_overrideable_backward", "aten::_cudnn_attention_backward",
})  # fmt: skip
_LENGTH_FIRST_BACKWARD = frozenset({"aten::_flash_attention_backward", "aten::_efficient_attention_backward"})
_ATTENTION = _HEADS_FIRST | _LENGTH_FIRST | _HEADS_FIRST_BACKWARD | _LENGTH_FIRST_BACKWARD
# Sequences of several lengths in one tensor: their bounds are data. Position of the bounds by op.
_BOUNDS = {
    "aten::_flash_attention_forward": 3, "aten::_efficient_attention_forward": 4, "aten::_cudnn_attention_forward": 4,
    "aten::_flash_attention_backward": 6, "aten::_efficient_attention_backward": 6,
    "aten::_cudnn_attention_backward": 9,
}  # fmt: skip
# Input, list of weights, stride, flat weights, hidden state, cell state; backward also output and its gradient.
_RECURRENT = frozenset({"aten::_cudnn_rnn"})
_BACKWARD_RECURRENT = frozenset({"aten::_cudnn_rnn_backward"})
_UNCOUNTED = frozenset({
    "aten::miopen_rnn", "aten::miopen_rnn_backward",
    "aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward", "aten::cudnn_convolution_backward",
    "aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight",
    "aten::cudnn_convolution_transpose_backward", "aten::_slow_conv2d_backward", "aten::mkldnn_convolution_backward",
    "aten::_conv_depthwise2d_backward",
})  # fmt: skip
"""Matrix work whose FLOPs the shapes do not determine, or not without its attributes."""
_INT32_BYTES = 4


@dataclass(frozen=True, slots=True)
class MatrixWork:
    """FLOPs of one call and the least bytes it reads and writes; ``bytes`` is None where a data type is unknown."""

    flops: int
    bytes: int | None


def is_matrix_routine(op: str) -> bool:
    """Whether the op runs a matrix routine, whose FLOPs count (or would, if they were known)."""
    return (
        op in _PRODUCTS
        or op in _LINEAR
        or op in _ATTENTION
        or op in _RECURRENT
        or op in _BACKWARD_RECURRENT
        or op in _UNCOUNTED
        or is_forward_convolution(op)
        or is_backward_convolution(op)
        or op in _TRANSPOSED_CONVOLUTIONS
    )


def is_forward_convolution(op: str) -> bool:
    """Whether the op's FLOPs need the size of its output, which is not among its recorded inputs."""
    return op in _FORWARD_CONVOLUTIONS


def is_backward_convolution(op: str) -> bool:
    """Whether the op's FLOPs depend on which gradients it computes, which is not among its recorded shapes."""
    return op in _BACKWARD_CONVOLUTIONS


def is_backward_recurrent(op: str) -> bool:
    """Whether the op's FLOPs depend on whether it computes the weights' gradients, which its shapes do not show."""
    return op in _BACKWARD_RECURRENT


def work_of(op: str, shapes: InputShapes, dtypes: InputDtypes) -> MatrixWork | None:
    """FLOPs and bytes of a matrix op that needs no more than its inputs; None for others and where they do not
    determine it.

    Args:
        op: name, such as "aten::mm".
        shapes: of its inputs, () where not recorded.
        dtypes: of its inputs, () where not recorded.
    """
    sizes = element_bytes(dtypes)
    if _any_complex(dtypes):
        return None
    if op in _PRODUCTS:
        return _product(op, shapes, sizes)
    if op in _LINEAR:
        return _linear(shapes, sizes)
    if op in _ATTENTION:
        return _attention(op, shapes, sizes)
    if op in _TRANSPOSED_CONVOLUTIONS:
        return _transposed_convolution(shapes)
    if op in _RECURRENT:
        return _recurrent(shapes, sizes)
    return None


def forward_convolution(shapes: InputShapes, dtypes: InputDtypes, output: Shape) -> MatrixWork | None:
    """FLOPs and bytes of a convolution of an input and a weight (its first two inputs) to ``output``."""
    tensors = _tensors(shapes, (0, 1))
    if tensors is None or _any_complex(dtypes):
        return None
    image, weight = tensors
    if len(output) != len(image) or len(weight) != len(image) or output[:2] != (image[0], weight[0]):
        return None
    return MatrixWork(_convolution_flops(weight, output), _moved((image, weight, output), element_bytes(dtypes), 0))


def backward_convolution(
    shapes: InputShapes, dtypes: InputDtypes, transposed: bool, image: bool, weight: bool
) -> MatrixWork | None:
    """FLOPs and bytes of ``aten::convolution_backward``, which computes the gradients of its image, its weight or both.

    Its first three inputs are the output's gradient, the image and the weight.
    """
    tensors = _tensors(shapes, (0, 1, 2))
    if tensors is None or _any_complex(dtypes):
        return None
    gradient, source, kernel = tensors
    if not len(gradient) == len(source) == len(kernel):
        return None
    products = int(image) + int(weight)
    # Each needs the output's gradient and one of the other two, and writes the shape of the remaining one.
    moved = (gradient, source, kernel)[: 1 if not products else 3]
    again = (source,) * (products == 2) + (kernel,) * (products == 2)
    return MatrixWork(
        products * _convolution_flops(kernel, source if transposed else gradient),
        _moved((*moved, *again), element_bytes(dtypes), 0),
    )


def wrapped_convolution(arguments: str, shapes: InputShapes, dtypes: InputDtypes) -> MatrixWork | None:
    """FLOPs and bytes of a convolution in compiled code, with the arguments that its wrapper passes.

    Args:
        arguments: of ``extern_kernels.convolution`` by name, of ``aten.convolution_backward`` in order from the sizes
            of the bias on; None is the answer where they are neither.
        shapes: of its tensors, which come first.
        dtypes: of these.
    """
    try:
        if arguments.startswith("stride="):
            pairs = (part.partition("=") for part in re.split(r", (?=[a-z])", arguments))
            named = {name: ast.literal_eval(value) for name, _, value in pairs}
            return _strided_convolution(shapes, dtypes, **named)
        _, _, _, _, transposed, _, _, (image, weight, _) = ast.literal_eval(f"({arguments})")
    except (ValueError, TypeError, SyntaxError):
        return None
    return backward_convolution(shapes, dtypes, bool(transposed), bool(image), bool(weight))


def _strided_convolution(
    shapes: InputShapes,
    dtypes: InputDtypes,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> MatrixWork | None:
    """Sizes of the output as in ``torch.nn.Conv2d`` and ``torch.nn.ConvTranspose2d``."""
    tensors = _tensors(shapes, (0, 1))
    if tensors is None or _any_complex(dtypes):
        return None
    image, weight = tensors
    if len(image) != len(weight) or len(image) != len(stride) + 2:
        return None
    places = zip(image[2:], weight[2:], stride, padding, dilation, output_padding, strict=True)
    if transposed:
        sizes = [(size - 1) * s - 2 * p + d * (k - 1) + more + 1 for size, k, s, p, d, more in places]
        output = (image[0], weight[1] * groups, *sizes)
    else:
        sizes = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d, _ in places]
        output = (image[0], weight[0], *sizes)
    flops = _convolution_flops(weight, image if transposed else output)
    return MatrixWork(flops, _moved((image, weight, output), element_bytes(dtypes), 0))


def recurrent_weights(shapes: InputShapes) -> list[Shape]:
    """Shapes of an RNN's weights and biases in torch's order; none where lists of tensors were not recorded."""
    weights = shapes[1] if len(shapes) > 1 else None
    return list(weights) if isinstance(weights, TensorList) and all(weights) else []


def backward_recurrent(shapes: InputShapes, dtypes: InputDtypes) -> MatrixWork | None:
    """FLOPs and bytes of ``aten::_cudnn_rnn_backward`` where the weights are trained.

    The gradients of input and states, which cuDNN computes in any case, take as many FLOPs as the forward pass, and so
    do those of the weights.
    """
    forward = _recurrent_products(shapes)
    if forward is None:
        return None
    weights = recurrent_weights(shapes)
    given = _tensors(shapes, (0, 4, 6, 7))
    cell = shape_at(shapes, 5) or (0,)
    if given is None:
        return None
    source, hidden = given[:2]
    # Written are the gradients of input, weights and states.
    moved = (*given, cell, *weights, source, hidden, cell, *weights)
    return MatrixWork(2 * forward, _moved(moved, element_bytes(dtypes), 0))


def _any_complex(dtypes: InputDtypes) -> bool:
    """Products of complex numbers have other FLOPs."""
    return any(dtype.kind == "complex" for dtype in dtypes)


def _tensors(shapes: InputShapes, places: Sequence[int]) -> list[Shape] | None:
    found = [shape_at(shapes, at) for at in places]
    tensors = [shape for shape in found if shape is not None]
    return tensors if len(tensors) == len(found) else None


def _product(op: str, shapes: InputShapes, sizes: list[int | None]) -> MatrixWork | None:
    left_at, right_at, added_at = _PRODUCTS[op]
    tensors = _tensors(shapes, (left_at, right_at))
    if tensors is None:
        return None
    left, right = tensors
    if min(len(left), len(right)) < 2 or max(len(left), len(right)) > 3 or left[-1] != right[-2]:
        return None
    rows, inner, columns = left[-2], left[-1], right[-1]
    batch = left[0] if len(left) == len(right) == 3 else 1
    element = _size(sizes, left_at)
    other = _size(sizes, right_at)
    if element is None or other is None:
        return MatrixWork(2 * batch * rows * inner * columns, None)
    moved = math.prod(left) * element + math.prod(right) * other
    moved += batch * rows * columns * (_INT32_BYTES if op == "aten::_int_mm" else element)
    added = None if added_at is None else shape_at(shapes, added_at)
    return MatrixWork(2 * batch * rows * inner * columns, moved + (0 if added is None else math.prod(added) * element))


def _linear(shapes: InputShapes, sizes: list[int | None]) -> MatrixWork | None:
    tensors = _tensors(shapes, (0, 1))
    if tensors is None:
        return None
    source, weight = tensors
    if len(weight) != 2 or source[-1] != weight[-1]:
        return None
    output = (*source[:-1], weight[0])
    return MatrixWork(2 * math.prod(source) * weight[0], _moved((source, weight, output), sizes, 0))


def _transposed_convolution(shapes: InputShapes) -> MatrixWork | None:
    tensors = _tensors(shapes, (0, 1))
    if tensors is None or len(tensors[0]) != len(tensors[1]):
        return None
    # The output, and with it the bytes, depends on the stride.
    return MatrixWork(_convolution_flops(tensors[1], tensors[0]), None)


def _recurrent_products(shapes: InputShapes) -> int | None:
    """FLOPs of a forward pass: each row of the input, one per time and sequence, meets each weight matrix once.

    The matrices of all layers, directions, gates and of a projection are in the list. A packed input has the rows of
    all sequences in its first dimension.
    """
    source = shape_at(shapes, 0)
    matrices = [shape for shape in recurrent_weights(shapes) if len(shape) == 2]
    if source is None or len(source) not in (2, 3) or not matrices or matrices[0][1] != source[-1]:
        return None
    return 2 * math.prod(source[:-1]) * sum(math.prod(matrix) for matrix in matrices)


def _recurrent(shapes: InputShapes, sizes: list[int | None]) -> MatrixWork | None:
    flops, given = _recurrent_products(shapes), _tensors(shapes, (0, 4))
    if flops is None or given is None:
        return None
    source, hidden = given
    cell = shape_at(shapes, 5) or (0,)
    weights = recurrent_weights(shapes)
    output = (*source[:-1], _directions(weights, source[-1], hidden) * hidden[-1])
    return MatrixWork(flops, _moved((source, *weights, hidden, cell, output, hidden, cell), sizes, 0))


def _directions(weights: list[Shape], inputs: int, hidden: Shape) -> int:
    """1 or 2, by the inputs of the layers above the first; 1, the least, if unknown."""
    states, size = hidden[0], hidden[-1]
    each = len(weights) // max(1, states)
    if states % 2 or not each or not size:
        return 1
    if states > 2:
        return min(2, max(1, weights[2 * each][-1] // size))
    # Two layers, or one of two directions, whose second takes the input as well.
    return 2 if weights[each][-1] == inputs != size else 1


def _attention(op: str, shapes: InputShapes, sizes: list[int | None]) -> MatrixWork | None:
    backward = op in _HEADS_FIRST_BACKWARD or op in _LENGTH_FIRST_BACKWARD
    first = 1 if backward else 0
    tensors = _tensors(shapes, range(first, first + 3))
    if tensors is None or any(len(shape) != 4 for shape in tensors):
        return None
    if op in _BOUNDS and shape_at(shapes, _BOUNDS[op]) is not None:
        return None
    query, key, value = tensors
    if op in _LENGTH_FIRST or op in _LENGTH_FIRST_BACKWARD:
        query, key, value = ((s[0], s[2], s[1], s[3]) for s in (query, key, value))
    batch, heads, queries, depth = query
    keys, value_depth = key[2], value[3]
    if key[0] != batch or value[0] != batch or key[3] != depth or value[2] != keys or not key[1] or heads % key[1]:
        return None
    scores = 2 * batch * heads * queries * keys
    output = (batch, heads, queries, value_depth)
    if not backward:
        return MatrixWork(scores * (depth + value_depth), _moved((query, key, value, output), sizes, first))
    # Scores again, gradients of scores and values, of queries and keys: three over one depth, two over the other.
    moved = (query, key, value, output, output, query, key, value)
    return MatrixWork(scores * (3 * depth + 2 * value_depth), _moved(moved, sizes, first))


def _convolution_flops(weight: Shape, positions: Shape) -> int:
    """``positions`` is the shape over whose places the filters move: the output's, of a transposed one the input's."""
    return 2 * positions[0] * math.prod(positions[2:]) * math.prod(weight)


def _size(sizes: list[int | None], at: int) -> int | None:
    return sizes[at] if at < len(sizes) else None


def _moved(shapes: Sequence[Shape], sizes: list[int | None], at: int) -> int | None:
    """Bytes of all shapes in the data type of the input ``at``."""
    element = _size(sizes, at)
    return None if element is None else element * sum(math.prod(shape) for shape in shapes)
