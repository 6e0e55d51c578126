"""Fault: one worker process tokenizes texts slower than the GPU takes them. Fixed: eight of them keep up.

python -m lab.planted.snippets.dataloader_bound --logdir runs/planted [--fixed]
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from ..common import DEVICE, STEPS, main, run_steps, size

WORDS, TOKENS = size(800, 300), 256


class Texts(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Texts of random words, tokenized when they are asked for."""

    def __init__(self, count: int, vocabulary: int) -> None:
        self.ids = {f"word{number}": number for number in range(vocabulary)}
        words = list(self.ids)
        self.texts = [", ".join(random.choices(words, k=WORDS)) for _ in range(64)]
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        words = [word.strip(".,;:!?") for word in self.texts[index % 64].lower().split()]
        ids = torch.tensor([self.ids.get(word, 0) for word in words])
        return ids[:TOKENS], ids[1 : TOKENS + 1]


def train(logdir: Path, fixed: bool) -> None:
    """A small language model."""
    vocabulary, width, batch = 2048, size(1024, 64), size(32, 4)
    blocks = [nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(4)]
    model = nn.Sequential(nn.Embedding(vocabulary, width), *blocks, nn.Linear(width, vocabulary)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loader = DataLoader(
        Texts((STEPS + 20) * batch, vocabulary),
        batch_size=batch,
        num_workers=8 if fixed else 1,
        pin_memory=DEVICE == "cuda",
        persistent_workers=True,
    )
    batches = itertools.chain.from_iterable(itertools.repeat(loader))

    def step() -> None:
        inputs, targets = (part.to(DEVICE, non_blocking=True) for part in next(batches))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()

    run_steps(logdir, step, model=model, dataloader=loader, optimizer=optimizer)


if __name__ == "__main__":
    main(train)
