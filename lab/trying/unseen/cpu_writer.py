"""A small Transformer learns to write; its attention is spelled out, anomalies are looked for, gradients clipped."""

import math

import torch
from torch import nn
from torch.nn import functional as F

WORDS, WIDTH, HEADS, LENGTH, BATCH = 512, 192, 6, 96, 8


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH / HEADS)
        ahead = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        found = scores.masked_fill(ahead, -math.inf).softmax(-1) @ value
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


def main() -> None:
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *(Layer() for _ in range(4)), nn.Linear(WIDTH, WORDS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    while True:
        words = torch.randint(WORDS, (BATCH, LENGTH + 1))
        loss = F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


if __name__ == "__main__":
    main()
