"""A small diffusion U-Net on images that are read slowly, with an average of its weights that Python loops over."""

import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

STEPS = 200


class Pictures(Dataset):
    """Each takes the disk a millisecond and the CPU another one."""

    def __len__(self) -> int:
        return 5000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.001)
        generator = torch.Generator().manual_seed(index)
        picture = torch.rand(3, 48, 48, generator=generator)
        return F.avg_pool2d(picture, 3) * 2 - 1


class Block(nn.Module):
    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(4, before), nn.Conv2d(before, after, 3, padding=1)
        self.time = nn.Linear(32, after)

    def forward(self, x: torch.Tensor, when: torch.Tensor) -> torch.Tensor:
        return self.conv(F.silu(self.norm(x))) + self.time(when)[:, :, None, None]


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.when = nn.Embedding(STEPS, 32)
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.down = nn.ModuleList([Block(16, 32), Block(32, 32)])
        self.up = nn.ModuleList([Block(64, 32), Block(48, 16)])
        self.last = nn.Conv2d(16, 3, 1)

    def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        when = self.when(step)
        kept = [x := self.first(x)]
        for block in self.down:
            kept.append(x := F.avg_pool2d(block(x, when), 2))
        kept.pop()
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1), when)
        return self.last(x)


def main() -> None:
    torch.manual_seed(2)
    torch.set_num_threads(1)
    model, average = UNet(), UNet()
    average.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    noise_of = torch.linspace(0.999, 0.01, STEPS)
    while True:
        for pictures in DataLoader(Pictures(), batch_size=12, shuffle=True, drop_last=True):
            step = torch.randint(STEPS, (len(pictures),))
            keep = noise_of[step][:, None, None, None]
            noise = torch.randn_like(pictures)
            guess = model(keep.sqrt() * pictures + (1 - keep).sqrt() * noise, step)
            optimizer.zero_grad()
            F.mse_loss(guess, noise).backward()
            optimizer.step()
            with torch.no_grad():
                for one, other in zip(average.parameters(), model.parameters(), strict=True):
                    one.mul_(0.999).add_(other, alpha=0.001)


if __name__ == "__main__":
    main()
