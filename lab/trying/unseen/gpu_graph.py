"""A graph network over neighbours of nodes, in FP32 with sums by index, whose accuracy is read as a number in each
step; gradients are set to zero, and AdamW goes parameter by parameter."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

NODES, DEGREE, FEATURES, CLASSES, WIDTH = 60_000, 12, 256, 40, 384


class Layer(nn.Module):
    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(before, after), nn.Linear(before, after, bias=False)
        self.norm = nn.BatchNorm1d(after)

    def forward(
        self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor, degree: torch.Tensor
    ) -> torch.Tensor:
        sums = torch.zeros_like(x).index_add_(0, target, x[source])
        return F.relu(self.norm(self.own(x) + self.others(sums / degree)))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [FEATURES, WIDTH, WIDTH, WIDTH]
        self.layers = nn.ModuleList(Layer(before, after) for before, after in pairwise(widths))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor, *graph: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = F.dropout(layer(x, *graph), 0.3, self.training)
        return self.head(x)


def main() -> None:
    torch.manual_seed(0)
    source = torch.randint(0, NODES, (NODES * DEGREE,)).cuda()
    target = torch.arange(NODES).repeat_interleave(DEGREE).cuda()
    degree = torch.bincount(target, minlength=NODES).clamp(min=1)[:, None].float()
    features, classes = torch.randn(NODES, FEATURES).cuda(), torch.randint(0, CLASSES, (NODES,)).cuda()
    model = Network().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=5e-4, foreach=False)
    best = 0.0
    while True:
        optimizer.zero_grad(set_to_none=False)
        found = model(features, source, target, degree)
        loss = F.cross_entropy(found, classes, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        best = max(best, (found.argmax(1) == classes).float().mean().item())


if __name__ == "__main__":
    main()
