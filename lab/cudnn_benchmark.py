"""What does ``torch.backends.cudnn.benchmark`` gain? The source of the rule's factors.

Trains the convolutional demo models with the switch off and on, in turn, each in a process of its own, and prints the
step times and how much faster the convolution kernels became. Needs a GPU.

    python lab/cudnn_benchmark.py [--models vgg16 resnet50] [--precisions fp32 amp-fp16]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import tb_dlprof_plugin
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

TRAIN = Path(__file__).resolve().parents[1] / "demo" / "train.py"


def run(model: str, precision: str, benchmark: bool) -> tuple[float, float, str]:
    """Unprofiled step and convolution kernels per step (ms), and the device."""
    with tempfile.TemporaryDirectory() as logdir:
        command = [sys.executable, str(TRAIN), "--model", model, "--precision", precision, "--logdir", logdir]
        command += ["--device", "cuda"] + (["--cudnn-benchmark"] if benchmark else [])
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (stored,) = tb_dlprof_plugin.read_profiles(logdir)
    view = ProfileView(stored.profile)
    selection = view.selection()
    page = kernels_page(view, RunRef(model, "", 0, 0), selection)
    convolutions = sum(family.value_ns or 0 for family in page.by_family if family.key == "convolution")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    return result["unprofiled_step_ms"], convolutions / selection.count / 1e6, result["device"]


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description="Measure what cudnn.benchmark gains.")
    parser.add_argument("--models", nargs="+", default=["alexnet", "vgg16", "resnet50"])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "tf32", "amp-fp16"])
    args = parser.parse_args()
    for model in args.models:
        for precision in args.precisions:
            off_ms, off_kernels, device = run(model, precision, False)
            on_ms, on_kernels, _ = run(model, precision, True)
            print(
                f"{device} {model:9} {precision:9} step {off_ms:7.2f} -> {on_ms:7.2f} ms, convolution kernels "
                f"{off_kernels:7.2f} -> {on_kernels:7.2f} ms: {off_kernels / on_kernels:.2f} times as fast",
                flush=True,
            )


if __name__ == "__main__":
    main()
