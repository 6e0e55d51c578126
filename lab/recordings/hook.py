"""A recording by the package's own hook, with module ranges: the demo's custom model, made small."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

from recordings.recorder import Recorder
from recordings.subjects import CLASSES


def record_hook(rec: Recorder, steps: int, precision: str = "fp32") -> None:
    """Trains the small convolutional transformer from a DataLoader; keeps the trace that the hook left."""
    from models.custom import ConvTransformer
    from tb_dlprof_plugin import profile
    from training import Training

    torch.manual_seed(0)
    model = ConvTransformer((3, 32, 32), CLASSES, dim=32, depth=1, heads=2)
    training = Training(model, rec.device, precision, False)
    data = TensorDataset(torch.randint(0, 255, (80, 3, 32, 32), dtype=torch.uint8), torch.randint(0, CLASSES, (80,)))
    loader = DataLoader(data, batch_size=8, pin_memory=rec.device.type == "cuda")
    with tempfile.TemporaryDirectory() as folder:
        with profile(
            folder,
            model,
            loader,
            optimizer=training.optimizer,
            schedule=(1, 2, steps, 1),
            wait=True,
            pytorch_views=False,
        ) as prof:
            for images, labels in loader:
                training.step(*training.to_device(images, labels))
                prof.step()
        (trace,) = Path(folder).glob("*.pt.trace.json*")
        data_of = trace.read_bytes()
        rec.keep_trace(gzip.decompress(data_of) if trace.suffix == ".gz" else data_of)
        rec.keep_averages(prof.events())
