"""Planted: a debugging variable was left on, and each launch waits for its kernel."""

import os

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"

import torch
from parts import fast_gpu, fixed_batches, train, transformer

fast_gpu()
model = transformer(256, 12, 4).cuda()
batches = fixed_batches(16, 128, 256, device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
train(model, optimizer, batches, device="cuda", autocast=torch.bfloat16)
