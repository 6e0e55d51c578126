"""A ResNet-18 that contrasts two views of pictures, which are unpacked and turned on one core; it packs them first."""

import zlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18

SIZE, PICTURES, BATCH = 112, 1500, 48


class Packed(Dataset):
    def __init__(self) -> None:
        random = np.random.default_rng(0)
        coarse = random.integers(0, 255, (PICTURES, 3, SIZE // 8, SIZE // 8), dtype=np.uint8)
        self.packed = [zlib.compress(one.repeat(8, 1).repeat(8, 2).tobytes(), 9) for one in coarse]

    def __len__(self) -> int:
        return 8 * PICTURES

    def view(self, picture: np.ndarray) -> torch.Tensor:
        top, left = np.random.randint(0, 17, 2)
        cut = picture[:, top : top + 96, left : left + 96].astype(np.float32) / 255
        if np.random.rand() < 0.5:
            cut = cut[:, :, ::-1]
        cut = (cut - cut.mean((1, 2), keepdims=True)) / (cut.std((1, 2), keepdims=True) + 1e-3)
        return torch.from_numpy(np.ascontiguousarray(cut + 0.05 * np.random.randn(*cut.shape).astype(np.float32)))

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        packed = self.packed[index % PICTURES]
        picture = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(3, SIZE, SIZE)
        return self.view(picture), self.view(picture)


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(resnet18(num_classes=256), nn.ReLU(), nn.Linear(256, 64)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    target = torch.arange(BATCH, device="cuda")
    while True:
        for one, two in DataLoader(Packed(), BATCH, shuffle=True, drop_last=True):
            first, second = (F.normalize(model(view.cuda()), dim=1) for view in (one, two))
            optimizer.zero_grad()
            F.cross_entropy(first @ second.T / 0.1, target).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
