"""A recommender: tables of embeddings for categories, an MLP for numbers, clicks to foretell.

python lab/run_scripts/recommender.py --steps 24
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class Recommender(nn.Module):
    """Products of all pairs of embeddings, and the numbers."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + (tables + 1) ** 2, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        found = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        vectors = torch.stack([dense, *found], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        result: Tensor = self.top(torch.cat([dense, products], 1)).squeeze(1)
        return result


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=20000, help="of a table")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    samples = 16 * args.batch_size
    made = torch.Generator().manual_seed(1)
    data = TensorDataset(
        torch.randn(samples, 13, generator=made),
        torch.randint(args.rows, (samples, 26), generator=made),
        torch.randint(2, (samples,), generator=made).float(),
    )
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True)
    model = Recommender(26, args.rows, 64).to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    criterion = nn.BCEWithLogitsLoss()
    step = 0
    while step < args.steps:
        for numbers, categories, clicks in loader:
            loss = criterion(model(numbers.to(device), categories.to(device)), clicks.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"step {step} loss {loss.item():.6f}", flush=True)
            step += 1
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
