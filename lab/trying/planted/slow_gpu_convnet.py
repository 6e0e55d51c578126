"""For the grid: convolutions with several faults, of which some matter only once others are repaired."""

import torch
from parts import convnet, fixed_batches, train

torch.backends.cudnn.allow_tf32 = False
model = convnet(128, 10).cuda()
batches = fixed_batches(128, 3, 64, 64, device="cuda")
train(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False), batches, device="cuda")
