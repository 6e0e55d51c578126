"""What is recorded: small models, their data and a training step; nothing that needs another package than torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

CLASSES = 10


class SmallNet(nn.Module):
    """Two convolutions with batch norm and a linear layer."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Class scores."""
        maps = functional.max_pool2d(functional.relu(self.bn1(self.conv1(images))), 2)
        maps = functional.relu(self.bn2(self.conv2(maps)))
        scores: Tensor = self.fc(maps.mean(dim=(2, 3)))
        return scores


class MLP(nn.Sequential):
    """Three linear layers with GELU."""

    def __init__(self, dim: int = 64) -> None:
        super().__init__(
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.GELU(), nn.Linear(dim, CLASSES)
        )


class RandomImages(Dataset):  # type: ignore[type-arg]
    """Images of noise with class labels."""

    def __init__(self, count: int, size: int) -> None:
        self.count = count
        self.size = size

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.randn(3, self.size, self.size), index % CLASSES


def image_batch(device: torch.device, batch: int = 16, size: int = 32) -> tuple[Tensor, Tensor]:
    """Images and labels that lie on the device."""
    return torch.randn(batch, 3, size, size, device=device), torch.randint(0, CLASSES, (batch,), device=device)


def training_step(
    device: torch.device,
    model: nn.Module | None = None,
    batch: tuple[Tensor, Tensor] | None = None,
    optimizer: type[torch.optim.Optimizer] = torch.optim.SGD,
    **optimizer_options: Any,
) -> Callable[[], Tensor]:
    """A step of forward, backward and update of ``model`` on one batch; has run twice already."""
    torch.manual_seed(0)
    model = (model or SmallNet()).to(device).train()
    images, labels = batch or image_batch(device)
    updater = optimizer(model.parameters(), **{"lr": 0.01, **optimizer_options})

    def step() -> Tensor:
        updater.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        updater.step()
        return loss.detach()

    for _ in range(2):
        step()
    return step


def loader_step(device: torch.device, workers: int, batches: int) -> Callable[[], Tensor]:
    """A step that takes its batch from a DataLoader."""
    torch.manual_seed(0)
    model = SmallNet().to(device).train()
    updater = torch.optim.SGD(model.parameters(), lr=0.01)
    pinned = device.type == "cuda"
    loader: Any = DataLoader(RandomImages(16 * batches, 32), batch_size=16, num_workers=workers, pin_memory=pinned)
    batches_of = iter(loader)

    def step() -> Tensor:
        images, labels = next(batches_of)
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        loss = functional.cross_entropy(model(images), labels)
        updater.zero_grad(set_to_none=True)
        loss.backward()
        updater.step()
        return loss.detach()

    return step
