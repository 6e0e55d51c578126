"""How many thread blocks of a kernel fit on a multiprocessor at a time, and what limits it.

The arithmetic is that of CUDA's occupancy calculator: registers are given to warps in units of 256, shared memory to
blocks with 1 KiB of the system's own from compute capability 8.0 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Limiter = Literal["threads", "blocks", "registers", "shared memory"]

_WARP = 32
_REGISTERS = 65_536
_REGISTER_UNIT = 256
_WARP_UNIT = 4
_KIB = 1024


@dataclass(frozen=True, slots=True)
class _Limits:
    """Of a multiprocessor: threads, blocks, and shared memory in KiB; ``reserved`` KiB of it per block."""

    threads: int
    blocks: int
    shared: int
    reserved: int


_LIMITS: dict[tuple[int, int], _Limits] = {
    (6, 0): _Limits(2048, 32, 64, 0),
    (6, 1): _Limits(2048, 32, 96, 0),
    (7, 0): _Limits(2048, 32, 96, 0),
    (7, 5): _Limits(1024, 16, 64, 0),
    (8, 0): _Limits(2048, 32, 164, 1),
    (8, 6): _Limits(1536, 16, 100, 1),
    (8, 7): _Limits(1536, 16, 164, 1),
    (8, 9): _Limits(1536, 24, 100, 1),
    (9, 0): _Limits(2048, 32, 228, 1),
    (10, 0): _Limits(2048, 32, 228, 1),
    (12, 0): _Limits(1536, 24, 100, 1),
}
"""By compute capability: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``blocks`` fit on a multiprocessor; ``percent`` of the threads that it can hold; ``limiter`` keeps more out."""

    blocks: int
    percent: float
    limiter: Limiter


def occupancy(
    capability: tuple[int, int] | None, threads: int, registers: int = 0, shared_bytes: int = 0
) -> Occupancy | None:
    """The occupancy of a launch; None where the GPU's limits are not known or the launch does not fit them.

    Args:
        capability: compute capability of the GPU.
        threads: of a block.
        registers: of a thread; 0 or less where not recorded.
        shared_bytes: static and dynamic shared memory of a block; 0 or less where not recorded.
    """
    limits = _LIMITS.get(capability) if capability else None
    if limits is None or threads <= 0:
        return None
    warps = -(-threads // _WARP)
    by: dict[Limiter, int] = {"threads": limits.threads // (warps * _WARP), "blocks": limits.blocks}
    if registers > 0:
        of_warp = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        by["registers"] = _REGISTERS // of_warp // _WARP_UNIT * _WARP_UNIT // warps
    if shared_bytes > 0:
        by["shared memory"] = limits.shared * _KIB // (shared_bytes + limits.reserved * _KIB)
    limiter = min(by, key=lambda name: by[name])
    blocks = by[limiter]
    if blocks < 1:
        return None
    return Occupancy(blocks, 100.0 * blocks * warps * _WARP / limits.threads, limiter)
