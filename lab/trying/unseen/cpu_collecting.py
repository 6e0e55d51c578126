"""Held out: two small networks that learn from each other, and garbage that is collected in each step."""

import gc

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
first, second = (nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 16)) for _ in range(2))
of_first = torch.optim.Adam(first.parameters(), foreach=False)
of_second = torch.optim.Adam(second.parameters(), foreach=False)
while True:
    x = torch.randn(64, 32)
    of_first.zero_grad()
    F.mse_loss(first(x), second(x).detach() + 0.1).backward()
    of_first.step()
    of_second.zero_grad()
    F.mse_loss(second(x), first(x).detach()).backward()
    of_second.step()
    gc.collect()
