"""Rows of a table with categories: gradients of four batches are added up, anomaly mode is left on, RMSprop goes
parameter by parameter."""

import torch
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)
torch.autograd.set_detect_anomaly(True)
ROWS, NUMBERS, CATEGORIES, ADDED_UP = 40_000, 20, (12, 50, 300, 7), 4


class Tabular(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 8) for size in CATEGORIES)
        width = NUMBERS + 8 * len(CATEGORIES)
        layers: list[nn.Module] = []
        for _ in range(3):
            layers += [nn.Linear(width, 160), nn.BatchNorm1d(160), nn.ReLU(), nn.Dropout(0.2)]
            width = 160
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        found = [table(categories[:, column]) for column, table in enumerate(self.tables)]
        return self.layers(torch.cat([numbers, *found], 1))[:, 0]


numbers = torch.randn(ROWS, NUMBERS)
categories = torch.stack([torch.randint(size, (ROWS,)) for size in CATEGORIES], 1)
target = (numbers[:, 0] * numbers[:, 1] > 0).float()
model = Tabular()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9, foreach=False)
number = 0
while True:
    order = torch.randperm(ROWS)
    for rows in order.split(128):
        loss = nn.functional.binary_cross_entropy_with_logits(model(numbers[rows], categories[rows]), target[rows])
        (loss / ADDED_UP).backward()
        number += 1
        if number % ADDED_UP == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
