"""VGG-16 without batch norm (Simonyan and Zisserman 2014, configuration D): dense 3 x 3 convolutions, GPU-bound."""

from __future__ import annotations

from torch import Tensor, nn

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Output channels of the convolutions of each stage; a stage ends with a 2 x 2 max pooling."""


def _features(channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for stage in STAGES:
        for width in stage:
            layers += [nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    return nn.Sequential(*layers)


class VGG16(nn.Module):
    """Images of at least 32 x 32 in, class scores out; 138,357,544 parameters with three channels and 1000 classes."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.features = _features(channels)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(4096, num_classes),
        )
        # The paper's start from a small net does not fit a demo: He initialisation keeps thirteen plain layers alive.
        for module in self.features:
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Class scores, shape ``(batch, classes)``."""
        maps = self.avgpool(self.features(images))
        scores: Tensor = self.classifier(maps.flatten(1))
        return scores
