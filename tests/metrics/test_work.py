"""FLOPs of single calls against torch's own formulas, least bytes by hand, and what the shapes do not tell."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tb_dlprof_plugin.metrics.matrix_work import (
    MatrixWork,
    backward_convolution,
    backward_recurrent,
    forward_convolution,
    work_of,
    wrapped_convolution,
)
from tb_dlprof_plugin.model.dtypes import FLOAT, dtype_named, dtypes_in
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList
from tb_dlprof_plugin.readers.input_text import parse_dtypes, parse_shapes

torch = pytest.importorskip("torch")

from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count  # noqa: E402


def _shapes(dims: list[Any]) -> InputShapes:
    found = parse_shapes(json.dumps(dims))
    assert found is not None
    return found


def _work(op: str, dims: list[Any], dtype: str = "c10::Half") -> MatrixWork | None:
    return work_of(op, _shapes(dims), (dtype_named(dtype),) * len(dims))


def _counted(function: Any, *shapes: tuple[int, ...]) -> int:
    tensors = [torch.zeros(shape, device="meta") for shape in shapes]
    with FlopCounterMode(display=False) as counter:
        function(*tensors)
    total: int = counter.get_total_flops()
    return total


@pytest.mark.parametrize(
    ("op", "function", "shapes"),
    [
        ("aten::mm", "mm", [(64, 32), (32, 16)]),
        ("aten::addmm", "addmm", [(16,), (64, 32), (32, 16)]),
        ("aten::bmm", "bmm", [(5, 64, 32), (5, 32, 16)]),
        ("aten::baddbmm", "baddbmm", [(5, 64, 16), (5, 64, 32), (5, 32, 16)]),
    ],
)
def test_matrix_products_count_as_torch_counts_them(op: str, function: str, shapes: list[tuple[int, ...]]) -> None:
    work = _work(op, [list(shape) for shape in shapes])
    assert work is not None
    assert work.flops == _counted(getattr(torch, function), *shapes)


def test_the_least_bytes_are_every_input_and_output_once() -> None:
    assert _work("aten::mm", [[64, 32], [32, 16]]) == MatrixWork(2 * 64 * 32 * 16, 2 * (64 * 32 + 32 * 16 + 64 * 16))
    assert _work("aten::addmm", [[16], [64, 32], [32, 16]], "float") == MatrixWork(
        2 * 64 * 32 * 16, 4 * (16 + 64 * 32 + 32 * 16 + 64 * 16)
    )
    assert _work("aten::_int_mm", [[64, 32], [32, 16]], "signed char") == MatrixWork(
        2 * 64 * 32 * 16, 64 * 32 + 32 * 16 + 4 * 64 * 16
    )


@pytest.mark.parametrize(
    ("left", "right", "multiply_adds"),
    [
        ([100, 32], [4, 32, 16], 100 * 32 * 16),
        ([4, 25, 32], [4, 32, 16], 100 * 32 * 16),
        ([25, 100], [100, 16], 25 * 100 * 16),
    ],
)
def test_a_grouped_product_has_the_flops_of_its_groups_together(
    left: list[int], right: list[int], multiply_adds: int
) -> None:
    work = _work("aten::_grouped_mm", [left, right, [4]])
    assert work is not None
    assert work.flops == 2 * multiply_adds


@pytest.mark.parametrize("key_heads", [6, 2])
def test_attention_counts_as_torch_counts_it_in_both_layouts(key_heads: int) -> None:
    query, key = (4, 6, 196, 64), (4, key_heads, 100, 64)
    forward, backward = sdpa_flop_count(query, key, key), sdpa_backward_flop_count(query, query, key, key)
    swapped = [[4, 196, 6, 64], [4, 100, key_heads, 64], [4, 100, key_heads, 64]]
    plain = [list(query), list(key), list(key)]
    for op, dims, expected in (
        ("aten::_scaled_dot_product_flash_attention", plain, forward),
        ("aten::_scaled_dot_product_flash_attention_backward", [list(query), *plain], backward),
        ("aten::_efficient_attention_forward", [*swapped, [], []], forward),
        ("aten::_flash_attention_backward", [swapped[0], *swapped, swapped[0], [4, 6, 196], []], backward),
    ):
        work = _work(op, dims)
        assert work is not None
        assert work.flops == expected


def test_attention_over_sequences_of_several_lengths_is_unknown() -> None:
    packed = [[1, 700, 6, 64]] * 3
    assert _work("aten::_efficient_attention_forward", [*packed, [], [5], [5]]) is None
    assert _work("aten::_flash_attention_forward", [[700, 6, 64]] * 3) is None


@pytest.mark.parametrize(
    ("image", "weight", "options"),
    [
        ((8, 3, 32, 32), (16, 3, 5, 5), {"stride": 2, "padding": 2}),
        ((8, 16, 32, 32), (32, 4, 3, 3), {"groups": 4, "dilation": 2}),
        ((8, 16, 32), (32, 16, 3), {}),
        ((2, 4, 8, 8, 8), (8, 4, 3, 3, 3), {"padding": 1}),
    ],
)
def test_convolutions_count_as_torch_counts_them(
    image: tuple[int, ...], weight: tuple[int, ...], options: dict[str, int]
) -> None:
    convolution = getattr(torch.nn.functional, f"conv{len(image) - 2}d")
    output = tuple(convolution(torch.zeros(image, device="meta"), torch.zeros(weight, device="meta"), **options).shape)
    expected = _counted(lambda x, w: convolution(x, w, **options), image, weight)
    work = forward_convolution((image, weight), dtypes_in("float, float"), output)
    assert work is not None
    assert work.flops == expected
    for computed in ((True, True), (True, False), (False, True), (False, False)):
        mine = backward_convolution((output, image, weight), (FLOAT,) * 3, False, *computed)
        assert mine is not None
        # Each gradient takes as many multiply-adds as the forward pass.
        assert mine.flops == sum(computed) * expected


@pytest.mark.parametrize("groups", [1, 2])
def test_only_the_weight_gradient_of_a_grouped_convolution_differs_from_torchs_count(groups: int) -> None:
    image, weight = (4, 8, 16, 16), (16, 8 // groups, 3, 3)

    def both(x: Any, w: Any) -> None:
        x.requires_grad_(), w.requires_grad_()
        torch.nn.functional.conv2d(x, w, groups=groups).sum().backward()

    counted = _counted(both, image, weight)
    forward = forward_convolution((image, weight), (), (4, 16, 14, 14))
    backward = backward_convolution(((4, 16, 14, 14), image, weight), (), False, True, True)
    assert forward is not None
    assert backward is not None
    assert counted - forward.flops - backward.flops == (groups - 1) * forward.flops


def test_transposed_convolutions_move_over_the_input() -> None:
    image, weight = (4, 8, 16, 16), (8, 12, 3, 3)

    def both(x: Any, w: Any) -> None:
        x.requires_grad_(), w.requires_grad_()
        torch.nn.functional.conv_transpose2d(x, w, stride=2).sum().backward()

    forward = _work("aten::cudnn_convolution_transpose", [list(image), list(weight)])
    backward = backward_convolution(((4, 12, 33, 33), image, weight), (), True, True, True)
    assert forward is not None
    assert backward is not None
    assert forward.flops + backward.flops == _counted(both, image, weight)


@pytest.mark.parametrize(
    ("op", "shapes", "dtypes"),
    [
        ("aten::mm", "", ""),
        ("aten::mm", "[[64, 32]]", '["float"]'),
        ("aten::mm", "[[64, 32], [31, 16]]", '["float", "float"]'),
        ("aten::mm", "[[64, 32], [32, ", '["float", "float"]'),
        ("aten::mm", "[[64, 32], [32, 16]]", '["c10::complex<float>", "c10::complex<float>"]'),
        ("aten::relu", "[[64, 32]]", '["float"]'),
        ("aten::_cudnn_rnn", "[[5, 8, 16], [], [], [4096], [1, 8, 16], [1, 8, 16]]", '["float", "TensorList"]'),
        ("aten::_cudnn_rnn", "[[5, 8, 16], [[64, 17], [64, 16]], [], [], [1, 8, 16]]", '["float", "TensorList"]'),
    ],
)
def test_what_the_shapes_do_not_tell_is_unknown(op: str, shapes: str, dtypes: str) -> None:
    assert work_of(op, parse_shapes(shapes) or (), parse_dtypes(dtypes) or ()) is None


def test_bytes_of_an_unknown_data_type_are_unknown_and_its_flops_are_not() -> None:
    assert _work("aten::mm", [[64, 32], [32, 16]], "c10::Unheard") == MatrixWork(2 * 64 * 32 * 16, None)


@pytest.mark.parametrize(("kind", "projection"), [("LSTM", 0), ("LSTM", 6), ("GRU", 0), ("RNN", 0)])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_recurrent_layer_has_the_flops_that_torch_counts_step_by_step(
    kind, layers, bidirectional, projection
) -> None:
    steps, batch, inputs, size = 5, 4, 8, 12
    options = {"proj_size": projection} if projection else {}
    layer = getattr(torch.nn, kind)(inputs, size, layers, bidirectional=bidirectional, **options)
    directions = 2 if bidirectional else 1
    out = projection or size
    source = torch.randn(steps, batch, inputs, requires_grad=True)
    states = [torch.randn(layers * directions, batch, out, requires_grad=True)]
    if kind == "LSTM":
        states.append(torch.randn(layers * directions, batch, size, requires_grad=True))
    # GIVEN the layer as torch runs it without a library: one product per step, gate block and layer
    with torch.backends.mkldnn.flags(enabled=False):
        with FlopCounterMode(display=False) as forward:
            output, _ = layer(source, tuple(states) if kind == "LSTM" else states[0])
        with FlopCounterMode(display=False) as backward:
            output.sum().backward()
    # WHEN cuDNN runs it in one op, THEN its shapes tell the same
    weights = [list(weight.shape) for weight in layer._flat_weights]
    hidden = list(states[0].shape)
    cell = list(states[1].shape) if kind == "LSTM" else []
    dims = [[steps, batch, inputs], weights, [], [], hidden, cell]
    dtypes = ["float", "TensorList", "Scalar", "float", "float", "float", "float", "float"]
    work = work_of("aten::_cudnn_rnn", _shapes(dims), tuple(map(dtype_named, dtypes)))
    assert work is not None
    assert work.flops == forward.get_total_flops()
    sizes = (weights, [hidden, hidden, cell, cell] if cell else [hidden, hidden])
    parts = sum(math.prod(shape) for shapes in sizes for shape in shapes)
    assert work.bytes == 4 * (source.numel() + output.numel() + parts)
    gradients = [list(output.shape)] * 2
    trained = backward_recurrent(_shapes([*dims, *gradients]), tuple(map(dtype_named, dtypes)))
    assert trained is not None
    assert trained.flops == backward.get_total_flops()


def test_a_packed_input_has_the_rows_of_all_its_sequences() -> None:
    work = work_of(
        "aten::_cudnn_rnn",
        ((37, 8), TensorList(((48, 8), (48, 12))), (), (), (1, 4, 12)),
        dtypes_in("float, TensorList"),
    )
    assert work is not None
    assert work.flops == 2 * 37 * 48 * (8 + 12)


@pytest.mark.parametrize(
    ("image", "weight", "stride", "padding", "dilation", "transposed", "extra", "groups"),
    [
        ((4, 3, 17, 16), (8, 3, 3, 3), (2, 2), (1, 1), (1, 1), False, (0, 0), 1),
        ((4, 8, 9, 9), (16, 4, 3, 3), (1, 1), (2, 2), (2, 2), False, (0, 0), 2),
        ((4, 16, 8, 8), (16, 4, 3, 3), (2, 2), (1, 1), (1, 1), True, (1, 1), 1),
        ((2, 6, 20), (6, 6, 5), (3,), (0,), (1,), False, (0,), 1),
    ],
)
@pytest.mark.parametrize("mask", [(True, True, False), (False, True, True), (True, False, False)])
def test_a_convolution_of_compiled_code_has_the_flops_of_its_arguments(
    image, weight, stride, padding, dilation, transposed, extra, groups, mask
):
    settings = (stride, padding, dilation, transposed, extra, groups)

    def forward(x: Any, w: Any) -> Any:
        return torch.ops.aten.convolution(x, w, None, *settings)

    arguments = (
        f"stride={stride}, padding={padding}, dilation={dilation}, transposed={transposed}, output_padding={extra}, "
        f"groups={groups}"
    )
    found = wrapped_convolution(arguments, (image, weight), (FLOAT, FLOAT))
    output = tuple(forward(torch.zeros(image, device="meta"), torch.zeros(weight, device="meta")).shape)
    elements = math.prod(image) + math.prod(weight) + math.prod(output)
    assert found == MatrixWork(_counted(forward, image, weight), 4 * elements)

    def backward(y: Any, x: Any, w: Any) -> Any:
        return torch.ops.aten.convolution_backward(y, x, w, [output[1]], *settings, mask)

    arguments = ", ".join(map(str, ([output[1]], *settings, list(mask))))
    found = wrapped_convolution(arguments, (output, image, weight), (FLOAT,) * 3)
    # torch counts the weight's gradient of a grouped convolution as if it had no groups.
    expected = (mask[0] + mask[1]) * _counted(forward, image, weight)
    assert found is not None
    assert found.flops == expected
    if groups == 1:
        assert found.flops == _counted(backward, output, image, weight)


@pytest.mark.parametrize(
    "arguments", ["", "stride=(1, 1)", "[4], (2, 2)", "stride=x, groups=1", "import os", "s0, ((("]
)
def test_arguments_that_are_no_convolutions_say_nothing(arguments):
    assert wrapped_convolution(arguments, ((1, 1, 2, 2),) * 3, (FLOAT,) * 3) is None
