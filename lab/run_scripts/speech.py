"""Letters from sound: convolutions, LSTM layers in both directions, CTC loss.

python lab/run_scripts/speech.py --steps 24
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn


class Recognizer(nn.Module):
    """Spectrograms in, log probabilities of letters out."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(80, width, 5, 2, 2), nn.ReLU(), nn.Conv1d(width, width, 5, 2, 2), nn.ReLU())
        self.lstm = nn.LSTM(width, width // 2, layers, batch_first=True, bidirectional=True)
        self.out = nn.Linear(width, 29)

    def forward(self, sound: Tensor) -> Tensor:
        found, _ = self.lstm(self.conv(sound).transpose(1, 2))
        result: Tensor = self.out(found).log_softmax(-1)
        return result


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--frames", type=int, default=400)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Recognizer(args.width, args.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    criterion = nn.CTCLoss()
    for step in range(args.steps):
        sound = torch.randn(args.batch_size, 80, args.frames, device=device)
        letters = torch.randint(1, 29, (args.batch_size, 40), device=device)
        logits = model(sound).transpose(0, 1)
        lengths = torch.full((args.batch_size,), logits.shape[0], device=device)
        loss = criterion(logits, letters, lengths, torch.full_like(lengths, 40))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
