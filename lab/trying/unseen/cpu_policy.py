"""A policy that learns to hold a pole: many poles at once, a step of the world in Python for each, and AdamW over many
small layers, parameter by parameter."""

import math
import random

import torch
from torch import nn

POLES, WIDTH, DEPTH = 96, 64, 8


class Pole:
    def __init__(self) -> None:
        self.set_up()

    def set_up(self) -> None:
        self.angle, self.speed = random.uniform(-0.2, 0.2), 0.0

    def step(self, push: int) -> float:
        self.speed += 0.02 * (9.8 * math.sin(self.angle) + (3.0 if push else -3.0) * math.cos(self.angle))
        self.angle += 0.02 * self.speed
        fell = abs(self.angle) > 0.6
        if fell:
            self.set_up()
        return -1.0 if fell else 0.1

    def seen(self) -> list[float]:
        return [self.angle, self.speed, math.sin(self.angle), math.cos(self.angle)]


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, WIDTH)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(DEPTH))
        self.push, self.value = nn.Linear(WIDTH, 2), nn.Linear(WIDTH, 1)

    def forward(self, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.first(seen).tanh()
        for layer in self.layers:
            x = x + layer(x)
        return self.push(x), self.value(x)[:, 0]


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    poles = [Pole() for _ in range(POLES)]
    policy = Policy()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-4, foreach=False)
    while True:
        scores, value = policy(torch.tensor([pole.seen() for pole in poles]))
        chosen = torch.distributions.Categorical(logits=scores)
        push = chosen.sample()
        reward = torch.tensor([pole.step(one) for pole, one in zip(poles, push.tolist(), strict=True)])
        better = reward - value.detach()
        loss = -(chosen.log_prob(push) * better).mean() + (reward - value).square().mean()
        optimizer.zero_grad(set_to_none=False)
        (loss - 0.01 * chosen.entropy().mean()).backward()
        optimizer.step()
