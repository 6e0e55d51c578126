"""Planted: Adam updates its many small parameters one after the other."""

import torch
from parts import fixed_batches, mlp, train

model = mlp(128, 64)
train(model, torch.optim.Adam(model.parameters(), foreach=False), fixed_batches(8, 128))
