"""Planted: a step collects garbage among a million objects that live as long as the training."""

import gc

import torch
from parts import fixed_batches, mlp, train

samples = [{"id": number, "tokens": [number]} for number in range(300_000)]
model = mlp(256, 4)
train(model, torch.optim.SGD(model.parameters(), lr=0.01), fixed_batches(64, 256), after_step=gc.collect)
