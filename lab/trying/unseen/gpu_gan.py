"""A convolutional GAN on images of 64 pixels, in FP32: a generator and a discriminator that step in turn."""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, NOISE, WIDTH = 128, 128, 96


def main() -> None:
    torch.manual_seed(0)
    up = [nn.ConvTranspose2d(NOISE, 8 * WIDTH, 4), nn.BatchNorm2d(8 * WIDTH), nn.ReLU(True)]
    for before, after in ((8, 4), (4, 2), (2, 1)):
        up += [nn.ConvTranspose2d(before * WIDTH, after * WIDTH, 4, 2, 1), nn.BatchNorm2d(after * WIDTH), nn.ReLU(True)]
    generator = nn.Sequential(*up, nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1), nn.Tanh()).cuda()
    down = [nn.Conv2d(3, WIDTH, 4, 2, 1), nn.LeakyReLU(0.2, True)]
    for before, after in ((1, 2), (2, 4), (4, 8)):
        down += [
            nn.Conv2d(before * WIDTH, after * WIDTH, 4, 2, 1),
            nn.BatchNorm2d(after * WIDTH),
            nn.LeakyReLU(0.2, True),
        ]
    discriminator = nn.Sequential(*down, nn.Conv2d(8 * WIDTH, 1, 4), nn.Flatten()).cuda()
    of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    while True:
        real = torch.rand(BATCH, 3, 64, 64, device="cuda") * 2 - 1
        fake = generator(torch.randn(BATCH, NOISE, 1, 1, device="cuda"))
        of_discriminator.zero_grad()
        loss = F.softplus(-discriminator(real)).mean() + F.softplus(discriminator(fake.detach())).mean()
        loss.backward()
        of_discriminator.step()
        of_generator.zero_grad()
        F.softplus(-discriminator(fake)).mean().backward()
        of_generator.step()


if __name__ == "__main__":
    main()
