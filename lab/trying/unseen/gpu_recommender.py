"""A recommender with many embedding tables and a small MLP that reads its loss in each step; it parses clicks first."""

import random

import torch
from torch import nn

TABLES, ROWS, DIM, BATCH, CLICKS = 26, 20000, 32, 2048, 300_000


class Recommender(nn.Module):
    pair: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, DIM) for _ in range(TABLES))
        self.dense = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, DIM), nn.ReLU())
        pairs = (TABLES + 1) * TABLES // 2
        self.top = nn.Sequential(
            nn.Linear(pairs + DIM, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1)
        )
        self.register_buffer("pair", torch.triu_indices(TABLES + 1, TABLES + 1, offset=1))

    def forward(self, numbers: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        dense = self.dense(numbers)
        all_of = torch.stack([dense, *(table(ids[:, one]) for one, table in enumerate(self.tables))], 1)
        products = all_of @ all_of.transpose(1, 2)
        return self.top(torch.cat([dense, products[:, self.pair[0], self.pair[1]]], 1)).squeeze(1)


def main() -> None:
    random.seed(0)
    torch.manual_seed(0)
    lines = [",".join(str(random.randrange(ROWS)) for _ in range(TABLES)) for _ in range(CLICKS // 4)]
    ids = torch.tensor([[int(word) for word in line.split(",")] for line in lines]).repeat(4, 1)
    numbers, clicked = torch.rand(CLICKS, 13), (torch.rand(CLICKS) < 0.2).float()
    model = Recommender().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)
    seen = 0.0
    while True:
        for first in range(0, CLICKS - BATCH, BATCH):
            chosen = slice(first, first + BATCH)
            optimizer.zero_grad(set_to_none=False)
            scores = model(numbers[chosen].cuda(), ids[chosen].cuda())
            loss = nn.functional.binary_cross_entropy_with_logits(scores, clicked[chosen].cuda())
            loss.backward()
            optimizer.step()
            seen = 0.99 * seen + 0.01 * loss.item()


if __name__ == "__main__":
    main()
