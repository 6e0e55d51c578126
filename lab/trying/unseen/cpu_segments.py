"""A small U-Net marks cells in images that lie in memory; Dice and cross entropy together, and each step counts what it
has marked."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

BATCH, SIZE, WIDTH = 4, 96, 24


def twice(before: int, after: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (before, after):
        layers += [nn.Conv2d(width, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class Unet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [WIDTH, 2 * WIDTH, 4 * WIDTH]
        self.down = nn.ModuleList(twice(a, b) for a, b in zip([1, *widths], widths, strict=False))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(widths))
        self.up = nn.ModuleList(twice(2 * a, a) for a in widths[:-1])
        self.last = nn.Conv2d(WIDTH, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        for layer in self.down:
            x = layer(x if not kept else F.max_pool2d(x, 2))
            kept.append(x)
        for grow, layer, beside in zip(reversed(self.ups), reversed(self.up), reversed(kept[:-1]), strict=True):
            x = layer(torch.cat([grow(x), beside], 1))
        return self.last(x)


def main() -> None:
    torch.manual_seed(0)
    model = Unet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9)
    images = torch.rand(32 * BATCH, 1, SIZE, SIZE)
    cells = (F.avg_pool2d(images, 9, 1, 4) > 0.5).squeeze(1).long()
    marked = 0
    while True:
        for rows in torch.randperm(len(images)).split(BATCH):
            found = model(images[rows])
            share = found.softmax(1)[:, 1]
            both = (share * cells[rows]).sum((1, 2))
            dice = 1 - (2 * both + 1) / (share.sum((1, 2)) + cells[rows].sum((1, 2)) + 1)
            loss = F.cross_entropy(found, cells[rows]) + dice.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            marked += int((share > 0.5).sum())


if __name__ == "__main__":
    main()
