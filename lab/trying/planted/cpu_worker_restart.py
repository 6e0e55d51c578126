"""Planted: epochs of few batches, each of which starts its workers again."""

import torch
from parts import Images, convnet, epochs, train
from torch.utils.data import DataLoader

loader = DataLoader(Images(64), batch_size=16, shuffle=True, num_workers=1)
model = convnet(16, 2)
train(model, torch.optim.SGD(model.parameters(), lr=0.01), epochs(loader))
