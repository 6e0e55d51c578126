"""Planted: one thread for large products."""

import torch
from parts import fixed_batches, mlp, train

torch.set_num_threads(1)
model = mlp(1024, 4)
train(model, torch.optim.SGD(model.parameters(), lr=0.01), fixed_batches(256, 1024))
