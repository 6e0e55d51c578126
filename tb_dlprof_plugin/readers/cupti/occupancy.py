"""The share of a GPU's warps that a kernel can keep busy, as Kineto estimates it.

Databases do not hold it. The limits of the SM come from the database where it has them, so that no table of GPUs is
needed. Source of the rules: CUDA's cuda_occupancy.h; of the estimate by grid size: Kineto's CuptiActivity ("est.
achieved occupancy %": blocks per SM that there are, at most those that fit).
"""

from __future__ import annotations

from dataclasses import dataclass

_REGISTER_UNIT = 256
"""Registers are given to a warp in such units, since compute capability 3.0."""
_SHARED_UNIT = 128
"""Bytes in which shared memory is given since 8.0; 256 before, which differs by next to nothing."""
_RESERVED_SHARED = 1024
"""Bytes of a block that CUDA keeps since 8.0."""


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one SM has; ``sm_count`` of the GPU."""

    sm_count: int
    warps: int
    blocks: int
    registers: int
    shared_bytes: int
    threads_of_warp: int = 32
    compute_major: int = 0


def occupancy_percent(
    limits: SmLimits, blocks: int, threads_of_block: int, registers: int, shared_bytes: int
) -> int | None:
    """Percent of the warps of the SMs, rounded; None for what cannot be launched.

    Args:
        limits: of the GPU.
        blocks: of the grid.
        threads_of_block: of each.
        registers: of a thread.
        shared_bytes: of a block, static and dynamic.
    """
    if min(blocks, threads_of_block, limits.warps, limits.blocks, limits.sm_count, limits.threads_of_warp) <= 0:
        return None
    warps = -(-threads_of_block // limits.threads_of_warp)
    fit = min(limits.blocks, limits.warps // warps)
    if registers > 0:
        of_warp = -(-registers * limits.threads_of_warp // _REGISTER_UNIT) * _REGISTER_UNIT
        fit = min(fit, limits.registers // of_warp // warps)
    shared = max(0, shared_bytes) + (_RESERVED_SHARED if limits.compute_major >= 8 else 0)
    if shared > 0 and limits.shared_bytes > 0:
        fit = min(fit, limits.shared_bytes // (-(-shared // _SHARED_UNIT) * _SHARED_UNIT))
    if fit <= 0:
        return None
    per_sm = min(blocks / limits.sm_count, fit)
    return round(min(1.0, per_sm * warps / limits.warps) * 100)
