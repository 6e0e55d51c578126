"""Planted: hundreds of kernels of a few microseconds, which the CPU launches more slowly than the GPU runs them."""

import torch
from parts import fast_gpu, fixed_batches, mlp, train

fast_gpu()
model = mlp(128, 150).cuda()
batches = fixed_batches(32, 128, device="cuda")
train(model, torch.optim.SGD(model.parameters(), lr=0.01, fused=True), batches, device="cuda")
