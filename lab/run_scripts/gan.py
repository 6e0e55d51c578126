"""A generative adversarial network: two models and two optimizers, the discriminator's steps more often.

python lab/run_scripts/gan.py --steps 24
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn


class Generator(nn.Module):
    """Noise in, images out."""

    def __init__(self) -> None:
        super().__init__()
        self.main = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 144), nn.Tanh())

    def forward(self, noise: Tensor) -> Tensor:
        result: Tensor = self.main(noise).view(-1, 1, 12, 12)
        return result


class Discriminator(nn.Module):
    """Images in, logits out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, 2)
        self.out = nn.Linear(200, 1)

    def forward(self, image: Tensor) -> Tensor:
        result: Tensor = self.out(torch.flatten(nn.functional.leaky_relu(self.conv(image)), 1))
        return result


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=24, help="of the generator")
    parser.add_argument("--critic", type=int, default=2, help="steps of the discriminator for each of them")
    parser.add_argument("--save")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    netG, netD = Generator().to(device), Discriminator().to(device)
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4)
    optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4)
    criterion = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(16, 1, device=device), torch.zeros(16, 1, device=device)
    loss = torch.zeros(())
    for _ in range(args.steps):
        for _ in range(args.critic):
            real, fake = torch.rand(16, 1, 12, 12, device=device), netG(torch.randn(16, 16, device=device))
            optimizerD.zero_grad()
            (criterion(netD(real), ones) + criterion(netD(fake.detach()), zeros)).backward()
            optimizerD.step()
        optimizerG.zero_grad()
        loss = criterion(netD(netG(torch.randn(16, 16, device=device))), ones)
        loss.backward()
        optimizerG.step()
    print(f"loss {loss.item():.6f}", flush=True)
    if args.save:
        torch.save({**netG.state_dict(), **netD.state_dict()}, args.save)


if __name__ == "__main__":
    main()
