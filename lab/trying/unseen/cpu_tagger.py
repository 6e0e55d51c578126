"""An LSTM that tags words, padded in Python by the main process; Adagrad goes parameter by parameter."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

WORDS, TAGS, LENGTH, BATCH = 5000, 12, 40, 16


class Sentences(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        draw = random.Random(index)
        words = [draw.randrange(WORDS) for _ in range(draw.randrange(5, LENGTH))]
        padded = words + [0] * (LENGTH - len(words))
        return torch.tensor(padded), torch.tensor([one % TAGS for one in padded])


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 32)
        self.lstm = nn.LSTM(32, 48, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(96, TAGS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.words(words))[0])


def main() -> None:
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05, foreach=False)
    data = DataLoader(Sentences(), BATCH, shuffle=True)
    while True:
        for words, tags in data:
            optimizer.zero_grad(set_to_none=False)
            F.cross_entropy(model(words).flatten(0, 1), tags.flatten()).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
