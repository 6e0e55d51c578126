"""Planted: convolutions under autocast on images with their channels first."""

import torch
from parts import convnet, fast_gpu, fixed_batches, train

fast_gpu()
model = convnet(256, 12).cuda()
batches = fixed_batches(128, 3, 64, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
train(model, optimizer, batches, device="cuda", autocast=torch.bfloat16)
