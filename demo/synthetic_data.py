"""Made-up images through a real Dataset and DataLoader, the same on each machine and in each run.

An image is a crop of one of a few pre-generated pictures, so that a sample costs about as much as reading a decoded one
from memory. Images stay ``uint8`` until they are on the device, as a training on stored images does it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

POOL_SIZE = 64
MARGIN = 16
SEED = 0


class SyntheticImages(Dataset[tuple[Tensor, int]]):
    """``length`` pairs of an image (``uint8``, channels x height x width) and its class."""

    def __init__(self, length: int, image_shape: tuple[int, int, int], num_classes: int) -> None:
        self.length = length
        self.image_shape = image_shape
        self.num_classes = num_classes
        channels, height, width = image_shape
        self.pool = torch.randint(
            0,
            256,
            (POOL_SIZE, channels, height + MARGIN, width + MARGIN),
            dtype=torch.uint8,
            generator=torch.Generator().manual_seed(SEED),
        )

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        if not 0 <= index < self.length:
            raise IndexError(index)
        _, height, width = self.image_shape
        picture = index % POOL_SIZE
        top, left = index * 7 % MARGIN, index * 11 % MARGIN
        return self.pool[picture, :, top : top + height, left : left + width], picture % self.num_classes


def make_loader(
    *,
    batches: int,
    batch_size: int,
    image_shape: tuple[int, int, int],
    num_classes: int,
    workers: int,
    pin_memory: bool,
) -> DataLoader[tuple[Tensor, Tensor]]:
    """A loader of exactly ``batches`` full batches, whose workers live as long as it does."""
    dataset = SyntheticImages(batches * batch_size, image_shape, num_classes)
    return DataLoader(
        dataset,  # type: ignore[arg-type]  # a sample is (Tensor, int), what the loader yields is (Tensor, Tensor)
        batch_size=batch_size,
        num_workers=workers,
        pin_memory=pin_memory,
        persistent_workers=workers > 0,
        drop_last=True,
    )
