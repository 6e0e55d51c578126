"""Planted: long chains of elementwise operations, each of which reads and writes memory."""

import torch
from parts import Pointwise, fixed_batches, train

model = Pointwise(4096, 24)
train(model, torch.optim.SGD(model.parameters(), lr=0.001), fixed_batches(256, 64))
