"""Names, shapes and durations as people read them."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.model.dtypes import dtype_named
from tb_dlprof_plugin.model.formatting import (
    byte_size,
    dtypes_text,
    duration,
    flop_count,
    interval,
    ratio,
    shapes_text,
    short_kernel_name,
)
from tb_dlprof_plugin.model.shapes import TensorList


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ns"), (7, "7 ns"), (999, "999 ns"), (1_000, "1.00 µs"), (31_240_000, "31.2 ms"), (312_400, "312 µs"),
        (999_600, "1.00 ms"), (999_400, "999 µs"), (1_234_567_890, "1.23 s"), (90_000_000_000, "90.0 s"),
        (999_499_000_000, "999 s"), (999_500_000_000, "1000 s"),
    ],
)  # fmt: skip
def test_durations_have_three_digits(value: int, text: str) -> None:
    assert duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"), (1, "1 B"), (1023, "1,023 B"), (1024, "1.00 KiB"), (1536, "1.50 KiB"), (967_134_208, "922 MiB"),
        (1_048_000_000, "999 MiB"), (999.5 * 2**20, "1,000 MiB"),
        (1023.9 * 2**20, "1.00 GiB"), (150_109_880_320, "140 GiB"), (-2048, "-2.00 KiB"),
    ],
)  # fmt: skip
def test_sizes_have_three_digits_in_binary_units(value: int, text: str) -> None:
    assert byte_size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 FLOP"), (999, "999 FLOP"), (1000, "1.00 kFLOP"), (1_060_000_000_000, "1.06 TFLOP"),
        (999_600_000, "1.00 GFLOP"), (999_500_000_000_000_000, "1,000 PFLOP"),
    ],
)  # fmt: skip
def test_flops_have_three_digits(value: int, text: str) -> None:
    assert flop_count(value) == text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("nvjet_sm90_hsh_64x64_TNN", "nvjet_sm90_hsh_64x64_TNN"),
        ("void cudnn::bn_fw_tr_1C11<float, 512>(Params)", "bn_fw_tr_1C11"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, char*>(int)",
            "vectorized_elementwise_kernel<Fill>",
        ),
        ("void (anonymous namespace)::softmax_warp_forward<float>(Params)", "softmax_warp_forward"),
        ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>(int)", "max_pool_forward_nchw"),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::UnaryOpFunctor<int> >(int)",
            "multi_tensor_apply_kernel<Unary>",
        ),
        ("_ZN7cutlass6KernelINS_4gemm9GemmShapeILi64EEENS4_28Conv2dWgradOutputGradientTile", "Kernel<Conv2dWgrad>"),
        ("_ZN2at6native7my_kernEPfi", "my_kern"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("", ""),
    ],
)
def test_a_kernel_keeps_its_own_name(name: str, short: str) -> None:
    assert short_kernel_name(name) == short


def test_shapes_and_types_are_text_and_nothing_where_not_recorded() -> None:
    assert shapes_text(((64, 3, 224, 224), (64, 3, 7, 7), (), None)) == "64×3×224×224, 64×3×7×7"
    assert shapes_text((TensorList(((2, 3), (4,))), ())) == "[2 tensors]"
    assert dtypes_text(tuple(map(dtype_named, ("c10::Half", "float", "", "Scalar", "c10::Half")))) == "fp16, fp32"
    assert [shapes_text(()), dtypes_text(())] == [""] * 2


def test_an_interval_whose_ends_read_the_same_is_one_number() -> None:
    assert interval(2.6, 2.61, "{:.2f}".format) == "2.60 to 2.61"
    assert interval(2.6, 2.6, "{:.2f}".format) == "2.60"
    assert interval(2.599, 2.601, "{:.2f}".format) == "2.60"
    assert interval(145_900_000, 146_100_000, duration) == "146 ms ± 100 µs"


@pytest.mark.parametrize(
    ("value", "text"), [(2.6, "2.60"), (0.2173, "0.217"), (14.5, "14.5"), (123.4, "123"), (1234.5, "1,234")]
)
def test_ratios_have_three_digits(value: float, text: str) -> None:
    assert ratio(value) == text
