"""Does profiling change the training? Trains a demo model twice, with and without the hook, and compares every weight.

On a GPU if there is one. Deterministic algorithms are asked for, because without them two runs without any profiler
already differ. Prints a row per model and precision and ends with 1 where a single bit differs.

    python lab/same_weights.py [--models resnet50 custom] [--precisions fp32 amp-fp16]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "demo"))

import tb_dlprof_plugin
from models import MODELS
from synthetic_data import make_loader
from training import PRECISIONS, Training

STEPS = 8


def train(model: str, precision: str, device: torch.device, hooked: bool) -> dict[str, torch.Tensor]:
    """The weights and buffers after a few steps."""
    spec = MODELS[model]
    setting = spec.full if device.type == "cuda" else spec.quick
    torch.manual_seed(0)
    training = Training(spec.build(setting.image_shape, spec.num_classes), device, precision, False)
    loader = make_loader(
        batches=STEPS,
        batch_size=setting.batch_size,
        image_shape=setting.image_shape,
        num_classes=spec.num_classes,
        workers=0,
        pin_memory=False,
    )
    with tempfile.TemporaryDirectory() as logdir:
        hook: AbstractContextManager[Any] = nullcontext()
        if hooked:
            hook = tb_dlprof_plugin.profile(
                logdir, model=training.model, dataloader=loader, schedule=(1, 1, STEPS - 3), wait=True
            )
        with hook as prof:
            for images, labels in loader:
                training.step(*training.to_device(images, labels))
                if prof is not None:
                    prof.step()
        if hooked and not list(Path(logdir).glob("*tfevents*")):
            sys.exit(f"{model} {precision}: the hook left no profile, so that nothing was compared.")
    return {name: value.detach().cpu() for name, value in training.model.state_dict().items()}


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description="Compare the weights of a training with and without the hook.")
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=["resnet50", "custom"])
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["fp32", "amp-fp16"])
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.deterministic = True
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name() if device.type == 'cuda' else 'CPU'}")
    failed = False
    for model in args.models:
        for precision in args.precisions:
            plain, again, hooked = (train(model, precision, device, hooked) for hooked in (False, False, True))
            noise = [name for name in plain if not torch.equal(plain[name], again[name])]
            changed = [name for name in plain if not torch.equal(plain[name], hooked[name])]
            failed |= bool(changed) and not noise
            verdict = "identical" if not changed else f"{len(changed)} differ"
            aside = f" (without the hook, {len(noise)} differ from run to run)" if noise else ""
            print(f"{model:10} {precision:9} {len(plain):4} tensors: {verdict}{aside}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
