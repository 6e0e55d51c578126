"""Nothing planted: a compiled transformer in BF16 with a fused optimizer."""

import torch
from parts import fast_gpu, fixed_batches, train, transformer

fast_gpu()
model = transformer(1024, 8, 16).cuda()
model.compile()
batches = fixed_batches(32, 512, 1024, device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
train(model, optimizer, batches, device="cuda", autocast=torch.bfloat16)
