"""Measures memory, time and power of the study's layers and networks on one GPU, and records them with the hook.

    python -m lab.layer_resources.record --out DIRECTORY [--seconds 55] [--device cpu --scale 16]

Parts, each by itself: ``layers`` (four single layers, forward and forward with backward); ``stack`` (the most layers
of a stack under the memory of a GeForce GTX 1080 Ti, forward alone and in training, then the two parts of a split
under the same limit); ``vgg`` (VGG-16 with its ReLUs before and behind the poolings, and in place); ``epoch`` (128
batches of 64 images). Writes DIRECTORY/measured.json, and event files of the
stack and of both VGG-16 to DIRECTORY/<name>.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import tb_dlprof_plugin

from ..energy.record import Sensor, run  # type: ignore[import-not-found]  # mypy knows it as energy.record
from .networks import LAYERS, STACK_INPUT, classes, squares, stack, vgg16

LIMIT_BYTES = int(10.91 * 2**30) - 450 * 2**20
"""What a GeForce GTX 1080 Ti gives to the allocator: its memory less a context of CUDA 11."""
WINDOW_S = 1.6
EPOCH_BATCHES = 128
_ONE_GPU = (61, 61)
_TWO_GPUS = ((84, 0), (54, 62))
"""Numbers of layers that the study's authors found to fit."""


class Study:
    """The parts, with what they found."""

    def __init__(self, out: Path, device: str, scale: int, seconds: float) -> None:
        self.out, self.device, self.scale = out, device, scale
        self.until_s = time.monotonic() + seconds
        self.sensor = Sensor(device)
        self.found: dict[str, Any] = {}
        self.sessions: list[Any] = []

    def size(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """With as many samples as the scale leaves."""
        return (max(1, shape[0] // self.scale), *shape[1:])

    def clear(self) -> None:
        """An empty allocator."""
        gc.collect()
        if self.device == "cuda":
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peaks(self) -> dict[str, int]:
        """What the allocator counted."""
        if self.device != "cuda":
            return {}
        torch.cuda.synchronize()
        return {
            "peak_allocated": torch.cuda.max_memory_allocated(),
            "peak_reserved": torch.cuda.max_memory_reserved(),
        }

    def measured(self, step: Callable[[], object], seconds: float = WINDOW_S) -> dict[str, Any]:
        """Peaks, and time, joules and watts of a step."""
        if self.device == "cuda":
            # What an earlier layer still had when this one began does not count.
            torch.cuda.reset_peak_memory_stats()
        for _ in range(2):
            step()
        found = self.peaks()
        window = self.sensor.between(
            run(lambda: step() and None, seconds if self.device == "cuda" else 0.1, self.device)
        )
        return found | {key: window.get(key) for key in ("step_ms", "joules_per_step", "watts", "clock_mhz")}

    def layers(self) -> None:
        """Single layers, each forward and with its backward pass."""
        rows = self.found["layers"] = []
        for name, (build, shape) in LAYERS.items():
            for training in (False, True):
                self.clear()
                layer = build().to(self.device)
                x = torch.randn(self.size(shape), device=self.device)
                before = torch.cuda.memory_allocated() if self.device == "cuda" else 0

                def step(layer: nn.Module = layer, x: torch.Tensor = x, training: bool = training) -> None:
                    if not training:
                        with torch.no_grad():
                            layer(x)
                        return
                    leaf = x.detach().requires_grad_()
                    # A leaf may not be written to in place: the layer gets a tensor that was made from it.
                    y = layer(leaf * 1.0 if getattr(layer, "inplace", False) else leaf)
                    y.backward(torch.ones_like(y))
                    layer.zero_grad(set_to_none=True)

                rows.append({"layer": name, "training": training, "before": before, **self.measured(step)})

    def stack(self) -> None:
        """The most layers under the limit, and the parts of a split under the same limit each."""
        found: dict[str, Any] = {"limit_bytes": LIMIT_BYTES}
        self.found["stack"] = found
        convolutions, linears = _ONE_GPU
        rows = found["runs"] = []
        for training in (False, True):
            row = self.of_stack(convolutions, linears, training)
            rows.append({"convolutions": convolutions, "linears": linears, "training": training, **row})
        record = self.recorded("stack", stack(8 // min(self.scale, 4), 8 // min(self.scale, 4)), squares, STACK_INPUT)
        found["recorded"] = record
        if self.device != "cuda":
            return
        torch.cuda.set_per_process_memory_fraction(LIMIT_BYTES / torch.cuda.get_device_properties(0).total_memory)
        try:
            for training in (False, True):
                for kind in ("convolutions", "linears", "both"):
                    found[f"most {kind}, {'training' if training else 'forward'}"] = self.most(kind, training)
            for convolutions, linears in _TWO_GPUS:
                for training in (False, True):
                    row = self.of_stack(convolutions, linears, training)
                    rows.append(
                        {"part": True, "convolutions": convolutions, "linears": linears, "training": training, **row}
                    )
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)

    def of_stack(self, convolutions: int, linears: int, training: bool, steps: int = 6) -> dict[str, Any]:
        """A stack's peaks and time; ``failed`` where the memory did not suffice."""
        self.clear()
        try:
            model = stack(convolutions, linears).to(self.device)
            x = torch.randn(self.size(STACK_INPUT), device=self.device)
            for _ in range(2):
                self.pass_of(model, x, training)
            found: dict[str, Any] = self.peaks()
            marks = run(lambda: self.pass_of(model, x, training), 0.0, self.device, least=steps)
            return found | {"step_ms": (marks[-1] - marks[0]) / 1e6 / (len(marks) - 1)}
        except torch.OutOfMemoryError:
            return {"failed": True}

    def pass_of(self, model: nn.Module, x: torch.Tensor, training: bool) -> None:
        """A forward pass that keeps what a backward pass needs, with that where asked."""
        loss = squares(model, x)
        if training:
            loss.backward()
            model.zero_grad(set_to_none=True)

    def most(self, kind: str, training: bool) -> int | None:
        """The most layers of a kind, or pairs of both, that run under the limit; None where time ran out."""
        works, fails = 0, 512
        while fails - works > 1 and time.monotonic() < self.until_s:
            middle = (works + fails) // 2
            counts = {"convolutions": (middle, 0), "linears": (0, middle), "both": (middle, middle)}[kind]
            if "failed" in self.of_stack(*counts, training, steps=1):
                fails = middle
            else:
                works = middle
        return works if fails - works <= 1 else None

    def vgg(self) -> None:
        """VGG-16 as it is and swapped, with ReLUs of their own and in place."""
        rows = self.found["vgg"] = []
        for inplace in (False, True):
            for swapped in (False, True):
                self.clear()
                torch.manual_seed(0)
                model = vgg16(swapped, inplace).to(self.device)
                optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
                images = torch.randn(self.size((128, 3, 224, 224)), device=self.device)
                labels = torch.zeros(len(images), dtype=torch.int64, device=self.device)

                def step(
                    model: nn.Module = model,
                    optimizer: Any = optimizer,
                    images: torch.Tensor = images,
                    labels: torch.Tensor = labels,
                ) -> None:
                    optimizer.zero_grad()
                    classes(model, images, labels).backward()
                    optimizer.step()

                row = {"swapped": swapped, "inplace": inplace, **self.measured(step)}
                if not inplace:
                    row["recorded"] = self.recorded_steps(
                        "vgg_swapped" if swapped else "vgg", model, optimizer, step, len(images)
                    )
                rows.append(row)

    def epoch(self) -> None:
        """8,192 images in batches of 64."""
        self.clear()
        model = vgg16(False).to(self.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        images = torch.randn(self.size((64, 3, 224, 224)), device=self.device)
        labels = torch.zeros(len(images), dtype=torch.int64, device=self.device)

        def step() -> None:
            optimizer.zero_grad()
            classes(model, images, labels).backward()
            optimizer.step()

        step()
        marks = run(step, 0.0, self.device, least=max(4, EPOCH_BATCHES // 2 // self.scale))
        each = (marks[-1] - marks[0]) / 1e6 / (len(marks) - 1)
        self.found["epoch"] = {
            "step_ms": each,
            "batches": EPOCH_BATCHES,
            "epoch_ms": each * EPOCH_BATCHES,
            **self.peaks(),
        }

    def recorded(self, name: str, model: nn.Module, loss: Any, shape: tuple[int, ...]) -> str:
        """A training of a network, recorded."""
        self.clear()
        model = model.to(self.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        x = torch.randn(self.size(shape), device=self.device)

        def step() -> None:
            optimizer.zero_grad()
            loss(model, x).backward()
            optimizer.step()

        return self.recorded_steps(name, model, optimizer, step, len(x))

    def recorded_steps(self, name: str, model: nn.Module, optimizer: Any, step: Callable[[], None], batch: int) -> str:
        """Two steps with memory, and those behind them in which the hook reads the energy."""
        with tb_dlprof_plugin.profile(
            self.out / name,
            model,
            optimizer=optimizer,
            batch_size=batch,
            schedule={"wait": 2, "warmup": 1, "active": 2, "repeat": 1},
            profile_memory=True,
            keep_trace=False,
            quiet=True,
            wait=False,
        ) as session:
            self.sessions.append(session)

            def recorded_step() -> None:
                step()
                session.step()

            for _ in range(5):
                recorded_step()
            run(recorded_step, 2.0 if self.device == "cuda" else 0.1, self.device)
        return name


def main() -> None:
    """Measure the parts until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=55, help="no new part after so many")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--scale", type=int, default=1, help="divide batches by it, to try the script")
    parser.add_argument("--parts", nargs="*", default=["layers", "stack", "vgg", "epoch"], help="in this order")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.device == "cuda":
        torch.zeros(1, device="cuda")
    study = Study(given.out, given.device, given.scale, given.seconds)
    for name in given.parts:
        if time.monotonic() > study.until_s:
            print(f"{given.seconds:.0f} s are over: {name} was not begun.")
            continue
        try:
            getattr(study, name)()
        except Exception as error:
            traceback.print_exc()
            study.found[f"{name} failed"] = f"{type(error).__name__}: {error}"[:300]
        gpu = torch.cuda.get_device_name(0) if given.device == "cuda" else "cpu"
        written = {"gpu": gpu, "torch": torch.__version__, "energy_missing": study.sensor.missing, **study.found}
        (given.out / "measured.json").write_text(json.dumps(written, indent=1) + "\n")
    for session in study.sessions:
        session.wait(20)
    print(json.dumps(study.found))


if __name__ == "__main__":
    main()
