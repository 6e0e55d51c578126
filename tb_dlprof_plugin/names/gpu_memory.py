"""Memory of GPUs by the name that CUDA reports: what the data sheet says, and which GPU a user's words mean.

Data sheets count in units of 2^30 bytes. Sizes were compared with: the systems that MLPerf Inference v4.1 lists (H200:
141), NVIDIA's support matrix of NIM (H100 SXM and A100 SXM: 80, L40S: 48, A10G: 24), the guide of DGX B200 (1,440 over
8), what NVIDIA said of the GeForce RTX 50 series (5090: 32, 5080 and 5070 Ti: 16, 5070: 12), Hugging Face's list of
hardware (H20: 96) and `gpu_specs.csv` of Lambda's calculator (V100, A100, A40, RTX A6000, RTX 3090). A GPU that is sold
with two sizes under one name is left out: GeForce RTX 3060 (12 and 8), RTX 3080 (10 and 12).

What a process sees is less: error correction (about 6 % on GDDR6 cards that have it on), the driver and the firmware
take a part. Read on one machine: an H200 of 141 reports 139.8 GiB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

GIB = 1 << 30
_LEAST_USABLE = 0.93
"""Of the data sheet's, with error correction on: a Tesla T4 of 16 reports 14.6 to 14.9 GiB, an A10 of 24 22.5 GiB."""
_LEAST_USABLE_HBM = 0.975

_GIB_BY_NAME = {
    "GeForce GTX 1080 Ti": 11, "Tesla P100-PCIE-12GB": 12, "Tesla P100-PCIE-16GB": 16, "Tesla P100-SXM2-16GB": 16,
    "Tesla V100-SXM2-16GB": 16, "Tesla V100-SXM2-32GB": 32, "Tesla V100-PCIE-16GB": 16, "Tesla V100-PCIE-32GB": 32,
    "Tesla V100S-PCIE-32GB": 32, "Tesla V100-DGXS-16GB": 16, "Tesla V100-DGXS-32GB": 32, "Tesla T4": 16,
    "GeForce RTX 2070": 8, "GeForce RTX 2080": 8, "GeForce RTX 2080 Ti": 11, "Quadro RTX 6000": 24,
    "Quadro RTX 8000": 48, "A100-PCIE-40GB": 40, "A100-SXM4-40GB": 40, "A100 80GB PCIe": 80, "A100-SXM4-80GB": 80,
    "A30": 24, "A10": 24, "A10G": 24, "A40": 48, "RTX A4000": 16, "RTX A5000": 24, "RTX A6000": 48,
    "GeForce RTX 3060 Ti": 8, "GeForce RTX 3070": 8, "GeForce RTX 3070 Ti": 8,
    "GeForce RTX 3080 Ti": 12, "GeForce RTX 3090": 24, "GeForce RTX 3090 Ti": 24, "L4": 24,
    "L40": 48, "L40S": 48, "RTX 6000 Ada Generation": 48, "GeForce RTX 4060": 8, "GeForce RTX 4070": 12,
    "GeForce RTX 4070 SUPER": 12, "GeForce RTX 4070 Ti": 12, "GeForce RTX 4070 Ti SUPER": 16, "GeForce RTX 4080": 16,
    "GeForce RTX 4080 SUPER": 16, "GeForce RTX 4090": 24, "H20": 96, "H100 PCIe": 80, "H100 80GB HBM3": 80,
    "H100 NVL": 94, "H200": 141, "H200 NVL": 141, "GH200 480GB": 96, "GH200 144G HBM3e": 144, "B200": 180,
    "RTX PRO 6000 Blackwell Workstation Edition": 96, "RTX PRO 6000 Blackwell Max-Q Workstation Edition": 96,
    "RTX PRO 6000 Blackwell Server Edition": 96, "GeForce RTX 5070": 12, "GeForce RTX 5070 Ti": 16,
    "GeForce RTX 5080": 16, "GeForce RTX 5090": 32,
}  # fmt: skip
"""GPUs that are sold with memory of one size only, by device name without the leading "NVIDIA "."""
_HBM = re.compile(r"P100|V100|A100|A30\b|H100|H20\b|H200|B200")

COMMON = ("Tesla T4", "L4", "A100-SXM4-40GB", "L40S", "A100-SXM4-80GB", "H100 80GB HBM3", "H200", "B200")
"""Data centres' GPUs of different sizes, smallest first: those that a table shows."""

DESKTOP = ("GeForce RTX 3090", "GeForce RTX 4090")
"""What many have on their desk; a table shows them after `COMMON`."""


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """Bytes that a process can use of a GPU, besides its context: at the least and at the most."""

    name: str
    least: int
    most: int


class UnknownGpu(ValueError):
    """No GPU of the table has this name; the message lists some."""


def gpu_memory(words: str) -> GpuMemory:
    """The memory of a GPU.

    Args:
        words: CUDA's name, or words of it in any order, such as "A100 40GB". Of several GPUs with these words and the
            same memory it is the first.

    Raises:
        UnknownGpu: none has them, or several of different memory.
    """
    wanted = _words(words.removeprefix("NVIDIA "))
    exact = [name for name in _GIB_BY_NAME if _words(name) == wanted]
    fitting = exact or [name for name in _GIB_BY_NAME if wanted and set(wanted) <= set(_words(name))]
    if not fitting:
        known = ", ".join(COMMON)
        raise UnknownGpu(f"the memory of {words!r} is not known; name a GPU as CUDA does, such as {known}.")
    if len({_GIB_BY_NAME[name] for name in fitting}) > 1:
        raise UnknownGpu(f"{words!r} can be {', '.join(fitting)}: name one of them.")
    size = _GIB_BY_NAME[fitting[0]] * GIB
    share = _LEAST_USABLE_HBM if _HBM.search(fitting[0]) else _LEAST_USABLE
    return GpuMemory(fitting[0], round(share * size), size)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())
