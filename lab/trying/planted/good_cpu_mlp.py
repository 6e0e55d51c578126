"""Nothing planted: large products, which take nearly all of the step."""

import torch
from parts import fixed_batches, mlp, train

model = mlp(1024, 4)
train(model, torch.optim.SGD(model.parameters(), lr=0.01, fused=True), fixed_batches(512, 1024))
