"""Fault: attention written out as matmul, softmax, matmul. Fixed: scaled_dot_product_attention.

python -m lab.planted.snippets.attention_not_fused --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn

from ..common import DEVICE, main, run_steps, size


class Attention(nn.Module):
    """Self-attention with a causal mask."""

    def __init__(self, width: int, heads: int, length: int, fused: bool) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.fused = heads, fused
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        query, key, value = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
            mixed = scores.masked_fill(self.mask, float("-inf")).softmax(dim=-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a feed-forward part, each with a shortcut."""

    def __init__(self, width: int, heads: int, length: int, fused: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, length, fused)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


def train(logdir: Path, fixed: bool) -> None:
    """Two transformer blocks under BF16 autocast."""
    width, heads, length = size(1024, 32), size(16, 2), size(1024, 8)
    blocks = [Block(width, heads, length, fused=fixed) for _ in range(2)]
    model = nn.Sequential(*blocks, nn.LayerNorm(width), nn.Linear(width, 64)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(size(8, 2), length, width, device=DEVICE)
    labels = torch.randint(64, (len(inputs) * length,), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), labels)
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, optimizer=optimizer, batch_size=len(inputs))


if __name__ == "__main__":
    main(train)
