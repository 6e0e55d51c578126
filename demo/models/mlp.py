"""A multi-layer perceptron of three linear layers: nothing but matrix products, the simplest Tensor Core client."""

from __future__ import annotations

import math

from torch import Tensor, nn


class MLP(nn.Module):
    """Pixels in, class scores out, over two hidden layers of ``hidden`` units."""

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, hidden: int = 2048) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(math.prod(image_shape), hidden)
        self.relu1 = nn.ReLU()
        self.fc2 = nn.Linear(hidden, hidden)
        self.relu2 = nn.ReLU()
        self.fc3 = nn.Linear(hidden, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Class scores, shape ``(batch, classes)``."""
        hidden = self.relu1(self.fc1(self.flatten(images)))
        scores: Tensor = self.fc3(self.relu2(self.fc2(hidden)))
        return scores
