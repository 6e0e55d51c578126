"""Clicks are predicted from 26 features, each with a table; the Dataset gives row by row, each step keeps its loss,
and Adam goes parameter by parameter."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

FEATURES, ROWS, WIDTH, BATCH = 26, 2000, 16, 512


class Clicks(Dataset):
    def __init__(self) -> None:
        self.kinds = torch.randint(ROWS, (40_000, FEATURES))
        self.numbers = torch.rand(40_000, 13)

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        numbers = torch.log1p(self.numbers[index] * 100)
        return self.kinds[index], numbers, (self.kinds[index, 0] % 3 == 0).float()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, WIDTH) for _ in range(FEATURES))
        self.below = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, WIDTH))
        self.above = nn.Sequential(nn.Linear(WIDTH + 351, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, kinds: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        dense = self.below(numbers)
        rows = torch.stack([dense, *(table(kinds[:, i]) for i, table in enumerate(self.tables))], 1)
        first, second = torch.triu_indices(FEATURES + 1, FEATURES + 1, 1)
        pairs = (rows @ rows.transpose(1, 2))[:, first, second]
        return self.above(torch.cat([dense, pairs], 1)).squeeze(1)


def main() -> None:
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)
    losses: list[float] = []
    while True:
        for kinds, numbers, clicked in DataLoader(Clicks(), BATCH, shuffle=True):
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(kinds, numbers), clicked)
            loss.backward()
            optimizer.step()
            losses = [*losses[-100:], loss.item()]


if __name__ == "__main__":
    main()
