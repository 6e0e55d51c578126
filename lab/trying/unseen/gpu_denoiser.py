"""A convolutional denoiser with deterministic algorithms, as its author once looked for an error, and an average of its
weights that a loop in Python keeps."""

import copy
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, BATCH, SIZE = (96, 24, 96) if DEVICE == "cuda" else (16, 2, 32)


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.first = nn.GroupNorm(8, width), nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(F.silu(self.first(F.silu(self.norm(x)))))


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.fine, self.coarse = (
            nn.ModuleList(Residual(WIDTH) for _ in range(3)),
            nn.ModuleList(Residual(WIDTH) for _ in range(4)),
        )
        self.last = nn.Conv2d(WIDTH, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.fine:
            x = block(x)
        small = F.avg_pool2d(x, 2)
        for block in self.coarse:
            small = block(small)
        return self.last(x + F.interpolate(small, scale_factor=2.0))


def main() -> None:
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    model = Denoiser().to(DEVICE)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    clean = torch.rand(BATCH, 3, SIZE, SIZE, device=DEVICE)
    while True:
        noise = torch.randn_like(clean)
        loss = F.mse_loss(model(clean + 0.3 * noise), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for one, other in zip(average.parameters(), model.parameters(), strict=True):
                one.lerp_(other, 0.001)


if __name__ == "__main__":
    main()
