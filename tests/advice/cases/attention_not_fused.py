"""Cases of `attention_not_fused`: attention in separate kernels, found by its shapes."""

from __future__ import annotations

import pytest
from advice.case import ANY, Case
from advice.training_step import ELEMENTWISE, HALF_TYPE, REDUCE, SOFTMAX, TENSOR_GEMM, Step

_SCORES, _HEADS = [8, 16, 1024, 1024], [8, 16, 1024, 64]
_FLAT_HEADS, _FLAT_SCORES = [128, 1024, 64], [128, 1024, 1024]
_TYPES = [HALF_TYPE] * 2
_FUSED_NS = 1e9 * 4 * 128 * 1024 * 1024 * 64 / (0.55 * 989e12) + 6_000
"""One fused kernel: 34.4 GFLOP at 0.55 of 989 TFLOP/s and 6 us."""


def _written_out(scores: list[int] = _SCORES, mean: bool = False) -> Step:
    run = Step()
    give = ("aten::bmm", [_FLAT_HEADS, [128, 64, 1024]], _TYPES, [(TENSOR_GEMM, 90)])
    softmax = ("aten::_softmax", [scores], ["float"], [(SOFTMAX, 400)])
    take = ("aten::bmm", [_FLAT_SCORES, _FLAT_HEADS], _TYPES, [(TENSOR_GEMM, 90)])
    run.forward("attention", "aten::matmul", [give], dims=[_HEADS, _HEADS], types=_TYPES)
    run.forward("attention", "aten::masked_fill", [(ELEMENTWISE, 300)], dims=[_SCORES, [1024, 1024]], types=_TYPES)
    run.forward("attention", "aten::softmax", [softmax], dims=[scores], types=_TYPES)
    run.forward("attention", "aten::matmul", [take], dims=[_SCORES, _HEADS], types=_TYPES)
    if mean:
        run.forward("attention", "aten::mean", [(REDUCE, 50)], dims=[_SCORES], types=_TYPES)
    return run


def _math_backend() -> Step:
    run, odd = Step(), [128, 1024, 60]
    ops = [
        ("aten::bmm", [odd, [128, 60, 1024]], _TYPES, [(TENSOR_GEMM, 90)]),
        ("aten::_softmax", [_SCORES], ["float"], [(SOFTMAX, 400)]),
        ("aten::bmm", [_FLAT_SCORES, odd], _TYPES, [(TENSOR_GEMM, 90)]),
    ]
    name = "aten::_scaled_dot_product_attention_math"
    run.forward("attention", name, ops, dims=[[8, 16, 1024, 60]] * 3, types=_TYPES)
    return run


CASES = (
    Case(
        "written out",
        _written_out(),
        "fired",
        "128 matrices of 1024 x 1024",
        {
            "Kernels of attention, per step": 880_000,
            "Fused kernels should take, per step": pytest.approx(_FUSED_NS, rel=0.01),
        },
        (ANY, pytest.approx(880_000 - _FUSED_NS, rel=0.05), ANY),
        ["is_causal=True"],
    ),
    Case("need_weights", _written_out(mean=True), "fired", says=["need_weights=False"]),
    Case(
        "the math backend",
        _math_backend(),
        "fired",
        says=["falls back to its math backend", "a multiple of 8 in BF16; 60 is none"],
    ),
    Case("a softmax over classes", _written_out([8192, 1024]), "not_applicable", "The run has no attention."),
)
