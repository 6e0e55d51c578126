"""The training loop of Accelerate's examples: prepare, gradient accumulation, a scheduler, evaluation.

python lab/run_scripts/accelerate_loop.py --steps 24
"""

from __future__ import annotations

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class TinyBert(nn.Module):
    """Embeddings, two encoder layers and a classifier."""

    def __init__(self, vocabulary: int = 200, width: int = 32) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.classifier = nn.Linear(width, 2)

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.classifier(self.encoder(self.embeddings(input_ids)).mean(1))
        out = {"logits": logits}
        if labels is not None:
            out["loss"] = nn.functional.cross_entropy(logits, labels)
        return out


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=24, help="optimizer steps")
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--save")
    args = parser.parse_args()
    set_seed(0)
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    ids = torch.randint(0, 200, (8 * args.steps * args.accumulate, 16), generator=torch.Generator().manual_seed(1))
    loader: DataLoader[tuple[Tensor, ...]] = DataLoader(TensorDataset(ids, ids.sum(1) % 2), batch_size=8)
    model: nn.Module = TinyBert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    model.train()
    total = 0.0
    for input_ids, labels in loader:
        with accelerator.accumulate(model):
            loss = model(input_ids=input_ids, labels=labels)["loss"]
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            total += loss.item()
    model.eval()
    with torch.no_grad():
        right = sum(int((model(x)["logits"].argmax(-1) == y).sum()) for x, y in loader)
    accelerator.print(f"loss {total:.6f}, right {right}", flush=True)
    if args.save:
        accelerator.save(accelerator.unwrap_model(model).state_dict(), args.save)


if __name__ == "__main__":
    main()
