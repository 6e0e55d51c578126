"""Planted: TF32 is on, mixed precision is not."""

import torch
from parts import fast_gpu, fixed_batches, train, transformer

fast_gpu()
model = transformer(1024, 8, 16).cuda()
batches = fixed_batches(32, 512, 1024, device="cuda")
train(model, torch.optim.AdamW(model.parameters(), fused=True), batches, device="cuda")
