"""LeNet-5 (LeCun et al. 1998): so small that a modern GPU waits for the CPU to launch its kernels.

The two stages of convolution and subsampling and the layers of 120, 84 and 10 units are the paper's; the convolution C3
sees all the maps of S2, and the output is linear, as in every present-day version.
"""

from __future__ import annotations

from torch import Tensor, nn


class LeNet5(nn.Module):
    """Images of 32 x 32 in, class scores out; 61,706 parameters with one channel and ten classes."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, kernel_size=5)
        self.tanh1 = nn.Tanh()
        self.pool1 = nn.AvgPool2d(2)
        self.conv2 = nn.Conv2d(6, 16, kernel_size=5)
        self.tanh2 = nn.Tanh()
        self.pool2 = nn.AvgPool2d(2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.tanh3 = nn.Tanh()
        self.fc2 = nn.Linear(120, 84)
        self.tanh4 = nn.Tanh()
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Class scores, shape ``(batch, classes)``."""
        maps = self.pool1(self.tanh1(self.conv1(images)))
        maps = self.pool2(self.tanh2(self.conv2(maps)))
        hidden = self.tanh3(self.fc1(self.flatten(maps)))
        scores: Tensor = self.fc3(self.tanh4(self.fc2(hidden)))
        return scores
