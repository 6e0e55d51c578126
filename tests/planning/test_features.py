"""Kinds and numbers by which a run's ops find the measured ones most like them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.names.gpu_peaks import Ceilings
from tb_dlprof_plugin.planning.features import (
    least_ns,
    matrix_features,
    matrix_kind,
    other_features,
    parameter_elements,
)

GPU = Ceilings("a test", bandwidth=1000, fp32=50)
"""50 FLOPs a ps, a byte a ps."""
SCALARS: list[list[int]] = [[], [], []]
ALIGNMENT, LAYOUT = 7, 8
"""Places in the features of a matrix routine."""


def _typed(shapes: list[list[int]]) -> InputShapes:
    return tuple(map(tuple, shapes))


def convolution(filters: int, channels: int, window: int, image: int = 64) -> list[list[int]]:
    return [[8, image, 32, 32], [filters, channels, window, window], *SCALARS]


@pytest.mark.parametrize(
    ("op", "shapes", "kind"),
    [
        ("aten::cudnn_convolution", convolution(128, 64, 3), "convolution wide fprop"),
        ("aten::cudnn_convolution", convolution(128, 64, 1), "convolution 1x1 fprop"),
        ("aten::cudnn_convolution", convolution(64, 3, 7, image=3), "convolution first fprop"),
        ("aten::cudnn_convolution", convolution(64, 1, 3), "convolution depthwise fprop"),
        ("aten::cudnn_convolution", convolution(128, 1, 3), "convolution grouped fprop"),
        ("aten::cudnn_convolution", convolution(64, 16, 3), "convolution grouped fprop"),
        ("aten::cudnn_convolution", [[8, 64, 32], [128, 64, 3]], "convolution 1-D wide fprop"),
        ("aten::cudnn_convolution", [[8, 64, 1, 32], [128, 64, 1, 3]], "convolution 1-D wide fprop"),
        ("aten::cudnn_convolution", [[8, 64, 4, 32, 32], [128, 64, 3, 3, 3]], "convolution 3-D wide fprop"),
        ("aten::cudnn_convolution", [[8, 64, 4, 32, 32], [64, 1, 3, 3, 3]], "convolution 3-D depthwise fprop"),
        (
            "aten::convolution_backward",
            [[8, 32, 64, 64], [8, 64, 32, 32], [64, 32, 2, 2]],
            "convolution transposed grouped bprop",
        ),
        ("aten::_cudnn_rnn", [[64, 100, 80], [], [], [9], [2, 64, 256]], "recurrent fprop"),
        ("aten::_cudnn_rnn_backward", [[64, 100, 80], [], [], [9], [2, 64, 256]], "recurrent bprop"),
        ("aten::_cudnn_rnn", [[64, 100, 80]], ""),
        ("aten::cudnn_convolution", convolution(128, 48, 3), ""),
        ("aten::cudnn_convolution", convolution(128, 0, 3), ""),
        ("aten::cudnn_convolution", [[8, 64, 32, 32]], ""),
        ("aten::convolution_backward", [[8, 128, 32, 32], *convolution(128, 64, 3)], "convolution wide bprop"),
        ("aten::_scaled_dot_product_flash_attention", [[8, 4, 128, 64]] * 3, "attention fprop"),
        ("aten::_scaled_dot_product_flash_attention_backward", [[8, 4, 128, 64]] * 4, "attention bprop"),
        ("aten::mm", [[8, 16], [16, 32]], "product"),
        ("aten::addmm", [[32], [8, 16], [16, 32], [], []], "product"),
        ("aten::bmm", [[4, 8, 16], [4, 16, 32]], "batched product"),
        ("aten::bmm", [[1, 8, 16], [1, 16, 32]], "product"),
        ("aten::mm", [[8, 0], [0, 32]], ""),
        ("aten::mv", [[8, 16], [16]], ""),
        ("aten::mm", [], ""),
    ],
)
def test_the_shapes_tell_the_kind(op: str, shapes: list[Any], kind: str) -> None:
    assert matrix_kind(op, _typed(shapes), 10**9) == kind


def test_a_first_layer_may_compute_the_gradient_of_its_weights_alone() -> None:
    shapes = [[8, 64, 16, 16], *convolution(64, 3, 7, image=3)]
    one = 2 * 8 * 64 * 16 * 16 * 3 * 49
    assert matrix_kind("aten::convolution_backward", _typed(shapes), one) == "convolution first bprop of weights"
    assert matrix_kind("aten::convolution_backward", _typed(shapes), 2 * one) == "convolution first bprop"


def test_the_features_of_a_product_are_its_sizes_time_and_efficiency() -> None:
    flops, moved = 2 * 8 * 16 * 32, 4 * (8 * 16 + 16 * 32 + 8 * 32)
    found = matrix_features("aten::mm", ((8, 16), (16, 32)), flops, moved, 2000.0, GPU, False)
    least_ns = max(flops / 50e12, moved / 1e12) * 1e9
    assert found == pytest.approx((
        math.log(2), math.log(2000 / least_ns), 0.5 * math.log(flops / moved),
        0.7 * math.log(8), 0.7 * math.log(32), math.log(16), 0.0, 3, 0,
    ))  # fmt: skip


def test_efficiency_is_that_below_the_roof_that_limits() -> None:
    # 50 GFLOP take 1 ms, 2 GB take 2 ms: at 4 ms it ran at half the rate that memory allows.
    by_memory = matrix_features("aten::mm", ((8, 16), (16, 32)), 50 * 10**9, 2 * 10**9, 4e6, GPU, False)
    by_arithmetic = matrix_features("aten::mm", ((8, 16), (16, 32)), 50 * 10**9, 10**6, 4e6, GPU, False)
    assert (by_memory[1], by_arithmetic[1]) == pytest.approx((math.log(2), math.log(4)))


@pytest.mark.parametrize(
    ("op", "shapes", "aligned"),
    [
        ("aten::mm", [[8, 16], [16, 32]], 8),
        ("aten::mm", [[7, 16], [16, 32]], 8),
        ("aten::mm", [[8, 16], [16, 30522]], 2),
        ("aten::mm", [[8, 12], [12, 32]], 4),
        ("aten::mm", [[8, 16], [16, 50257]], 1),
        ("aten::bmm", [[4, 197, 64], [4, 64, 64]], 1),
        ("aten::cudnn_convolution", convolution(64, 3, 7, image=3), 1),
        ("aten::cudnn_convolution", convolution(116, 64, 3), 4),
        ("aten::_scaled_dot_product_flash_attention", [[8, 4, 197, 80]] * 3, 8),
    ],
)
def test_the_alignment_is_that_of_the_dimensions_that_lie_side_by_side(
    op: str, shapes: list[Any], aligned: int
) -> None:
    assert matrix_features(op, _typed(shapes), 10**9, 10**6, 1e5, GPU, False)[ALIGNMENT] == math.log2(aligned)


def test_layouts_are_far_apart() -> None:
    shapes = convolution(64, 64, 3)
    first, last = (
        matrix_features("aten::cudnn_convolution", _typed(shapes), 10**9, 10**6, 1e5, GPU, layout)
        for layout in (False, True)
    )
    assert last[LAYOUT] - first[LAYOUT] == 6
    assert [a for at, a in enumerate(first) if at != LAYOUT] == [b for at, b in enumerate(last) if at != LAYOUT]


def test_a_strided_convolution_has_more_input_pixels_than_output_pixels() -> None:
    gradient, image, weight = (8, 64, 16, 16), (8, 64, 32, 32), (64, 64, 3, 3)
    flops = 2 * 8 * 16 * 16 * 64 * 64 * 9
    forward = matrix_features("aten::cudnn_convolution", (image, weight), flops, 10**6, 1e5, GPU, False)
    backward = matrix_features(
        "aten::convolution_backward", (gradient, image, weight), 2 * flops, 10**6, 1e5, GPU, False
    )
    # A quarter of the pixels, and images of 1024 values.
    assert forward[-2:] == pytest.approx((0.7 * math.log(4), 1.5))
    assert backward[-2:] == pytest.approx((0.7 * math.log(4), 1.5))


def test_other_ops_are_told_by_their_time() -> None:
    assert other_features(5000.0, 1.0, False) == (math.log(5), 0.0, 0.0)
    assert other_features(1000.0, 100.0, True) == (0.0, 0.3 * math.log(100), 3.0)


def test_the_least_time_is_by_arithmetic_or_by_memory() -> None:
    assert least_ns(50_000_000, 10, GPU) == pytest.approx(1000)
    assert least_ns(10, 1_000_000, GPU) == pytest.approx(1000)


@pytest.mark.parametrize(
    ("kind", "shapes", "elements"),
    [
        ("convolution wide fprop", convolution(128, 64, 3), 128 * 64 * 9),
        # Weights and their gradient; a first layer's gradient alone.
        ("convolution wide bprop", [[8, 128, 32, 32], *convolution(128, 64, 3)], 2 * 128 * 64 * 9),
        ("convolution first bprop of weights", [[8, 64, 32, 32], *convolution(64, 3, 7, image=3)], 64 * 3 * 49),
        ("product", [[32], [8, 16], [16, 32], [], []], 16 * 32),
        ("product", [[8, 32], [32, 16]], 16 * 32),
        # A gradient of weights: what comes out.
        ("product", [[32, 8], [8, 16]], 16 * 32),
        # As many samples as the layer is wide: one of the matrices is a parameter, not all three.
        ("product", [[24, 24], [24, 24]], 24 * 24),
        ("batched product", [[4, 32, 16], [4, 16, 32]], 0),
        ("attention fprop", [[8, 4, 32, 16]] * 3, 0),
        ("product", [[8, 16]], 0),
    ],
)
def test_parameters_are_told_by_their_shapes(kind: str, shapes: list[Any], elements: int) -> None:
    assert parameter_elements(kind, _typed(shapes), {(32, 16), (24, 24), (128, 64, 3, 3)}) == elements
