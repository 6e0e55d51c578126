"""Planted: AdamW updates 400 parameters one after the other."""

import torch
from parts import fast_gpu, fixed_batches, mlp, train

fast_gpu()
model = mlp(256, 200).cuda()
batches = fixed_batches(512, 256, device="cuda")
train(model, torch.optim.AdamW(model.parameters(), foreach=False), batches, device="cuda")
