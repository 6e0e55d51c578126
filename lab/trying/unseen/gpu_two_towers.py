"""Two towers that learn from pairs, with large FP32 products; anomaly mode is left on, and SGD goes parameter by
parameter."""

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, BATCH = (2048, 2048) if DEVICE == "cuda" else (64, 32)


def tower(inputs: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(inputs, WIDTH)]
    for _ in range(5):
        layers += [nn.LayerNorm(WIDTH), nn.GELU(), nn.Dropout(0.1), nn.Linear(WIDTH, WIDTH)]
    return nn.Sequential(*layers)


torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
pictures, texts = tower(1024).to(DEVICE), tower(768).to(DEVICE)
temperature = nn.Parameter(torch.tensor(2.0, device=DEVICE))
parameters = [*pictures.parameters(), *texts.parameters(), temperature]
optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4, foreach=False)
labels = torch.arange(BATCH, device=DEVICE)
while True:
    shown, told = torch.randn(BATCH, 1024, device=DEVICE), torch.randn(BATCH, 768, device=DEVICE)
    one, other = F.normalize(pictures(shown), dim=1), F.normalize(texts(told), dim=1)
    alike = temperature.exp() * one @ other.T
    loss = (F.cross_entropy(alike, labels) + F.cross_entropy(alike.T, labels)) / 2
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
