"""Nothing planted: one product of large matrices in BF16, and its backward pass."""

import torch
from parts import fast_gpu, fixed_batches, mlp, train

fast_gpu()
model = mlp(16384, 1).cuda()
batches = fixed_batches(16384, 16384, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
train(model, optimizer, batches, device="cuda", autocast=torch.bfloat16)
