"""A U-Net that segments drawn images, deterministic; its start takes long: they are drawn in Python."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

SIZE, WIDTH, IMAGES, BATCH = 128, 48, 384, 16


def drawn(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """An image with circles, and which pixels are in one."""
    generator = torch.Generator().manual_seed(number)
    mask = torch.zeros(SIZE, SIZE, dtype=torch.long)
    for x, y, radius in torch.rand(12, 3, generator=generator).tolist():
        for row in range(0, SIZE, 2):
            half = (radius * SIZE / 6) ** 2 - (row - y * SIZE) ** 2
            if half > 0:
                left, right = x * SIZE - math.sqrt(half), x * SIZE + math.sqrt(half)
                mask[row : row + 2, max(int(left), 0) : max(int(right), 0)] = 1
    return mask * 0.5 + torch.randn(3, SIZE, SIZE, generator=generator) * 0.3, mask


class Double(nn.Sequential):
    def __init__(self, before: int, after: int) -> None:
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
        )  # fmt: skip


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [WIDTH * 2**level for level in range(4)]
        self.down = nn.ModuleList(Double(before, after) for before, after in zip([3, *widths], widths, strict=False))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in widths[-2::-1])
        self.up = nn.ModuleList(Double(2 * width, width) for width in widths[-2::-1])
        self.head = nn.Conv2d(WIDTH, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for wider, block, other in zip(self.wider, self.up, kept[-2::-1], strict=True):
            x = block(torch.cat([wider(x), other], 1))
        return self.head(x)


def main() -> None:
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    images, masks = zip(*(drawn(number) for number in range(IMAGES)), strict=True)
    data = DataLoader(TensorDataset(torch.stack(images), torch.stack(masks)), BATCH, shuffle=True, drop_last=True)
    model = UNet().cuda()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9, foreach=False)
    while True:
        for image, mask in data:
            image, mask = image.cuda(), mask.cuda()
            optimizer.zero_grad()
            scores = model(image)
            overlap = (scores.softmax(1)[:, 1] * mask).sum() / mask.sum().clamp(min=1)
            (F.cross_entropy(scores, mask) + 1 - overlap).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
