"""A forecast of fields by layers in the space of their waves, with the anomaly mode left on; Adam's settings are those
of a tutorial, and the learning rate falls at each step."""

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, WAVES, SIZE, BATCH, FIELDS = (96, 24, 128, 16, 6) if DEVICE == "cuda" else (8, 4, 16, 2, 6)


class Waves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH, WAVES, WAVES, 2) / WIDTH)
        self.beside, self.norm = nn.Conv2d(WIDTH, WIDTH, 1), nn.InstanceNorm2d(WIDTH, affine=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.fft.rfft2(x.float())
        low = found[:, :, :WAVES, :WAVES]
        real = torch.einsum("bixy,ioxy->boxy", low.real, self.weight[..., 0])
        real = real - torch.einsum("bixy,ioxy->boxy", low.imag, self.weight[..., 1])
        imaginary = torch.einsum("bixy,ioxy->boxy", low.real, self.weight[..., 1])
        imaginary = imaginary + torch.einsum("bixy,ioxy->boxy", low.imag, self.weight[..., 0])
        made = torch.zeros_like(found)
        made[:, :, :WAVES, :WAVES] = torch.complex(real, imaginary)
        return F.gelu(self.norm(torch.fft.irfft2(made, s=x.shape[-2:]) + self.beside(x)))


class Forecast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lift, self.layers = nn.Conv2d(FIELDS, WIDTH, 1), nn.Sequential(*(Waves() for _ in range(4)))
        self.fall = nn.Sequential(nn.Conv2d(WIDTH, 128, 1), nn.GELU(), nn.Conv2d(128, FIELDS, 1))

    def forward(self, fields: torch.Tensor) -> torch.Tensor:
        return fields + self.fall(self.layers(self.lift(fields)))


def main() -> None:
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    model = Forecast().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5, foreach=False)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)
    days = torch.randn(8 * BATCH, FIELDS, SIZE, SIZE, device=DEVICE)
    while True:
        for start in range(0, 8 * BATCH - BATCH, BATCH):
            optimizer.zero_grad()
            today, tomorrow = days[start : start + BATCH], days[start + 1 : start + BATCH + 1]
            found = model(today)
            loss = (found - tomorrow).flatten(1).norm(dim=1).div(tomorrow.flatten(1).norm(dim=1)).mean()
            loss.backward()
            optimizer.step()
            falling.step()


if __name__ == "__main__":
    main()
