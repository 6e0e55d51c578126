"""How parameters are grouped for communication: DDP's buckets, and the units that FSDP gathers one by one."""

from __future__ import annotations

from collections.abc import Sequence

from tb_dlprof_plugin.planning.memory.allocator_settings import MIB
from tb_dlprof_plugin.planning.memory.step_program import Held

FIRST_BUCKET, BUCKET = MIB, 25 * MIB
"""`dist._DEFAULT_FIRST_BUCKET_BYTES` and DistributedDataParallel's default `bucket_cap_mb`."""


def buckets(sizes: Sequence[int]) -> list[int]:
    """Bytes of DDP's buckets, for parameters in the order of the module; a bucket is closed by what fills it up.

    As `compute_bucket_assignment_by_size` in torch's `reducer.cpp`, over the parameters from the last to the first.
    """
    found: list[int] = []
    open_bytes, most = 0, FIRST_BUCKET
    for size in reversed(sizes):
        open_bytes += size
        if open_bytes >= most:
            found.append(open_bytes)
            open_bytes, most = 0, BUCKET
    return [*found, open_bytes] if open_bytes else found


def shard(size: int, ranks: int) -> int:
    """Bytes of one rank's part of a tensor, the padded one."""
    return -(-size // ranks)


def sharded(held: Sequence[Held], ranks: int) -> list[Held]:
    """Storages of which each rank keeps its part."""
    return [Held(shard(one.bytes, ranks), one.kind, one.module) for one in held]
