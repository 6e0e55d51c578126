"""Planted: attention returns weights that are dropped, which no fused kernel can."""

import torch
from parts import fast_gpu, fixed_batches, train, transformer

fast_gpu()
model = transformer(512, 4, 16, attention_weights=True).cuda()
batches = fixed_batches(8, 2048, 512, device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
train(model, optimizer, batches, device="cuda", autocast=torch.bfloat16)
