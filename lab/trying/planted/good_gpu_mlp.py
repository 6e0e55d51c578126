"""Nothing planted: large products in BF16."""

import torch
from parts import fast_gpu, fixed_batches, mlp, train

fast_gpu()
model = mlp(8192, 4).cuda()
batches = fixed_batches(16384, 8192, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
train(model, optimizer, batches, device="cuda", autocast=torch.bfloat16)
