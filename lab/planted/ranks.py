"""Starts the ranks of a planted training over several GPUs, one process each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from .common import DEVICE, set_up

RANKS = 2


def run_ranks(work: Callable[[int], None]) -> None:
    """Calls ``work`` with its rank in `RANKS` processes that can talk to each other, each with a GPU of its own.

    The processes are forked, so CUDA must not be in use yet. Without GPUs they talk through gloo.
    """
    # NVLink multicast is of no use between two GPUs, and not every machine allows it.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(_rank, (work, Path(folder, "store")), nprocs=RANKS, start_method="fork")


def _rank(rank: int, work: Callable[[int], None], store: Path) -> None:
    backend = "gloo"
    if DEVICE == "cuda":
        torch.cuda.set_device(rank)
        backend = "nccl"
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=RANKS)
    set_up()
    try:
        work(rank)
    finally:
        dist.destroy_process_group()
