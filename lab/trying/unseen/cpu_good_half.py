"""A text classifier whose author knows what pays: half precision, one fused update, tensors that are made once."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
torch.set_num_threads(1)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(8000, 256, mode="mean")
        self.layers = nn.Sequential(
            nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 20)
        )

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.layers(self.words(words))


model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
batches = [(torch.randint(8000, (256, 30)), torch.randint(20, (256,))) for _ in range(40)]
while True:
    for words, topics in batches:
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(words), topics)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
