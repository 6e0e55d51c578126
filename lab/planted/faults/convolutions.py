"""Faults of image models: channels, algorithms, biases, the order of layers, and batches too small."""

from __future__ import annotations

import itertools
from pathlib import Path

import torch
from torch import Tensor, nn

from ..common import classes, listed_sgd, normal, planted, size, train
from ..models import convolutions, image_model


def _channels_last(model: nn.Module, images: Tensor) -> tuple[nn.Module, Tensor]:
    last = torch.channels_last
    return model.to(memory_format=last), images.to(memory_format=last)  # type: ignore[call-overload]


@planted()
def batch_size(logdir: Path, fixed: bool) -> None:
    """Fault: batches of 8 images leave the GPU idle and its memory empty. Fixed: batches of 256."""
    torch.backends.cudnn.benchmark = True
    model = image_model(convolutions((3, 32, 64, 128)), 128, 10)
    images = normal(size(256, 4) if fixed else size(8, 2), 3, 64, 64)
    train(logdir, model, listed_sgd(model), images, classes(10, len(images)))


@planted()
def bias_before_batch_norm(logdir: Path, fixed: bool) -> None:
    """Fault: convolutions with a bias that the batch norm after them removes again. Fixed: bias=False."""
    torch.backends.cudnn.benchmark = True
    widths = (8, *(size(64, 8) for _ in range(6)))
    images = normal(size(64, 2), widths[0], size(112, 8), size(112, 8))
    model, images = _channels_last(image_model(convolutions(widths, bias=not fixed), widths[-1], 16), images)
    train(logdir, model, listed_sgd(model), images, classes(16, len(images)), amp=torch.bfloat16)


@planted()
def channels_last(logdir: Path, fixed: bool) -> None:
    """Fault: convolutions on Tensor Cores with channels first, so that cuDNN transposes. Fixed: channels last."""
    torch.backends.cudnn.benchmark = True
    widths = (size(32, 8), size(64, 8), size(128, 16), size(128, 16), size(128, 16))
    model: nn.Module = image_model(convolutions(widths), widths[-1], 16)
    images = normal(size(64, 2), widths[0], size(56, 8), size(56, 8))
    if fixed:
        model, images = _channels_last(model, images)
    train(logdir, model, listed_sgd(model), images, classes(16, len(images)), amp=torch.bfloat16)


@planted()
def cudnn_benchmark_off(logdir: Path, fixed: bool) -> None:
    """Fault: cuDNN chooses the algorithms of convolutions by its heuristics. Fixed: it times them once."""
    torch.backends.cudnn.benchmark = fixed
    model = image_model(convolutions((3, 64, 128, 256)), 256, 10)
    images = normal(size(64, 2), 3, 56, 56)
    train(logdir, model, listed_sgd(model), images, classes(10, len(images)))


@planted()
def relu_before_maxpool(logdir: Path, fixed: bool) -> None:
    """Fault: each ReLU stands before its max pooling. Fixed: after it, where there are a quarter of the elements."""
    torch.backends.cudnn.benchmark = True
    widths = (8, size(64, 8), size(64, 8), size(128, 16))
    body: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        behind = [nn.ReLU(), nn.MaxPool2d(2)]
        body += [nn.Conv2d(inputs, outputs, 3, padding=1), *(reversed(behind) if fixed else behind)]
    images = normal(size(64, 2), widths[0], size(224, 16), size(224, 16))
    model, images = _channels_last(image_model(body, widths[-1], 16), images)
    train(logdir, model, listed_sgd(model), images, classes(16, len(images)), amp=torch.bfloat16)
