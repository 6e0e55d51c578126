"""A Transformer as good as it gets: compiled, BF16, a fused optimizer, all threads, batches in memory."""

import torch
from torch import nn
from torch.nn import functional as F

WORDS, LENGTH, WIDTH, BATCH = 2000, 64, 128, 16


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.words(words)))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Model()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    words = torch.randint(0, WORDS, (32, BATCH, LENGTH))
    while True:
        for batch in words:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(compiled(batch).flatten(0, 1), batch.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
