"""A small residual network on images that are decoded and augmented by numpy in the training process."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self) -> int:
        return 20_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        noise = np.random.default_rng(index).standard_normal((3, 128, 128), dtype=np.float32)
        image = np.fft.ifft2(np.fft.fft2(noise) * 0.5).real.astype(np.float32)
        if index % 2:
            image = image[:, :, ::-1].copy()
        return torch.from_numpy(image), index % 100


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 128, 7, stride=4, padding=3), *(Residual(128) for _ in range(4)),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100),
    ).cuda()  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(Images(), batch_size=64, shuffle=True)
    for _ in range(1000):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
