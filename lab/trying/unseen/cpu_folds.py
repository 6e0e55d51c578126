"""Cross-validation: each fold trains a new model, and each step leaves records behind that refer to each other."""

import gc
import random

import torch
from torch import nn
from torch.nn import functional as F

FOLDS, STEPS = 5, 4000


class Record:
    """Of one sample; knows the one before."""

    def __init__(self, before: "Record | None", loss: float) -> None:
        self.before, self.loss, self.notes = before, loss, {"fold": [random.random() for _ in range(4)]}
        self.own = self


def fold(number: int, features: torch.Tensor, classes: torch.Tensor) -> float:
    rest = torch.arange(len(features)) % FOLDS != number
    model = nn.Sequential(
        nn.Linear(40, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 6)
    )
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02, foreach=False)
    kept: list[object] = []
    inputs, targets = features[rest], classes[rest]
    for _ in range(STEPS):
        chosen = torch.randint(len(inputs), (48,))
        losses = F.cross_entropy(model(inputs[chosen]), targets[chosen], reduction="none")
        optimizer.zero_grad(set_to_none=False)
        losses.mean().backward()
        optimizer.step()
        last = None
        for loss in losses.tolist():
            last = Record(last, loss)
        kept = [*kept[-2000:], last]
        gc.collect(1)
    with torch.no_grad():
        return (model(features[~rest]).argmax(1) == classes[~rest]).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(4)
    torch.set_num_threads(1)
    data = torch.randn(6000, 40)
    labels = (data[:, :6] + 0.3 * data[:, 6:12]).argmax(1)
    while True:
        print([fold(number, data, labels) for number in range(FOLDS)])
