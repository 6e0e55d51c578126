"""The sizes of an op's matrix product, from its input shapes, and which of them are not aligned for Tensor Cores.

Sources: NVIDIA, *Matrix Multiplication Background User's Guide*, table "Tensor Core requirements by cuBLAS or cuDNN
    version" (sizes in multiples of 16 bytes: 16 for INT8, 8 for FP16, 4 for TF32, 2 for FP64), and *Convolutional
    Layers User's Guide* (the same for channels). Before cuBLAS 11 and cuDNN 7.6.3 a product with another size never ran
    on Tensor Cores; since then it may, only slower. So an unaligned size explains a kernel without Tensor Cores, but
    does not predict one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.model.shapes import InputShapes, Shape, shape_at
from tb_dlprof_plugin.names.tensor_core_eligibility import (
    is_attention,
    is_convolution,
    is_recurrent,
    is_triton_template,
)

_ROW_BYTES = 16
_ELEMENT_BYTES = {"fp64": 8, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
"""Of Tensor Core precisions, which are no data types of tensors: TF32 is one of the multiplication alone."""
_BIAS_FIRST = frozenset({
    "aten::addmm", "aten::addmm_", "aten::_addmm_activation", "aten::baddbmm", "aten::baddbmm_", "aten::addbmm",
})  # fmt: skip
_RNN_HIDDEN_STATE = 4
"""Position of ``hx`` in `aten::_cudnn_rnn` and its backward op."""


@dataclass(frozen=True, slots=True)
class Size:
    """One size of a matrix product, with the name that a reader knows it by ("N", "input channels")."""

    label: str
    value: int

    def __str__(self) -> str:
        return f"{self.label} = {self.value}"


def multiple(precision: str) -> int | None:
    """How many elements make 16 bytes in a Tensor Core precision; None for any other."""
    size = _ELEMENT_BYTES.get(precision)
    return _ROW_BYTES // size if size else None


def misaligned(sizes: tuple[Size, ...], precision: str) -> tuple[Size, ...]:
    """The sizes that are not multiples of 16 bytes in this precision."""
    wanted = multiple(precision)
    return tuple(size for size in sizes if wanted and size.value % wanted)


def product_sizes(op: str, shapes: InputShapes) -> tuple[Size, ...]:
    """Sizes that the op's matrix products have; () where shapes were not recorded or are not understood.

    M, N and K of a matrix product (M x K times K x N), input and output channels of one group of a convolution, input
    and hidden size of a recurrent layer, the size of a head of attention.
    """
    if is_triton_template(op):
        # Which of its arguments are the factors differs from one generated kernel to the next.
        return ()
    dims = [shape_at(shapes, at) or () for at in range(len(shapes))]
    if is_convolution(op):
        return _convolution(op, dims)
    if is_recurrent(op):
        return _named((("input size", _last(dims, 0)), ("hidden size", _last(dims, _RNN_HIDDEN_STATE))))
    if is_attention(op):
        # Backward ops take the gradient first; it has the size of the values' heads.
        return _named((("head size", _last(dims, 0)),))
    return _matrices(dims[1:3] if op in _BIAS_FIRST else dims[:2])


def _convolution(op: str, dims: list[Shape]) -> tuple[Size, ...]:
    """The weight is (out, in / groups, ...), transposed (in, out / groups, ...); the input's second size is in."""
    at = 1 if "backward" in op else 0
    if len(dims) < at + 2 or len(dims[at]) < 3 or len(dims[at + 1]) < 3:
        return ()
    channels, (rows, columns) = dims[at][1], dims[at + 1][:2]
    groups = max(1, channels // columns) if columns else 1
    if "transpose" in op:
        return _named((("input channels", rows), ("output channels", columns)))
    return _named((("input channels", columns), ("output channels", rows // groups)))


def _matrices(dims: list[Shape]) -> tuple[Size, ...]:
    if len(dims) < 2 or any(len(matrix) < 2 for matrix in dims):
        return ()
    (m, k), n = dims[0][-2:], dims[1][-1]
    return _named((("M", m), ("N", n), ("K", k)))


def _named(sizes: tuple[tuple[str, int | None], ...]) -> tuple[Size, ...]:
    return tuple(Size(label, value) for label, value in sizes if value)


def _last(dims: list[Shape], at: int) -> int | None:
    return dims[at][-1] if at < len(dims) and dims[at] else None
