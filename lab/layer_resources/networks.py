"""The networks of the study: a stack of convolutions and linear layers, four single layers, and VGG-16 with its ReLUs
before or behind the max poolings."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

STACK_INPUT = (16, 64, 112, 112)
IMAGES = (256, 3, 224, 224)


def stack(convolutions: int, linears: int) -> nn.Sequential:
    """Layers that all make a tensor of the input's size: 3x3 convolutions, then linear layers over the last dimension.

    The assignment names the input and the counts and leaves the layers' widths open; these are the only ones with
    which the number of layers can be chosen freely.
    """
    layers: list[nn.Module] = [nn.Conv2d(64, 64, 3, padding=1) for _ in range(convolutions)]
    return nn.Sequential(*layers, *(nn.Linear(112, 112) for _ in range(linears)))


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "ReLU(inplace=True)": (lambda: nn.ReLU(inplace=True), IMAGES),
    "MaxPool2d(2, 2)": (lambda: nn.MaxPool2d(2, 2), IMAGES),
    "Conv2d(3, 128, 3, padding=1)": (lambda: nn.Conv2d(3, 128, 3, padding=1), IMAGES),
    "Linear(25088, 4096)": (lambda: nn.Linear(512 * 7 * 7, 4096), (256, 512 * 7 * 7)),
}
"""Layers with the size of their input."""


def vgg16(swapped: bool, inplace: bool = False) -> nn.Sequential:
    """VGG-16 for 1,000 classes; ``swapped`` puts each max pooling before the ReLU that stood before it."""
    features: list[nn.Module] = []
    channels = 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for i in range(count):
            last = i == count - 1
            features.append(nn.Conv2d(channels, width, 3, padding=1))
            relu, pool = nn.ReLU(inplace), nn.MaxPool2d(2, 2)
            features += ([pool, relu] if swapped else [relu, pool]) if last else [relu]
            channels = width
    head = [
        nn.Linear(25088, 4096),
        nn.ReLU(inplace),
        nn.Dropout(),
        nn.Linear(4096, 4096),
        nn.ReLU(inplace),
        nn.Dropout(),
    ]
    return nn.Sequential(nn.Sequential(*features), nn.Flatten(), nn.Sequential(*head, nn.Linear(4096, 1000)))


def classes(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy."""
    return nn.functional.cross_entropy(model(images), labels)


def squares(model: nn.Module, x: Tensor) -> Tensor:
    """A loss of a network without classes."""
    return torch.square(model(x)).mean()
