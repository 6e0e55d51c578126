"""A small Transformer that classifies texts of different lengths; gradients of three batches are added up, attention is
written out, and anomalies are looked for."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

WORDS, LONGEST, WIDTH, HEADS, BATCH, BATCHES = 4000, 64, 96, 4, 16, 3


class Texts(Dataset):
    def __len__(self) -> int:
        return 6000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        draw = torch.Generator().manual_seed(index)
        length = int(torch.randint(12, LONGEST, (1,), generator=draw))
        words = torch.zeros(LONGEST, dtype=torch.long)
        words[:length] = torch.randint(1, WORDS, (length,), generator=draw)
        return words, index % 5


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.parts, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        rows, places, _ = x.shape
        q, k, v = self.parts(self.first(x)).view(rows, places, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        found = scores.masked_fill(hidden[:, None, None], -1e9).softmax(-1) @ v
        x = x + self.out(found.transpose(1, 2).reshape(x.shape))
        return x + self.wide(self.second(x))


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.zeros(LONGEST, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x, hidden = self.words(words) + self.places, words == 0
        for block in self.blocks:
            x = block(x, hidden)
        return self.head(x.mean(1))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)
    while True:
        for number, (words, labels) in enumerate(DataLoader(Texts(), BATCH, shuffle=True)):
            (F.cross_entropy(model(words), labels) / BATCHES).backward()
            if number % BATCHES == BATCHES - 1:
                optimizer.step()
                optimizer.zero_grad()
