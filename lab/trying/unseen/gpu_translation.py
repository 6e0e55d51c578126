"""A Transformer that translates padded sequences of numbers; each step's loss is kept as a number, and Adam goes
parameter by parameter."""

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WORDS, WIDTH, BATCH, LONGEST, PAD = 12_000, 384, 48, 56, 0


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.randint(LONGEST // 2, LONGEST, (BATCH, 1))
    words = torch.randint(1, WORDS, (BATCH, LONGEST))
    source = torch.where(torch.arange(LONGEST) < lengths, words, PAD)
    return source, source.flip(1)


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=PAD)
        self.places = nn.Parameter(torch.zeros(LONGEST, WIDTH))
        self.transformer = nn.Transformer(WIDTH, 6, 4, 4, 4 * WIDTH, 0.1, batch_first=True)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        ahead = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device).isinf()
        found = self.transformer(
            self.words(source) + self.places,
            self.words(target) + self.places[: target.shape[1]],
            tgt_mask=ahead,
            src_key_padding_mask=source == PAD,
        )
        return self.head(found)


def main() -> None:
    torch.manual_seed(0)
    model = Translator().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, betas=(0.9, 0.98), foreach=False)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4000))
    log: list[float] = []
    while True:
        source, target = (one.to(DEVICE) for one in batch())
        guess = model(source, target[:, :-1])
        loss = F.cross_entropy(guess.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        log = [*log[-1000:], loss.item()]


if __name__ == "__main__":
    main()
