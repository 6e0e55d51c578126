"""For the grid: the same on a CPU."""

import torch
from parts import Images, convnet, epochs, train
from torch.utils.data import DataLoader

torch.set_num_threads(1)
loader = DataLoader(Images(work_s=0.001), batch_size=16, shuffle=True)
model = convnet(16, 2)
train(model, torch.optim.Adam(model.parameters(), foreach=False), epochs(loader))
