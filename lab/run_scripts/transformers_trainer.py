"""Hugging Face's Trainer on a small BERT; needs transformers and accelerate.

python lab/run_scripts/transformers_trainer.py --steps 24
"""

from __future__ import annotations

import argparse
import tempfile

import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)


class FakeText(Dataset[dict[str, Tensor]]):
    """Random token ids."""

    def __init__(self, length: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.ids = torch.randint(0, 500, (length, 32), generator=generator)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": self.ids[index], "labels": self.ids[index].sum() % 2}


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--save")
    args = parser.parse_args()
    set_seed(0)
    config = BertConfig(
        vocab_size=500,
        hidden_size=args.width,
        num_hidden_layers=args.layers,
        num_attention_heads=4,
        intermediate_size=4 * args.width,
    )
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                max_steps=args.steps,
                per_device_train_batch_size=args.batch_size,
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
            ),
            train_dataset=FakeText(args.steps * args.batch_size),
            eval_dataset=FakeText(4 * args.batch_size),
        )
        # It prints how long things took.
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        print(f"eval_loss {trainer.evaluate()['eval_loss']:.6f}", flush=True)
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
