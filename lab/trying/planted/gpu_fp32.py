"""Planted: products of FP32 matrices without TF32."""

import torch
from parts import fixed_batches, mlp, train

model = mlp(4096, 8).cuda()
train(model, torch.optim.SGD(model.parameters(), lr=0.01), fixed_batches(4096, 4096, device="cuda"), device="cuda")
