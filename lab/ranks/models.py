"""The models that the jobs train: transformers of hidden states, tokens, patches or experts, convolutions, MLPs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

HEAD = 64
"""Width of an attention head."""


class Attention(nn.Module):
    """Causal self-attention. The projections are separate, so that tensor parallelism can divide their columns."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        # As many heads as this rank's columns hold.
        q, k, v = (part(x).view(batch, length, -1, HEAD).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(mixed.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    """The block's second half."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """A transformer block; ``mlp`` replaces its second half."""

    def __init__(self, width: int, mlp: nn.Module | None = None) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mlp = Attention(width), mlp or Mlp(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """From hidden states to hidden states; ``blocks`` in order."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class Convolutions(nn.Module):
    """A stem and ``layers`` residual pairs of 3x3 convolutions; ``blocks`` in order."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )
            for _ in range(layers)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.head(x.mean((2, 3)))


class _Exchange(torch.autograd.Function):
    """Rows to the ranks that the splits name, and their gradients back."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:
        ctx.splits = sent, received
        result = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(result, rows.contiguous(), received, sent)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        sent, received = ctx.splits
        gradient = gradients[0]
        result = gradient.new_empty(sum(sent), gradient.shape[1])
        dist.all_to_all_single(result, gradient.contiguous(), sent, received)
        return result, None, None


class Experts(nn.Module):
    """One expert on each rank. A token goes to one of them, drawn by ``shares``, as a router would that prefers some.

    Ranks tell each other how many tokens they send, exchange them, apply their expert, and exchange them again.
    """

    def __init__(self, width: int, shares: list[float]) -> None:
        super().__init__()
        self.gate, self.expert = nn.Linear(width, len(shares)), Mlp(width)
        self.shares: torch.Tensor
        self.register_buffer("shares", torch.tensor(shares))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        weight = self.gate(tokens).softmax(-1)
        chosen = torch.multinomial(self.shares, len(tokens), replacement=True)
        order = chosen.argsort()
        counts = torch.bincount(chosen, minlength=len(self.shares))
        coming = torch.empty_like(counts)
        dist.all_to_all_single(coming, counts)
        sent, received = counts.tolist(), coming.tolist()
        done = self.expert(_Exchange.apply(tokens[order], sent, received))
        back = torch.empty_like(tokens).index_copy(0, order, _Exchange.apply(done, received, sent).to(tokens.dtype))
        return (back * weight.gather(1, chosen[:, None])).view_as(x)


VOCABULARY = 32_000
PATCH = 16


class Tokens(nn.Module):
    """A causal language model: tokens to logits."""

    def __init__(self, width: int, length: int, layers: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Patches(nn.Module):
    """A vision transformer: images to ten classes."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, stride=PATCH)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class Residual(nn.Module):
    """A block without attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(width), Mlp(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mlp(self.norm(x))
