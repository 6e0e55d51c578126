"""Planted: samples take 2 ms each of a disk, and the process of the training loads them itself."""

import torch
from parts import Images, convnet, epochs, train
from torch.utils.data import DataLoader

loader = DataLoader(Images(work_s=0.002), batch_size=16, shuffle=True)
model = convnet(16, 2)
train(model, torch.optim.SGD(model.parameters(), lr=0.01), epochs(loader))
