"""Planted: each step gives the allocator's memory back to the driver."""

import torch
from parts import convnet, fast_gpu, fixed_batches, train

fast_gpu()
model = convnet(64, 8).cuda().to(memory_format=torch.channels_last)
batches = fixed_batches(128, 3, 64, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
train(model, optimizer, batches, device="cuda", autocast=torch.bfloat16, after_step=torch.cuda.empty_cache)
