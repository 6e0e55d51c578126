"""Our own model: a convolutional stem in front of a transformer encoder, for image classification.

It has what the five classics lack: fused attention, layer norm, GELU and residual streams. A stem of four strided
convolutions replaces the patch projection of a vision transformer (Xiao et al. 2021, "Early convolutions help
transformers see better"); the encoder has the size of ViT-S with eight blocks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

STRIDE = 16
"""The stem halves the resolution four times."""


class ConvStem(nn.Sequential):
    """Images in, maps of ``dim`` channels at 1/16 of the resolution out."""

    def __init__(self, channels: int, dim: int) -> None:
        layers: list[nn.Module] = []
        for width in (dim // 8, dim // 4, dim // 2, dim):
            layers += [
                nn.Conv2d(channels, width, kernel_size=3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            channels = width
        super().__init__(*layers, nn.Conv2d(dim, dim, kernel_size=1))


class Attention(nn.Module):
    """Multi-head self-attention over one fused projection for queries, keys and values."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens of shape ``(batch, tokens, dim)`` in, the same shape out."""
        batch, count, dim = tokens.shape
        qkv = self.qkv(tokens).reshape(batch, count, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        result: Tensor = self.proj(mixed.transpose(1, 2).reshape(batch, count, dim))
        return result


class FeedForward(nn.Module):
    """Two linear layers around a GELU, four times as wide inside."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.gelu = nn.GELU()
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens of shape ``(batch, tokens, dim)`` in, the same shape out."""
        result: Tensor = self.fc2(self.gelu(self.fc1(tokens)))
        return result


class EncoderBlock(nn.Module):
    """Attention and feed-forward, each behind a layer norm and around a residual stream."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = FeedForward(dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens of shape ``(batch, tokens, dim)`` in, the same shape out."""
        tokens = tokens + self.attention(self.norm1(tokens))
        result: Tensor = tokens + self.mlp(self.norm2(tokens))
        return result


class ConvTransformer(nn.Module):
    """Images whose sides are multiples of 16 in, class scores out."""

    def __init__(
        self, image_shape: tuple[int, int, int], num_classes: int, dim: int = 384, depth: int = 8, heads: int = 6
    ) -> None:
        super().__init__()
        channels, height, width = image_shape
        self.stem = ConvStem(channels, dim)
        self.position = nn.Parameter(torch.zeros(1, (height // STRIDE) * (width // STRIDE), dim))
        nn.init.trunc_normal_(self.position, std=0.02)
        self.blocks = nn.Sequential(*(EncoderBlock(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Class scores, shape ``(batch, classes)``."""
        tokens = self.stem(images).flatten(2).transpose(1, 2) + self.position
        encoded = self.norm(self.blocks(tokens))
        scores: Tensor = self.head(encoded.mean(dim=1))
        return scores
