"""Train one of the six demo models: a plain loop, no profiler.

python lab/run_scripts/six_models.py --model resnet50 --precision amp-fp16
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demo"))

from models import MODELS
from synthetic_data import make_loader
from training import PRECISIONS, Training


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="custom")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="small images and batches, as on a CPU")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save", type=Path, help="file for the weights")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    spec = MODELS[args.model]
    setting = spec.quick if args.quick or device.type == "cpu" else spec.full
    training = Training(spec.build(setting.image_shape, spec.num_classes), device, args.precision)
    loader = make_loader(
        batches=args.steps,
        batch_size=setting.batch_size,
        image_shape=setting.image_shape,
        num_classes=spec.num_classes,
        workers=args.workers,
        pin_memory=device.type == "cuda",
    )
    for step, (images, labels) in enumerate(loader):
        loss = training.step(*training.to_device(images, labels))
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.6f}", flush=True)
    if args.save:
        torch.save(training.model.state_dict(), args.save)


if __name__ == "__main__":
    main()
