"""Features of an op that determine its speedup in another precision: its kind and a few numbers of its size.

The same numbers are computed of the ops that were measured one by one (`lab/op_speed`) and of the ops of a
run, so that a run's ops find the measured ones most like them.
"""

from __future__ import annotations

import math
from collections.abc import Container

from tb_dlprof_plugin.model.shapes import InputShapes, Shape, shape_at, tensors_of
from tb_dlprof_plugin.names.gpu_peaks import Ceilings
from tb_dlprof_plugin.names.tensor_core_eligibility import is_recurrent

Features = tuple[float, ...]

_ALIGNMENTS = 8
_FEW_CHANNELS = 8
_MOSTLY = 0.75
_ALIGNMENT_WEIGHT = 1.0
_LAYOUT_WEIGHT = 6.0
"""Ops with channels last and with channels first are never neighbours: converting costs as much as the op."""
_NS = 1e9
_HIDDEN_STATE = 4
"""Position of the hidden state among the inputs of cuDNN's recurrent routine and of its backward pass."""
_MICROSECOND = 1e3
TIME, SLOWNESS = 0, 1
"""Indices in the features of a matrix routine: logarithms of its time in µs, and of that over the least time."""


def matrix_kind(op: str, shapes: InputShapes, flops: int) -> str:
    """The kind of a matrix routine; "" if the shapes do not determine it.

    The backward pass of a first layer computes one gradient, that of its weights, which the FLOPs show.
    """
    if is_recurrent(op):
        return f"recurrent {'bprop' if 'backward' in op else 'fprop'}" if _recurrent(shapes) else ""
    if "conv" in op:
        sizes = _convolution(op, shapes)
        if sizes is None:
            return ""
        _, channels, filters, window, groups = sizes
        direction = "bprop" if "backward" in op else "fprop"
        if groups > 1:
            what = "depthwise" if channels == 1 and filters == 1 else "grouped"
        elif channels < _FEW_CHANNELS:
            what = "first"
        else:
            what = "1x1" if window == 1 else "wide"
        gradient = shape_at(shapes, 0)
        if direction == "bprop" and what == "first" and gradient is not None:
            both = 4 * math.prod(gradient) * channels * window
            direction = "bprop of weights" if flops < _MOSTLY * both else direction
        return f"convolution {_form(op, shapes)}{what} {direction}"
    if "attention" in op:
        return f"attention {'bprop' if 'backward' in op else 'fprop'}"
    sizes_of = _product(shapes)
    if sizes_of is None:
        return ""
    return "batched product" if sizes_of[3] > 1 else "product"


def _form(op: str, shapes: InputShapes) -> str:
    """What libraries have other kernels for than for images: "1-D ", "3-D " or "transposed "; "" for images."""
    at = 1 if "backward" in op else 0
    gradient, image, weight = shape_at(shapes, 0), shape_at(shapes, at) or (), shape_at(shapes, at + 1) or ()
    # The gradient of a convolution has as many channels as there are filters.
    if "transpose" in op or (at and gradient and len(gradient) > 1 and gradient[1] != weight[0]):
        return "transposed "
    # A 1-D convolution is run as one of images of a single row.
    if len(image) == 3 or (image[2] == weight[2] == 1 and weight[-1] > 1):
        return "1-D "
    return "3-D " if len(image) > 4 else ""


def is_matrix_kind(kind: str) -> bool:
    """Whether ops of this kind have the features of matrix routines."""
    return kind.split(" ")[0] in ("convolution", "attention", "batched", "product", "recurrent")


def matrix_features(
    op: str, shapes: InputShapes, flops: int, moved: int, time_ns: float, ceilings: Ceilings, channels_last: bool
) -> Features:
    """Sizes, intensity, time and measured efficiency of a matrix routine in FP32, as logarithms with weights.

    Args:
        op: name of the routine.
        shapes: of its inputs.
        flops: of the call.
        moved: least bytes of the call.
        time_ns: its kernel time in FP32, or in TF32 for ratios relative to that.
        ceilings: of the GPU that took this time.
        channels_last: layout of the images.
    """
    return matrix_times(flops, moved, time_ns, ceilings) + matrix_sizes(op, shapes, flops, moved, channels_last)


def matrix_times(flops: int, moved: int, time_ns: float, ceilings: Ceilings) -> Features:
    """The first of `matrix_features`, which depend on the time."""
    return math.log(time_ns / _MICROSECOND), math.log(time_ns / least_ns(flops, moved, ceilings))


def matrix_sizes(op: str, shapes: InputShapes, flops: int, moved: int, channels_last: bool) -> Features:
    """The other `matrix_features`."""
    first, second, third, fourth, aligned = _sizes(op, shapes)
    log = math.log
    return (
        0.5 * log(flops / moved),
        0.7 * log(first),
        0.7 * log(second),
        log(third),
        0.7 * log(fourth),
        _ALIGNMENT_WEIGHT * math.log2(aligned),
        _LAYOUT_WEIGHT * channels_last,
        *_pixels(op, shapes, flops),
    )


def least_ns(flops: float, moved: float, ceilings: Ceilings) -> float:
    """Least time in FP32 of so many FLOPs and bytes: by the peak rate or by the memory's."""
    peak = (ceilings.fp32 or 1.0) * 1e12
    return max(flops / peak, moved / ceilings.bytes_per_second) * _NS


def parameter_elements(kind: str, shapes: InputShapes, parameters: Container[tuple[int, ...]]) -> int:
    """Elements of parameters and of their gradients that a matrix routine reads and writes.

    Args:
        kind: of the routine.
        shapes: of its inputs.
        parameters: shapes of all parameters. One matrix of a product may be one, also transposed, or its gradient.
    """
    if kind.startswith("convolution"):
        weight = math.prod(shape_at(shapes, 2 if "bprop" in kind else 1) or ())
        return 2 * weight if kind.endswith("bprop") else weight
    matrices = _matrices(shapes)
    if kind != "product" or len(matrices) < 2:
        return 0
    left, right = matrices[-2:]
    among = (right, (*left[:-1], right[-1]), left)
    return next((math.prod(shape) for shape in among if shape in parameters or shape[::-1] in parameters), 0)


def _pixels(op: str, shapes: InputShapes, flops: int) -> Features:
    """Of a convolution: how many input pixels there are for each output pixel, and the alignment of an image's size."""
    if "conv" not in op:
        return ()
    sizes = _convolution(op, shapes)
    assert sizes is not None
    pixels, channels, filters, window, groups = sizes
    image = shape_at(shapes, 1 if "backward" in op else 0) or ()
    gradient = shape_at(shapes, 0)
    if "backward" in op and gradient is not None:
        outputs: float = gradient[0] * math.prod(gradient[2:])
    else:
        outputs = flops / (2 * channels * filters * groups * window)
    return 0.7 * math.log(max(pixels / max(outputs, 1), 0.1)), 0.5 * math.log2(_alignment(math.prod(image[2:])))


def other_features(time_ns: float, per_channel: float, channels_last: bool) -> Features:
    """Of an op that multiplies no matrices: its time, and of a batch norm the values per channel (else 1)."""
    return (
        math.log(time_ns / _MICROSECOND),
        0.3 * math.log(max(per_channel, 1.0)),
        _LAYOUT_WEIGHT * 0.5 * channels_last,
    )


def _sizes(op: str, shapes: InputShapes) -> tuple[float, float, float, float, int]:
    """Four sizes and the alignment in elements (1 to 8) of the dimensions that Tensor Core kernels want aligned."""
    if is_recurrent(op):
        inputs, hidden, batch, steps, layers = _recurrent(shapes) or (1, 1, 1, 1, 1)
        return hidden, batch, steps, layers, min(_alignment(hidden), _alignment(inputs))
    if "conv" in op:
        sizes = _convolution(op, shapes)
        assert sizes is not None
        pixels, channels, filters, window, _ = sizes
        return channels, filters, window, pixels, min(_alignment(channels), _alignment(filters))
    if "attention" in op:
        query = next(shape for shape in tensors_of(shapes[("backward" in op) :]) if len(shape) == 4)
        batch, one, other, depth = query
        return depth, one * other, max(one, other), batch, _alignment(depth)
    sizes_of = _product(shapes)
    assert sizes_of is not None
    rows, inner, columns, matrices = sizes_of
    return (
        rows,
        columns,
        inner,
        matrices,
        min(_alignment(columns), _alignment(inner), _alignment(rows) if matrices > 1 else 8),
    )


def _alignment(size: float) -> int:
    return math.gcd(int(size), _ALIGNMENTS)


def _convolution(op: str, shapes: InputShapes) -> tuple[float, float, float, float, int] | None:
    """Input pixels, channels and filters of a group, window, groups."""
    at = 1 if "backward" in op else 0
    image, weight = shape_at(shapes, at), shape_at(shapes, at + 1)
    if image is None or weight is None or len(image) < 3 or len(weight) < 3:
        return None
    if not weight[1] or image[1] % weight[1]:
        return None
    groups = image[1] // weight[1]
    pixels = image[0] * math.prod(image[2:])
    return pixels, weight[1], weight[0] / groups, math.prod(weight[2:]), groups


def _recurrent(shapes: InputShapes) -> tuple[int, int, int, int, int] | None:
    """Inputs, hidden size, batch, steps, and layers times directions of a recurrent routine."""
    given, hidden = shape_at(shapes, 0), shape_at(shapes, _HIDDEN_STATE)
    if given is None or hidden is None or len(given) != 3 or len(hidden) != 3 or not all((*given, *hidden)):
        return None
    layers, batch, width = hidden
    return given[2], width, batch, max(given[0] * given[1] // batch, 1), layers


def _product(shapes: InputShapes) -> tuple[float, float, float, float] | None:
    """Rows, inner size, columns and batch of a matrix product: of the last two matrices among its inputs."""
    matrices = _matrices(shapes)
    if len(matrices) < 2:
        return None
    left, right = matrices[-2:]
    batch = math.prod(left[:-2])
    sizes = (left[-2], left[-1], right[-1], batch)
    return sizes if all(sizes) else None


def _matrices(shapes: InputShapes) -> list[Shape]:
    return [shape for shape in tensors_of(shapes) if len(shape) >= 2]
