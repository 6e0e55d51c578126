"""Compute capabilities by name, and GPUs without Tensor Cores."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.model.run_facts import Gpu, System
from tb_dlprof_plugin.names.gpu_generations import (
    NO_TENSOR_CORES,
    capability_by_name,
    tensor_core_capability,
    with_capabilities,
)
from tb_dlprof_plugin.names.gpu_peaks import ceilings_of
from tb_dlprof_plugin.names.tensor_core_eligibility import tensor_core_precisions


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA TITAN RTX", (7, 5)), ("NVIDIA GeForce GTX 1660 Ti", (7, 5)), ("Tesla T4", (7, 5)),
        ("Quadro RTX 6000", (7, 5)), ("NVIDIA GeForce RTX 2080 Ti", (7, 5)), ("Tesla V100-SXM2-16GB", (7, 0)),
        ("NVIDIA TITAN V", (7, 0)), ("NVIDIA A100-SXM4-40GB", (8, 0)), ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", (8, 0)),
        ("NVIDIA A10G", (8, 6)), ("NVIDIA RTX A6000", (8, 6)), ("NVIDIA GeForce RTX 3080", (8, 6)),
        ("NVIDIA L40S", (8, 9)), ("NVIDIA GeForce RTX 4070 Ti SUPER", (8, 9)), ("NVIDIA RTX 6000 Ada", (8, 9)),
        ("NVIDIA H100 80GB HBM3", (9, 0)), ("NVIDIA H200", (9, 0)), ("NVIDIA GH200 480GB", (9, 0)),
        ("NVIDIA B200", (10, 0)), ("NVIDIA GeForce RTX 5090", (12, 0)), ("GeForce GTX 1080 Ti", (6, 1)),
        ("Tesla P100-PCIE-16GB", (6, 0)), ("NVIDIA TITAN X (Pascal)", (6, 1)),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", (12, 0)),
        ("NVIDIA Unheard", None), ("AMD Instinct MI210", None), ("NVIDIA GeForce 210", None), ("", None),
    ],
)  # fmt: skip
def test_the_name_tells_the_compute_capability(name: str, expected: tuple[int, int] | None) -> None:
    assert capability_by_name(name) == expected


def test_capability_and_peak_rates_of_a_name_agree() -> None:
    for name in ("NVIDIA A30", "NVIDIA H20", "NVIDIA L4", "NVIDIA B200", "Tesla V100-PCIE-32GB", "GeForce GTX 1080 Ti"):
        ceilings = ceilings_of(name)
        assert ceilings is not None
        precisions = tensor_core_precisions(capability_by_name(name))
        assert [rate is not None for rate in (ceilings.fp16, ceilings.bf16, ceilings.fp8)] == [
            precision in precisions for precision in ("fp16", "bf16", "fp8")
        ]


@pytest.mark.parametrize("name", ["NVIDIA GeForce GTX 1650", "NVIDIA T1000 8GB", "NVIDIA GeForce MX450"])
def test_turing_without_tensor_cores_has_none_for_all_its_capability(name: str) -> None:
    system = System(gpus=[Gpu(0, name, 7, 5)])
    assert tensor_core_capability(system, (0,)) == NO_TENSOR_CORES
    assert tensor_core_precisions(NO_TENSOR_CORES) == ()
    assert tensor_core_capability(System(gpus=[Gpu(0, "Tesla T4", 7, 5)]), (0,)) == (7, 5)


def test_what_was_recorded_goes_before_the_name() -> None:
    recorded, named = Gpu(0, "NVIDIA H100 PCIe", 8, 0), Gpu(1, "NVIDIA TITAN RTX")
    system = with_capabilities(System(gpus=[recorded, named]))
    assert [gpu.compute_capability for gpu in system.gpus] == [(8, 0), (7, 5)]
