"""Peak rates by device name: found where CUDA's name is known, else unknown; and they fit each other."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.kernels import ceilings
from tb_dlprof_plugin.kernels.ceilings import Ceilings, ceilings_of


@pytest.mark.parametrize(
    ("name", "precision", "tera_flops", "gigabytes"),
    [
        ("NVIDIA H200", "fp16", 989.5, 4800),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156, 2039),
        ("A100-SXM4-40GB", "bf16", 312, 1555),
        ("Tesla V100-DGXS-32GB", "fp16", 125, 900),
        ("Tesla T4", "int8", 130, 300),
        ("NVIDIA GeForce RTX 4090", "fp8", 330.3, 1008),
        ("NVIDIA A10G", "fp16", 70, 600),
        ("NVIDIA H200", "fp64", 67, 4800),
    ],
)
def test_a_gpu_is_known_by_the_name_that_cuda_reports(
    name: str, precision: str, tera_flops: float, gigabytes: float
) -> None:
    found = ceilings_of(name)
    assert found is not None
    assert found.flops_per_second(precision, True) == pytest.approx(tera_flops * 1e12)
    assert found.bytes_per_second == gigabytes * 1e9


@pytest.mark.parametrize(
    "name",
    ["", "NVIDIA", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA H200 something", "AMD Instinct MI300X", "nvidia h200"],
)
def test_what_is_not_in_the_table_is_unknown(name: str) -> None:
    assert ceilings_of(name) is None


def test_cuda_cores_and_tensor_cores_have_roofs_of_their_own() -> None:
    h200, v100 = ceilings_of("NVIDIA H200"), ceilings_of("Tesla V100-SXM2-16GB")
    assert h200 is not None
    assert v100 is not None
    assert (h200.flops_per_second("fp32", False), h200.flops_per_second("fp32", True)) == (67e12, None)
    assert (h200.flops_per_second("fp64", False), h200.flops_per_second("fp64", True)) == (34e12, 67e12)
    assert h200.flops_per_second("fp16", False) is None
    assert h200.flops_per_second("3xtf32", True) == pytest.approx(494.5e12 / 3)
    assert (v100.flops_per_second("tf32", True), v100.flops_per_second("bf16", True)) == (None, None)


@pytest.mark.parametrize("name", ceilings._BY_NAME)
def test_the_rates_of_a_gpu_fit_each_other(name: str) -> None:
    gpu: Ceilings = ceilings._BY_NAME[name]
    assert gpu.source
    assert not name.startswith("NVIDIA")
    assert 250 <= gpu.bandwidth <= 8000
    if gpu.tf32 is not None and gpu.fp16 is not None:
        # Half as many bits, twice the rate; A10G and L40 are sold with less TF32, Blackwell's sheets round.
        assert 1.9 <= gpu.fp16 / gpu.tf32 <= 2.1
    if gpu.fp8 is not None and gpu.fp16 is not None:
        assert gpu.fp8 / gpu.fp16 == pytest.approx(2, rel=0.02)
    if gpu.int8 is not None and gpu.fp16 is not None:
        assert min(abs(gpu.int8 / gpu.fp16 - ratio) for ratio in (2, 4)) < 0.05
    if gpu.fp32 is not None and gpu.fp16 is not None:
        assert gpu.fp16 >= 1.9 * gpu.fp32
