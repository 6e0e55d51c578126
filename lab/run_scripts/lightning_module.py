"""A LightningModule, a DataModule and a Trainer.

python lab/run_scripts/lightning_module.py --epochs 2
"""

from __future__ import annotations

import argparse
import logging
import warnings

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

Batch = tuple[Tensor, Tensor]


class Classifier(lightning.LightningModule):
    """A small convolutional network."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU())
        self.head = nn.Linear(16, 10)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.features(x).mean((2, 3)))
        return result

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of one batch."""
        x, y = batch
        loss: Tensor = self.loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """The loss of one batch."""
        x, y = batch
        self.log("val_loss", self.loss(self(x), y))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class FakeDigits(lightning.LightningDataModule):
    """Random images."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        images = torch.randn(batches * 16, 1, 28, 28, generator=generator)
        self.data = TensorDataset(images, torch.arange(batches * 16) % 10)

    def train_dataloader(self) -> DataLoader[Batch]:
        """Of an epoch."""
        return DataLoader(self.data, batch_size=16)  # type: ignore[arg-type]

    def val_dataloader(self) -> DataLoader[Batch]:
        """The same images."""
        return DataLoader(self.data, batch_size=16)  # type: ignore[arg-type]


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batches", type=int, default=15)
    parser.add_argument("--save")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", module="lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    lightning.seed_everything(0, verbose=False)
    model = Classifier()
    trainer = lightning.Trainer(
        max_epochs=args.epochs,
        accelerator="auto",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, datamodule=FakeDigits(args.batches))
    print(
        f"trained {trainer.global_step} steps, val_loss {float(trainer.callback_metrics['val_loss']):.6f}", flush=True
    )
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
