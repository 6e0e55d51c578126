"""Many small layers, updated parameter by parameter."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*(one for _ in range(24) for one in (nn.Linear(48, 48), nn.Tanh())), nn.Linear(48, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)
x, y = torch.randn(32, 48), torch.randint(5, (32,))
while True:
    optimizer.zero_grad(set_to_none=False)
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
