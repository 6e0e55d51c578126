"""Peak rates by device name: found where CUDA's name is known, else unknown; and they fit each other."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.names import gpu_peaks
from tb_dlprof_plugin.names.gpu_peaks import Ceilings, ceilings_of


@pytest.mark.parametrize(
    ("name", "precision", "tera_flops", "gigabytes"),
    [
        ("NVIDIA H200", "fp16", 989.5, 4800),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156, 2039),
        ("A100-SXM4-40GB", "bf16", 312, 1555),
        ("Tesla V100-DGXS-32GB", "fp16", 125, 900),
        ("Tesla T4", "int8", 130, 320),
        ("NVIDIA GeForce RTX 4090", "fp8", 330.3, 1008),
        ("NVIDIA A10G", "fp16", 70, 600),
        ("NVIDIA H200", "fp64", 67, 4800),
        ("NVIDIA B200", "tf32", 1125, 7700),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "bf16", 503.8, 1792),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "bf16", 88.2, 672),
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


@pytest.mark.parametrize("name", gpu_peaks._BY_NAME)
def test_the_rates_of_a_gpu_fit_each_other(name: str) -> None:
    gpu: Ceilings = gpu_peaks._BY_NAME[name]
    assert gpu.source
    assert not name.startswith("NVIDIA")
    assert 250 <= gpu.bandwidth <= 8000
    if gpu.tf32 is not None and gpu.fp16 is not None:
        # Half as many bits, twice the rate: a rate with FP16 accumulation or with sparsity would not fit TF32's.
        assert 1.9 <= gpu.fp16 / gpu.tf32 <= 2.1
    if gpu.fp8 is not None and gpu.fp16 is not None:
        assert gpu.fp8 / gpu.fp16 == pytest.approx(2, rel=0.02)
    if gpu.int8 is not None and gpu.fp16 is not None:
        assert min(abs(gpu.int8 / gpu.fp16 - ratio) for ratio in (2, 4)) < 0.05
    if gpu.fp32 is not None and gpu.fp16 is not None:
        assert gpu.fp16 >= 1.9 * gpu.fp32


# SMs, boost clock in MHz, operations per SM and clock: FP32, FP16 on Tensor Cores with FP32 accumulation, INT8 on them.
CLOCKED = {
    "Tesla T4": (40, 1590, 128, 1024, 2048),
    "GeForce RTX 2070": (36, 1710, 128, 512, 2048),
    "GeForce RTX 2080": (46, 1800, 128, 512, 2048),
    "GeForce RTX 2080 Ti": (68, 1635, 128, 512, 2048),
    "Quadro RTX 6000": (72, 1770, 128, 1024, 2048),
    "Tesla V100-SXM2-16GB": (80, 1530, 128, 1024, None),
    "A100-SXM4-80GB": (108, 1410, 128, 2048, 4096),
    "A30": (56, 1440, 128, 2048, 4096),
    "A10": (72, 1695, 256, 1024, 2048),
    "A10G": (80, 1710, 256, 512, None),
    "A40": (84, 1740, 256, 1024, 2048),
    "RTX A4000": (48, 1560, 256, 1024, 2048),
    "RTX A5000": (64, 1695, 256, 1024, 2048),
    "RTX A6000": (84, 1800, 256, 1024, 2048),
    "GeForce RTX 3060": (28, 1777, 256, 512, 2048),
    "GeForce RTX 3060 Ti": (38, 1665, 256, 512, 2048),
    "GeForce RTX 3070": (46, 1725, 256, 512, 2048),
    "GeForce RTX 3070 Ti": (48, 1770, 256, 512, 2048),
    "GeForce RTX 3080": (68, 1710, 256, 512, 2048),
    "GeForce RTX 3080 Ti": (80, 1665, 256, 512, 2048),
    "GeForce RTX 3090": (82, 1695, 256, 512, 2048),
    "GeForce RTX 3090 Ti": (84, 1860, 256, 512, 2048),
    "L4": (58, 2040, 256, 1024, 2048),
    "L40": (142, 2490, 256, 512, 1024),
    "L40S": (142, 2520, 256, 1024, 2048),
    "RTX 6000 Ada Generation": (142, 2505, 256, 1024, 2048),
    "GeForce RTX 4060": (24, 2460, 256, 512, 2048),
    "GeForce RTX 4060 Ti": (34, 2535, 256, 512, 2048),
    "GeForce RTX 4070": (46, 2475, 256, 512, 2048),
    "GeForce RTX 4070 SUPER": (56, 2475, 256, 512, 2048),
    "GeForce RTX 4070 Ti": (60, 2610, 256, 512, 2048),
    "GeForce RTX 4070 Ti SUPER": (66, 2610, 256, 512, 2048),
    "GeForce RTX 4080": (76, 2505, 256, 512, 2048),
    "GeForce RTX 4080 SUPER": (80, 2550, 256, 512, 2048),
    "GeForce RTX 4090": (128, 2520, 256, 512, 2048),
    "RTX PRO 6000 Blackwell Workstation Edition": (188, 2617, 256, 1024, 2048),
    "RTX PRO 6000 Blackwell Max-Q Workstation Edition": (188, 2280, 256, 1024, 2048),
    "GeForce RTX 5060 Ti": (36, 2572, 256, 512, 2048),
    "GeForce RTX 5070": (48, 2512, 256, 512, 2048),
    "GeForce RTX 5070 Ti": (70, 2452, 256, 512, 2048),
    "GeForce RTX 5080": (84, 2617, 256, 512, 2048),
    "GeForce RTX 5090": (170, 2407, 256, 512, 2048),
}


@pytest.mark.parametrize("name", CLOCKED)
def test_the_rates_follow_from_the_number_of_sms_and_the_boost_clock(name: str) -> None:
    sms, megahertz, *per_clock = CLOCKED[name]
    gpu = gpu_peaks._BY_NAME[name]
    for rate, operations in zip((gpu.fp32, gpu.fp16, gpu.int8), per_clock, strict=True):
        if rate is None or operations is None:
            assert rate is operations
        else:
            assert rate == pytest.approx(sms * megahertz * operations / 1e6, rel=0.006)
