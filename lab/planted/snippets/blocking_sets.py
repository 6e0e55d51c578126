"""Fault: a buffer in pinned memory is cleared by a call that waits for the GPU. Fixed: by one that does not wait.

python -m lab.planted.snippets.blocking_sets --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from torch import nn

from ..common import DEVICE, main, run_steps, size


def clear(buffer: torch.Tensor, wait: bool) -> None:
    """Zeros in pinned memory, in the order of the GPU's work, as a CUDA extension clears what its kernels write to."""
    if not buffer.is_pinned():
        buffer.zero_()
        return
    runtime = ctypes.CDLL(f"libcudart.so.{(torch.version.cuda or '').split('.')[0]}")
    pointer, size_bytes = ctypes.c_void_p(buffer.data_ptr()), ctypes.c_size_t(buffer.nbytes)
    if wait:
        failed = runtime.cudaMemset(pointer, 0, size_bytes)
    else:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        failed = runtime.cudaMemsetAsync(pointer, 0, size_bytes, stream)
    if failed:
        raise RuntimeError(f"CUDA error {failed}")


def train(logdir: Path, fixed: bool) -> None:
    """A network that clears the buffer before each layer and before the update."""
    width, batch = size(3072, 32), size(8192, 16)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(8))).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(batch, width, device=DEVICE)
    targets = torch.randn(batch, width, device=DEVICE)
    statistics = torch.zeros(4096, pin_memory=DEVICE == "cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            outputs = inputs
            for layer in model:
                clear(statistics, wait=not fixed)
                outputs = layer(outputs)
            loss = nn.functional.mse_loss(outputs, targets)
        loss.backward()
        clear(statistics, wait=not fixed)
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=batch)


if __name__ == "__main__":
    main(train)
