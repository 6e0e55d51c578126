"""A recurrent network that labels sounds of different lengths with CTC; features are made in the Dataset, of waves, and
Adam goes parameter by parameter."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SOUNDS, BATCH, BANDS, LETTERS = 3000, 32, 64, 29


class Sounds(Dataset):
    def __init__(self) -> None:
        frequencies = torch.linspace(0, 1, 201)[:, None]
        centers = torch.linspace(0, 1, BANDS)[None]
        self.filters = torch.relu(1 - (frequencies - centers).abs() * BANDS)
        self.window = torch.hann_window(400)

    def __len__(self) -> int:
        return SOUNDS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        draw = torch.Generator().manual_seed(index)
        length = int(torch.randint(12_000, 28_000, (1,), generator=draw))
        letters = torch.randint(1, LETTERS, (length // 1600,), generator=draw)
        time = torch.arange(length) / 16_000
        pitch = letters.repeat_interleave(length // len(letters) + 1)[:length] * 120.0
        wave = torch.sin(2 * math.pi * pitch * time) + 0.3 * torch.randn(length, generator=draw)
        power = torch.stft(wave, 400, 160, window=self.window, return_complex=True).abs().square().T
        return (power @ self.filters + 1e-6).log(), letters


def padded(rows: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, ...]:
    sounds, letters = zip(*rows, strict=True)
    lengths = torch.tensor([len(one) for one in sounds])
    counts = torch.tensor([len(one) for one in letters])
    return nn.utils.rnn.pad_sequence(list(sounds), batch_first=True), lengths, torch.cat(letters), counts


class Recognizer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(BANDS, 384, 5, stride=2, padding=2)
        self.recurrent = nn.GRU(384, 384, 3, batch_first=True, bidirectional=True, dropout=0.1)
        self.head = nn.Linear(768, LETTERS)

    def forward(self, sounds: torch.Tensor) -> torch.Tensor:
        found = F.gelu(self.first(sounds.transpose(1, 2))).transpose(1, 2)
        return self.head(self.recurrent(found)[0]).log_softmax(-1)


def main() -> None:
    torch.manual_seed(0)
    model = Recognizer().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, foreach=False)
    while True:
        for sounds, lengths, letters, counts in DataLoader(Sounds(), BATCH, shuffle=True, collate_fn=padded):
            optimizer.zero_grad()
            scores = model(sounds.cuda()).transpose(0, 1)
            loss = F.ctc_loss(scores, letters.cuda(), (lengths + 1) // 2, counts, zero_infinity=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()


if __name__ == "__main__":
    main()
