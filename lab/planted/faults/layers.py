"""Faults of layers: their shapes, and what is written out in place of one kernel."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn

from ..common import DEVICE, adamw, classes, normal, planted, sgd, size, train
from ..models import blocks


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


@planted()
def attention_not_fused(logdir: Path, fixed: bool) -> None:
    """Fault: attention written out as matmul, softmax, matmul. Fixed: scaled_dot_product_attention."""
    width, heads, length = size(1024, 32), size(16, 2), size(1024, 8)
    body = [Block(width, heads, length, fused=fixed) for _ in range(2)]
    head = (nn.LayerNorm(width), nn.Linear(width, 64), nn.Flatten(0, 1))
    model = nn.Sequential(*body, *head).to(DEVICE)
    inputs = normal(size(8, 2), length, width)
    train(logdir, model, adamw(model), inputs, classes(64, len(inputs) * length), amp=torch.bfloat16)


@planted()
def bad_tensor_shape(logdir: Path, fixed: bool) -> None:
    """Fault: layers whose widths are no multiple of 8 under BF16 autocast. Fixed: padded to the next multiple of 64."""
    width = size(1024, 32)
    hidden = size(4032, 64) if fixed else size(4001, 49)
    model = nn.Sequential(*blocks(4, width, hidden, nn.ReLU), nn.Linear(width, 16)).to(DEVICE)
    inputs = normal(size(4096, 8), width)
    train(logdir, model, adamw(model), inputs, classes(16, len(inputs)), amp=torch.bfloat16)


class WrittenOut(nn.Module):
    """The approximation of GELU by a tanh, as many language models spell it."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


@planted()
def no_fusion(logdir: Path, fixed: bool) -> None:
    """Fault: GELU written out, each term a kernel that reads and writes the whole tensor. Fixed: PyTorch's own GELU."""
    width = size(2048, 32)
    body: list[nn.Module] = []
    for _ in range(3):
        activation = nn.GELU(approximate="tanh") if fixed else WrittenOut()
        body += [nn.Linear(width, 4 * width), activation, nn.Linear(4 * width, width)]
    model = nn.Sequential(*body).to(DEVICE)
    inputs = normal(size(8192, 16), width)
    train(logdir, model, sgd(model), inputs, torch.randn_like(inputs), amp=torch.bfloat16)
