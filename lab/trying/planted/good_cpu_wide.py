"""Nothing planted: one large product forward, two backward."""

import torch
from parts import fixed_batches, mlp, train

model = mlp(2048, 1)
train(model, torch.optim.SGD(model.parameters(), lr=0.01, fused=True), fixed_batches(512, 2048))
