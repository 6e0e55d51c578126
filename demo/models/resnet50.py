"""ResNet-50 (He et al. 2015), with the stride on the 3 x 3 convolution ("v1.5"): many small memory-bound kernels."""

from __future__ import annotations

from torch import Tensor, nn

EXPANSION = 4
"""How much wider a bottleneck's output is than its 3 x 3 convolution."""


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3, 1 x 1 convolutions around a shortcut, which is projected where the shape changes."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out_channels = width * EXPANSION
        self.conv1 = nn.Conv2d(channels, width, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out_channels, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or channels != out_channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, out_channels, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(out_channels),
            )

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of four times ``width`` channels, at ``1 / stride`` of the resolution."""
        out = self.relu(self.bn1(self.conv1(maps)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        result: Tensor = self.relu(out + self.downsample(maps))
        return result


def _stage(channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    first = Bottleneck(channels, width, stride)
    rest = (Bottleneck(width * EXPANSION, width, stride=1) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)


class ResNet50(nn.Module):
    """Images in, class scores out; 25,557,032 parameters with three channels and 1000 classes."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = _stage(64, 64, blocks=3, stride=1)
        self.layer2 = _stage(256, 128, blocks=4, stride=2)
        self.layer3 = _stage(512, 256, blocks=6, stride=2)
        self.layer4 = _stage(1024, 512, blocks=3, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512 * EXPANSION, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Class scores, shape ``(batch, classes)``."""
        maps = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        maps = self.layer4(self.layer3(self.layer2(self.layer1(maps))))
        scores: Tensor = self.fc(self.avgpool(maps).flatten(1))
        return scores
