"""A convolutional network of depthwise layers over pictures that are drawn, turned and blurred in the Dataset; an
average of its weights is kept, and collecting garbage in each step was left in after a search for a leak."""

import copy
import gc

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SIZE, BATCH = 48, 16


class Drawn(Dataset):
    def __len__(self) -> int:
        return 8000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        draw = torch.Generator().manual_seed(index)
        places = torch.linspace(-1, 1, SIZE)
        picture = torch.zeros(3, SIZE, SIZE)
        for x, y, size in (torch.rand(9, 3, generator=draw) * 2 - 1).tolist():
            picture += ((places[None] - x) ** 2 + (places[:, None] - y) ** 2 < 0.1 + 0.1 * size).float()
        for _ in range(3):
            picture = F.avg_pool2d(picture[None], 3, 1, 1)[0]
        return torch.rot90(picture, index % 4, (1, 2)), index % 4


def layer(before: int, after: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, before, 3, stride, 1, groups=before, bias=False), nn.BatchNorm2d(before), nn.ReLU6(),
        nn.Conv2d(before, after, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU6(),
    )  # fmt: skip


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 24, 3, 2, 1), layer(24, 48), layer(48, 96, 2), layer(96, 96), layer(96, 192, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 4),
    )  # fmt: skip
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=False)
    while True:
        for pictures, turns in DataLoader(Drawn(), BATCH, shuffle=True, num_workers=0):
            loss = F.cross_entropy(model(pictures), turns)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for one, other in zip(average.parameters(), model.parameters(), strict=True):
                    one.lerp_(other, 0.01)
            gc.collect(0)
