"""A U-Net that marks discs in images, with Dice loss and a loader that makes them.

python lab/run_scripts/segmentation.py --steps 24
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Discs(Dataset[tuple[Tensor, Tensor]]):
    """Noise with a brighter disc, and where it is."""

    def __init__(self, length: int, side: int) -> None:
        self.length, self.side = length, side

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(index)
        x, y = (torch.rand(2, generator=generator) * self.side).tolist()
        axis = torch.arange(self.side)
        mask = ((axis[:, None] - y) ** 2 + (axis[None] - x) ** 2 < (self.side / 5) ** 2).float()[None]
        return torch.randn(3, self.side, self.side, generator=generator) + mask, mask


def pair(inside: int, outside: int) -> nn.Sequential:
    """Two convolutions of one level."""
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
        nn.Conv2d(outside, outside, 3, padding=1),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """Levels down, and up again."""

    def __init__(self, width: int, levels: int) -> None:
        super().__init__()
        widths = [width << i for i in range(levels)]
        self.down = nn.ModuleList(pair(i, o) for i, o in zip([3, *widths], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * o, o, 2, 2) for o in widths[-2::-1])
        self.join = nn.ModuleList(pair(2 * o, o) for o in widths[-2::-1])
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for i, level in enumerate(self.down):
            x = level(functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, join, side in zip(self.up, self.join, kept[-2::-1], strict=True):
            x = join(torch.cat([up(x), side], 1))
        result: Tensor = self.out(x)
        return result


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--width", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = UNet(args.width, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(Discs(args.steps * args.batch_size, args.side), batch_size=args.batch_size)
    for step, (images, masks) in enumerate(loader):
        images, masks = images.to(device), masks.to(device)
        logits = model(images)
        found = torch.sigmoid(logits)
        dice = 1 - (2 * (found * masks).sum() + 1) / (found.sum() + masks.sum() + 1)
        loss = functional.binary_cross_entropy_with_logits(logits, masks) + dice
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
