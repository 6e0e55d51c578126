"""Planted: long chains of elementwise operations, each of which reads and writes memory."""

import torch
from parts import Pointwise, fast_gpu, fixed_batches, train

fast_gpu()
model = Pointwise(8192, 24).cuda()
batches = fixed_batches(4096, 64, device="cuda")
train(model, torch.optim.SGD(model.parameters(), lr=0.001, fused=True), batches, device="cuda")
