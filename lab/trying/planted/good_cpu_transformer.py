"""Nothing planted: a transformer with fused attention."""

import torch
from parts import fixed_batches, train, transformer

model = transformer(512, 2, 8)
train(model, torch.optim.SGD(model.parameters(), lr=0.01, fused=True), fixed_batches(8, 128, 512))
