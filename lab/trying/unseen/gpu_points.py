"""Clouds of points are sorted into kinds: the Dataset samples and turns them with NumPy in the main process, and each
step looks at the share of right ones."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KINDS, POINTS, NEAR, BATCH = (40, 1024, 16, 32) if DEVICE == "cuda" else (10, 64, 4, 4)


class Clouds(Dataset):
    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        draw = np.random.default_rng(index)
        kind = index % KINDS
        surface = draw.normal(size=(4 * POINTS, 3))
        surface /= np.linalg.norm(surface, axis=1, keepdims=True)
        surface *= 1 + 0.3 * np.sin((1 + kind) * surface[:, :1])
        chosen = surface[draw.choice(len(surface), POINTS, replace=False)]
        angle = draw.uniform(0, 2 * np.pi)
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        return (chosen @ turn + 0.01 * draw.normal(size=(POINTS, 3))).astype(np.float32), kind


class Edges(nn.Module):
    def __init__(self, width: int, more: int) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Conv2d(2 * width, more, 1, bias=False), nn.BatchNorm2d(more), nn.LeakyReLU(0.2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near = torch.cdist(x.transpose(1, 2), x.transpose(1, 2)).topk(NEAR, largest=False).indices
        others = x.unsqueeze(3).expand(-1, -1, -1, NEAR).gather(2, near.unsqueeze(1).expand(-1, x.shape[1], -1, -1))
        own = x.unsqueeze(3).expand_as(others)
        return self.layer(torch.cat([own, others - own], 1)).amax(3)


class Sorter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.edges = nn.ModuleList([Edges(3, 64), Edges(64, 64), Edges(64, 128)])
        self.all = nn.Sequential(nn.Conv1d(256, 512, 1, bias=False), nn.BatchNorm1d(512), nn.LeakyReLU(0.2))
        self.head = nn.Sequential(nn.Linear(1024, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, KINDS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.edges:
            x = layer(x)
            kept.append(x)
        x = self.all(torch.cat(kept, 1))
        return self.head(torch.cat([x.amax(2), x.mean(2)], 1))


def main() -> None:
    torch.manual_seed(0)
    model = Sorter().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    right = 0.0
    while True:
        for points, kinds in DataLoader(Clouds(), BATCH, shuffle=True, drop_last=True):
            scores = model(points.to(DEVICE).transpose(1, 2).contiguous())
            loss = F.cross_entropy(scores, kinds.to(DEVICE), label_smoothing=0.2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right = 0.9 * right + 0.1 * (scores.argmax(1).cpu() == kinds).float().mean().item()


if __name__ == "__main__":
    main()
