"""Planted: anomaly mode was left on after a search for a NaN."""

import torch
from parts import fixed_batches, mlp, train

torch.autograd.set_detect_anomaly(True)
model = mlp(64, 24)
train(model, torch.optim.SGD(model.parameters(), lr=0.01), fixed_batches(32, 64))
