"""A transformer under DDP with one setting that costs time, for `tb-dlprof try`.

    tb-dlprof try -- torchrun --nproc-per-node 2 lab/trying/two_ranks.py one_bucket
    tb-dlprof try -- torchrun --nproc-per-node 2 lab/trying/two_ranks.py unused_search

Gradients in one bucket are exchanged once the backward pass is over; the search for unused parameters walks the graph
of many small layers in every step.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SETTINGS: dict[str, dict[str, Any]] = {
    "one_bucket": {"bucket_cap_mb": 100_000},
    "unused_search": {"find_unused_parameters": True},
}
SIZES = {"one_bucket": (2048, 16, 6, 4, 1024), "unused_search": (384, 6, 24, 8, 256)}
"""Width, heads, layers, batch and tokens on a GPU."""
ON_CPU = (96, 6, 2, 2, 32)


def main() -> None:
    """Trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setting", choices=tuple(SETTINGS))
    setting = parser.parse_args().setting
    gpu, rank = torch.cuda.is_available(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo")
    torch.manual_seed(0)
    width, heads, layers, batch, tokens = SIZES[setting] if gpu else ON_CPU
    blocks = [nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True) for _ in range(layers)]
    model = DistributedDataParallel(
        nn.Sequential(*blocks).to(device), device_ids=[rank] if gpu else None, **SETTINGS[setting]
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=gpu)
    inputs = torch.randn(batch, tokens, width, device=device)
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
