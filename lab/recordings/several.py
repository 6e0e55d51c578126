"""Recordings of several GPUs in one process, and of several processes."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import torch
from torch import distributed, multiprocessing, nn

from recordings.recorder import Recorder
from recordings.subjects import MLP, SmallNet, image_batch, training_step

RANKS = 2


def two_gpus(rec: Recorder) -> None:
    """Kernels on two GPUs and copies between them, one process"""
    first, second = nn.Linear(256, 256).to("cuda:0"), nn.Linear(256, 256).to("cuda:1")
    inputs = torch.randn(128, 256, device="cuda:0")

    def step() -> None:
        second(first(inputs).relu().to("cuda:1")).sum().backward()
        for device in range(2):
            torch.cuda.synchronize(device)

    step()
    rec.steps(step)


def data_parallel(rec: Recorder) -> None:
    """nn.DataParallel over two GPUs: threads, broadcasts, a backward thread a GPU"""
    model = nn.DataParallel(SmallNet().to(rec.device), device_ids=[0, 1])
    rec.steps(training_step(rec.device, model, image_batch(rec.device, batch=16)), steps=1)


def nccl(rec: Recorder) -> None:
    """DistributedDataParallel over NCCL, and bare collectives; a file of each rank"""
    _spawn(rec, "nccl")


def cpu_gloo(rec: Recorder) -> None:
    """DistributedDataParallel over Gloo on the CPU; a file of each rank"""
    _spawn(rec, "gloo")


def _spawn(rec: Recorder, backend: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    multiprocessing.spawn(_rank, (backend, rec.name, rec.about, str(rec.out)), nprocs=RANKS)
    rec.written = sorted(rec.out.glob(f"{rec.name}_rank*.pt.trace.json.gz"))


def _rank(rank: int, backend: str, name: str, about: str, out: str) -> None:
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group(backend, rank=rank, world_size=RANKS)
    ids = [rank] if device.type == "cuda" else None
    model = nn.parallel.DistributedDataParallel(MLP().to(device), device_ids=ids)
    batch = (torch.randn(32, 64, device=device), torch.randint(0, 10, (32,), device=device))
    train = training_step(device, model, batch)
    values = torch.ones(1 << 16, device=device)

    def step() -> None:
        train()
        distributed.all_reduce(values)
        parts = [torch.empty_like(values) for _ in range(RANKS)]
        distributed.all_gather(parts, values)
        distributed.broadcast(values, 0)

    step()
    Recorder(f"{name}_rank{rank}", Path(out), device, about).steps(step)
    distributed.barrier()
    distributed.destroy_process_group()


CPU_KINDS = [cpu_gloo]
KINDS = [two_gpus, data_parallel, nccl]
