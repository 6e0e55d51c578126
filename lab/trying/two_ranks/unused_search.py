"""A transformer under DDP of many small layers that searches for unused parameters in every step.

torchrun --nproc-per-node 2 unused_search.py
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS, BATCH, TOKENS = (384, 24, 8, 256) if torch.cuda.is_available() else (96, 2, 2, 32)


def main() -> None:
    """Trains."""
    gpu, rank = torch.cuda.is_available(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(WIDTH, 6, 4 * WIDTH, 0.0, batch_first=True) for _ in range(LAYERS)]
    model = DistributedDataParallel(
        nn.Sequential(*layers).to(device), device_ids=[rank] if gpu else None, find_unused_parameters=True
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=gpu)
    inputs = torch.randn(BATCH, TOKENS, WIDTH, device=device)
    for step in range(2000):
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(inputs).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0 and rank == 0:
            print(step, loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
