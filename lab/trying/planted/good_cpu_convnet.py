"""Nothing planted: convolutions with their channels last."""

import torch
from parts import convnet, fixed_batches, train

model = convnet(64, 3).to(memory_format=torch.channels_last)
train(model, torch.optim.SGD(model.parameters(), lr=0.01, fused=True), fixed_batches(16, 3, 32, 32))
