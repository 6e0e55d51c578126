"""A convolutional network whose author has left the anomaly mode on."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
torch.autograd.set_detect_anomaly(True)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.ReLU(),
    *(one for _ in range(6) for one in (nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(4, 3, 16, 16), torch.randint(10, (4,))
while True:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
