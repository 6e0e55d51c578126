"""The sizes behind an op, and which of them are slower on Tensor Cores."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.names.alignment import misaligned, multiple, product_sizes
from tb_dlprof_plugin.readers.input_text import parse_shapes


@pytest.mark.parametrize(
    ("op", "shapes", "expected"),
    [
        ("aten::mm", "[[64, 84], [84, 10]]", {"M": 64, "N": 10, "K": 84}),
        ("aten::addmm", "[[10], [64, 84], [84, 10], [], []]", {"M": 64, "N": 10, "K": 84}),
        ("aten::bmm", "[[12, 64, 32], [12, 32, 48]]", {"M": 64, "N": 48, "K": 32}),
        ("aten::baddbmm", "[[12, 64, 48], [12, 64, 32], [12, 32, 48]]", {"M": 64, "N": 48, "K": 32}),
        (
            "aten::cudnn_convolution",
            "[[8, 3, 32, 32], [64, 3, 7, 7], []]",
            {"input channels": 3, "output channels": 64},
        ),
        # Groups: the weight holds the input channels of one group, and all output channels.
        ("aten::cudnn_convolution", "[[8, 64, 9, 9], [128, 16, 3, 3]]", {"input channels": 16, "output channels": 32}),
        (
            "aten::convolution_backward",
            "[[8, 64, 30, 30], [8, 3, 32, 32], [64, 3, 3, 3], [], []]",
            {"input channels": 3, "output channels": 64},
        ),
        (
            "aten::cudnn_convolution_transpose",
            "[[8, 64, 9, 9], [64, 3, 3, 3]]",
            {"input channels": 64, "output channels": 3},
        ),
        (
            "aten::_cudnn_rnn",
            "[[20, 16, 62], [[512, 62], [512, 128]], [], [], [1, 16, 128], []]",
            {"input size": 62, "hidden size": 128},
        ),
        ("aten::_flash_attention_forward", "[[2, 128, 8, 64], [2, 128, 8, 64]]", {"head size": 64}),
        ("aten::mm", "", {}),
        ("aten::mm", "not json", {}),
        ("aten::mm", "{}", {}),
        ("aten::mm", "[[64, 84]]", {}),
        ("aten::mm", "[[], []]", {}),
        ("aten::mm", "[[0, 84], [84, 0]]", {"K": 84}),
        ("aten::cudnn_convolution", "[[8, 3], [64, 3]]", {}),
    ],
)
def test_sizes_are_read_off_the_input_shapes(op: str, shapes: str, expected: dict[str, int]) -> None:
    assert {size.label: size.value for size in product_sizes(op, parse_shapes(shapes) or ())} == expected


def test_sixteen_bytes_are_other_numbers_of_elements_in_each_precision() -> None:
    assert {p: multiple(p) for p in ("fp64", "tf32", "fp16", "bf16", "fp8", "int8", "fp32", "")} == {
        "fp64": 2, "tf32": 4, "fp16": 8, "bf16": 8, "fp8": 16, "int8": 16, "fp32": None, "": None,
    }  # fmt: skip


def test_a_size_is_misaligned_by_the_precision_it_runs_in() -> None:
    sizes = product_sizes("aten::mm", ((64, 84), (84, 10)))
    assert [str(size) for size in misaligned(sizes, "fp16")] == ["N = 10", "K = 84"]
    assert [str(size) for size in misaligned(sizes, "tf32")] == ["N = 10"]
    assert [str(size) for size in misaligned(sizes, "fp64")] == []
    assert misaligned(sizes, "fp32") == ()
