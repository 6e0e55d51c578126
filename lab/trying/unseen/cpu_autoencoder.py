"""A convolutional autoencoder on small images with deterministic algorithms, whose activations are computed twice."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

BATCH = 32


def block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.GELU(), nn.Conv2d(after, after, 3, padding=1), nn.GELU()
    )


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([block(3, 16), block(16, 32)])
        self.up = nn.ModuleList([block(32, 16), block(16, 8)])
        self.head = nn.Conv2d(8, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for one in self.down:
            x = F.avg_pool2d(checkpoint(one, x, use_reentrant=False), 2)
        for one in self.up:
            x = checkpoint(one, F.interpolate(x, scale_factor=2.0), use_reentrant=False)
        return self.head(x)


def main() -> None:
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    images = torch.rand(8 * BATCH, 3, 32, 32)
    while True:
        for first in range(0, len(images), BATCH):
            batch = images[first : first + BATCH]
            optimizer.zero_grad()
            (model(batch) - batch).square().mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
