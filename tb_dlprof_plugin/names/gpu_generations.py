"""Compute capabilities of GPUs by name, and which GPUs of a capability with Tensor Cores have none.

Recordings of some tools name the GPU only. Source: NVIDIA, "CUDA GPU Compute Capability"
(developer.nvidia.com/cuda-gpus); those of Turing without Tensor Cores: NVIDIA, *Turing Tuning Guide* and the
specifications of the chips TU116 and TU117.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from tb_dlprof_plugin.model.run_facts import Gpu, System

NO_TENSOR_CORES = (0, 0)
"""Stands for the compute capability of a GPU without Tensor Cores whose own would say that it has some."""

_BY_NAME: tuple[tuple[tuple[int, int], re.Pattern[str]], ...] = tuple(
    (capability, re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])"))
    for capability, names in (
        ((12, 1), r"GB10"),
        ((12, 0), r"RTX 50\d\d|RTX PRO \d+ Blackwell"),
        ((10, 3), r"B300|GB300"),
        ((10, 0), r"B100|B200|GB200"),
        ((9, 0), r"H20|H100|H200|H800|GH200"),
        ((8, 9), r"L2|L4|L20|L40|L40S|L40G|RTX 40\d\d|RTX \d{4} Ada"),
        ((8, 7), r"Orin"),
        ((8, 0), r"A30|A100|A100X|A800"),
        ((8, 6), r"A2|A10|A10G|A10M|A16|A40|RTX A\d{3,4}|RTX 30\d\d|RTX 2050|MX570"),
        (
            (7, 5),
            r"T4|T4G|TITAN RTX|Quadro RTX \d{4}|RTX 20[6-8]\d|GTX 16\d\d|MX[45]50|T[4-6]\d\d|T1[02]00|T2000",
        ),
        ((7, 2), r"Xavier"),
        ((7, 0), r"V100|V100S|TITAN V|GV100|Quadro GV100"),
        ((6, 1), r"P4|P6|P40|GTX 10\d\d|TITAN X[Pp]?|Quadro P\d{3,4}"),
        ((6, 0), r"P100|GP100|Quadro GP100"),
        ((5, 2), r"M4|M6|M10|M40|M60|GTX 9[5-8]\d"),
        ((3, 7), r"K80"),
    )
)
_TURING_WITHOUT = re.compile(r"\b(GTX 16\d\d|MX[45]50|T4\d\d|T5\d\d|T600|T1000|T1200|T2000)\b")


def capability_by_name(gpu: str) -> tuple[int, int] | None:
    """Of an NVIDIA GPU by the name that CUDA reports, such as (7, 5) of "NVIDIA TITAN RTX"; None where unknown."""
    # The memory is named like a part: "A100-SXM4-40GB".
    words = gpu.replace("-", " ").replace("_", " ")
    return next((capability for capability, pattern in _BY_NAME if pattern.search(words)), None)


def with_capabilities(system: System) -> System:
    """The system with the compute capability of each GPU of which only the name was recorded."""
    gpus = [_with_capability(gpu) for gpu in system.gpus]
    return system if gpus == system.gpus else msgspec.structs.replace(system, gpus=gpus)


def tensor_core_capability(system: System, gpu_ids: Collection[int]) -> tuple[int, int] | None:
    """Compute capability of the first of these GPUs as far as Tensor Cores go: `NO_TENSOR_CORES` of Turing's GPUs
    without them (GTX 16 and its like). None without a GPU, or where it was not recorded."""
    gpu = next((gpu for gpu in system.gpus if gpu.id in gpu_ids), None)
    if gpu is None:
        return None
    return NO_TENSOR_CORES if _TURING_WITHOUT.search(gpu.name) else gpu.compute_capability


def _with_capability(gpu: Gpu) -> Gpu:
    found = capability_by_name(gpu.name) if gpu.compute_capability is None else None
    return gpu if found is None else msgspec.structs.replace(gpu, compute_major=found[0], compute_minor=found[1])
