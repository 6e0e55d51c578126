"""Planted: activations are computed again although there is memory to keep them."""

import torch
from parts import fixed_batches, mlp, train
from torch import nn
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp(512, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


model = Checkpointed()
train(model, torch.optim.SGD(model.parameters(), lr=0.01), fixed_batches(256, 512))
