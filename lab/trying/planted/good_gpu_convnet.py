"""Nothing planted: compiled convolutions in BF16 with their channels last."""

import torch
from parts import convnet, fast_gpu, fixed_batches, train

fast_gpu()
model = convnet(256, 12).cuda().to(memory_format=torch.channels_last)
model.compile()
batches = fixed_batches(256, 3, 64, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
train(model, optimizer, batches, device="cuda", autocast=torch.bfloat16)
