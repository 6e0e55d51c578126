"""The six models of the demo, and the input and batch size that each is trained with.

Plain torch, written after the papers, without torchvision: the demo must run wherever torch runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from models.alexnet import AlexNet
from models.custom import ConvTransformer
from models.lenet import LeNet5
from models.mlp import MLP
from models.resnet50 import ResNet50
from models.vgg16 import VGG16

Shape = tuple[int, int, int]
"""Channels, height, width of one image."""


@dataclass(frozen=True)
class Setting:
    """What one training run feeds its model."""

    image_shape: Shape
    batch_size: int


@dataclass(frozen=True)
class ModelSpec:
    """How to build a model, and what to feed it: ``full`` on a GPU, ``quick`` on a laptop or in a test."""

    build: Callable[[Shape, int], nn.Module]
    num_classes: int
    full: Setting
    quick: Setting


MODELS: dict[str, ModelSpec] = {
    "mlp": ModelSpec(
        build=lambda shape, classes: MLP(shape, classes),
        num_classes=10,
        full=Setting((1, 28, 28), 512),
        quick=Setting((1, 28, 28), 32),
    ),
    "lenet": ModelSpec(
        build=lambda shape, classes: LeNet5(shape[0], classes),
        num_classes=10,
        full=Setting((1, 32, 32), 512),
        quick=Setting((1, 32, 32), 32),
    ),
    "alexnet": ModelSpec(
        build=lambda shape, classes: AlexNet(shape[0], classes),
        num_classes=1000,
        full=Setting((3, 224, 224), 256),
        quick=Setting((3, 64, 64), 8),
    ),
    "vgg16": ModelSpec(
        build=lambda shape, classes: VGG16(shape[0], classes),
        num_classes=1000,
        full=Setting((3, 224, 224), 64),
        quick=Setting((3, 32, 32), 4),
    ),
    "resnet50": ModelSpec(
        build=lambda shape, classes: ResNet50(shape[0], classes),
        num_classes=1000,
        full=Setting((3, 224, 224), 128),
        quick=Setting((3, 64, 64), 8),
    ),
    "custom": ModelSpec(
        build=lambda shape, classes: ConvTransformer(shape, classes),
        num_classes=1000,
        full=Setting((3, 224, 224), 64),
        quick=Setting((3, 64, 64), 2),
    ),
}
