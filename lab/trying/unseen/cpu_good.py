"""A wide perceptron with few kernels: nothing to gain."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
x, y = torch.randn(128, 512), torch.randint(10, (128,))
while True:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
