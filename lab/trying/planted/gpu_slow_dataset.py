"""Planted: samples take 1 ms each of a disk, and the process of the training loads them itself."""

import torch
from parts import Images, convnet, epochs, fast_gpu, train
from torch.utils.data import DataLoader

fast_gpu()
loader = DataLoader(Images(8192, size=64, work_s=0.001), batch_size=64, shuffle=True, pin_memory=True)
model = convnet(64, 6).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
train(model, optimizer, epochs(loader), device="cuda", autocast=torch.bfloat16)
