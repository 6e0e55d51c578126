"""An LSTM that forecasts a load curve: windows are cut in Python in the main process, two groups of parameters are
updated one by one, and gradients are zeroed in place."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DAYS, WINDOW, AHEAD, BATCH = 700, 96, 12, 24


class Windows(Dataset):
    def __init__(self) -> None:
        hours = range(DAYS * 24)
        self.load = [math.sin(hour / 24 * 6.28) + 0.3 * math.sin(hour / 168 * 6.28) for hour in hours]

    def __len__(self) -> int:
        return len(self.load) - WINDOW - AHEAD

    def __getitem__(self, start: int) -> tuple[torch.Tensor, torch.Tensor]:
        past = self.load[start : start + WINDOW]
        mean = sum(past) / WINDOW
        features = [[value - mean, math.sin(place / 24 * 6.28), math.cos(place / 24 * 6.28)]
                    for place, value in enumerate(past, start)]  # fmt: skip
        future = [value - mean for value in self.load[start + WINDOW : start + WINDOW + AHEAD]]
        return torch.tensor(features), torch.tensor(future)


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 64, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, AHEAD))

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(past)
        return self.head(states[:, -1])


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Forecaster()
    groups = [{"params": model.lstm.parameters(), "lr": 1e-3}, {"params": model.head.parameters(), "lr": 3e-3}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, foreach=False)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=500, gamma=0.5)
    for _ in range(1000):
        for past, future in DataLoader(Windows(), BATCH, shuffle=True):
            optimizer.zero_grad(set_to_none=False)
            nn.functional.huber_loss(model(past), future).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
            optimizer.step()
            schedule.step()
