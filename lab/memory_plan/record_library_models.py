"""Records models of libraries once each, and measures them in configurations whose forecasts are made afterwards.

    python -m lab.memory_plan.record_library_models --out DIRECTORY [--seconds 230] [--models t5_small ...]

For each of `library_models`: a recording to DIRECTORY/<model>/base; then peaks and the time of a step in other batch
sizes, precisions, optimizers, inputs, with every unit or half of them checkpointed or offloaded, and some of these
together; the smallest limit of four configurations; and the largest batch under `LIMIT_BYTES` of three. A row of
DIRECTORY/measured.json.gz holds the arguments of the plan that forecasts it, for `compare_library_models`. With
--device cpu the steps run and no memory is counted, to try the script.
"""

from __future__ import annotations

import argparse
import copy
import functools
import gzip
import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tb_dlprof_plugin

from .inputs_and_splits import LIMIT_BYTES, largest_batch
from .library_models import LATER_MODELS, LIBRARY_MODELS, LibraryModel, unit_paths
from .record import clear, smallest_limit

STEPS, OWN = 5, 3
_QUICK_STEPS = 2
_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-3),
    "momentum": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-4),
    "adam_fused": lambda p: torch.optim.Adam(p, lr=1e-4, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-4),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True),
    "adamw_loop": lambda p: torch.optim.AdamW(p, lr=1e-4, foreach=False),
}
_HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def _save_on_cpu(forward: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    with torch.autograd.graph.save_on_cpu():
        return forward(*arguments, **keywords)


class Training:
    """A model in the configuration of a plan.

    Args:
        model: of the libraries.
        built: its module on the CPU, which is copied.
        plan: arguments of the plan.
        device: where it runs.
    """

    def __init__(self, model: LibraryModel, built: nn.Module, plan: dict[str, Any], device: str) -> None:
        torch.manual_seed(0)
        self.model, self.device = model, device
        self.module = copy.deepcopy(built).to(device).train()
        for argument, wrap in (
            ("checkpoint", functools.partial(checkpoint, use_reentrant=False)),
            ("offload", _save_on_cpu),
        ):
            for path in plan.get(argument, ()):
                unit = self.module.get_submodule(path)
                unit.forward = functools.partial(wrap, unit.forward)
        self.optimizer = _OPTIMIZERS[plan.get("optimizer", model.optimizer)](self.module.parameters())
        self.half = _HALVES.get(plan.get("precision", ""))
        self.scaler = torch.amp.GradScaler(device, init_scale=1024.0, enabled=self.half is torch.float16)
        self.batch_size = plan.get("batch_size", model.batch_size)
        size = plan.get("image_size", plan.get("sequence_length", model.size))
        self.batch = model.batch(self.batch_size, size)

    def __call__(self) -> None:
        """One training step."""
        self.optimizer.zero_grad()
        batch = tuple(tensor.to(self.device) for tensor in self.batch)
        with torch.autocast(self.device, self.half or torch.bfloat16, enabled=self.half is not None):
            loss = self.model.loss(self.module, batch)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.step(self.optimizer)
        self.scaler.update()


class Study:
    """What is measured of a model.

    Args:
        model: of the libraries.
        out: where its recording goes.
        device: "cuda", or "cpu" to try the script.
        until_s: when nothing new begins, by the monotonic clock.
    """

    def __init__(self, model: LibraryModel, out: Path, device: str, until_s: float) -> None:
        self.model, self.out, self.device, self.until_s = model, out, device, until_s
        self.built = model.build()
        self.units = unit_paths(model, self.built)
        self.rows: list[dict[str, Any]] = []
        self.session: Any = None

    def attempt(self, plan: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Add a row; one that fails has its error, and one behind the end of the time is left out."""
        if time.monotonic() > self.until_s:
            return {}
        began_s = time.monotonic()
        try:
            found = measure()
        except Exception as error:
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        row = {"model": self.model.name, "new": True, "batch_size": self.model.batch_size, "plan": plan, **found}
        self.rows.append(row | {"took_s": round(time.monotonic() - began_s, 2)})
        return found

    def clear(self) -> None:
        """An empty allocator."""
        if self.device == "cuda":
            clear()

    def record(self) -> dict[str, Any]:
        """Start the analysis of a recording of two steps, with those behind it in which the hook reads the step."""
        self.clear()
        training = Training(self.model, self.built, {}, self.device)
        with tb_dlprof_plugin.profile(
            self.out / self.model.name / "base",
            training.module,
            optimizer=training.optimizer,
            batch_size=training.batch_size,
            schedule={"wait": 2, "warmup": 1, "active": 2, "repeat": 1},
            profile_memory=True,
            keep_trace=False,
            quiet=True,
            wait=False,
        ) as session:
            self.session = session
            for _ in range(12):
                training()
                session.step()
        return {}

    def measured(self, plan: dict[str, Any], steps: int = STEPS) -> dict[str, Any]:
        """What the allocator counted, in bytes, and the time of a step; ``failed`` where the memory did not suffice."""
        self.clear()
        try:
            training = Training(self.model, self.built, plan, self.device)
            for _ in range(max(1, steps - OWN)):
                training()
            if self.device == "cuda":
                torch.cuda.synchronize()
            began_s = time.perf_counter()
            for _ in range(min(OWN, steps - 1)):
                training()
            if self.device != "cuda":
                return {"step_ms": 1e3 * (time.perf_counter() - began_s) / min(OWN, steps - 1)}
            torch.cuda.synchronize()
            return {
                "step_ms": round(1e3 * (time.perf_counter() - began_s) / min(OWN, steps - 1), 3),
                "peak_allocated": torch.cuda.max_memory_allocated(),
                "peak_reserved": torch.cuda.max_memory_reserved(),
                "retries": torch.cuda.memory_stats()["num_alloc_retries"],
                # A scaler leaves steps out where gradients are infinite, and with them the optimizer's states.
                "states": len(training.optimizer.state),
            }
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error).lower():
                raise
            return {"failed": True}

    def plans(self) -> list[dict[str, Any]]:
        """Configurations, the most important first: what one change does, then changes together."""
        model, base = self.model, self.model.batch_size
        units, half = self.units, self.units[: len(self.units) // 2]
        adaptive = model.optimizer.startswith("adam")
        larger = {"sequence_length": 2 * model.size} if model.words else {"image_size": model.size + 64}
        return [
            {"batch_size": 2 * base},
            {"precision": "bf16"},
            {"optimizer": "sgd" if adaptive else "adamw"},
            {"checkpoint": units},
            {"offload": units},
            {"precision": "fp16"},
            {"batch_size": base - 5},
            {"checkpoint": half},
            {"offload": half},
            {"optimizer": "momentum" if adaptive else "adam_fused"},
            {"precision": "bf16", "batch_size": 2 * base},
            {"checkpoint": units, "batch_size": 3 * base},
            {"checkpoint": units, "precision": "bf16"},
            larger,
            {"batch_size": 3 * base + 1},
            {"optimizer": "adamw_fused", "precision": "bf16"},
        ]

    def run(self) -> None:
        """All of it. Limits come last: where one refuses cuDNN's workspace, torch keeps the algorithm without it for
        that shape and type, so each limit has a shape or a type of its own."""
        base = self.model.batch_size
        self.measured({}, _QUICK_STEPS)  # Loads libraries and kernels.
        self.attempt({"recorded": True}, self.record)
        known = {}
        for plan in ({}, *self.plans()):
            known[json.dumps(plan)] = self.attempt(plan, functools.partial(self.measured, plan))
        if self.device != "cuda":
            return
        for plan in (
            {},
            {"precision": "bf16"},
            {"checkpoint": self.units, "batch_size": 3 * base},
            {"batch_size": 2 * base},
        ):
            found = known.get(json.dumps(plan), {})
            if "peak_reserved" in found:
                self.attempt(
                    plan, functools.partial(self.limit, plan, {key: found[key] for key in found if "peak" in key})
                )
        for plan in ({}, {"precision": "bf16"}, {"checkpoint": self.units}):
            one = known.get(json.dumps(plan), {}).get("peak_allocated")
            more = self.measured(plan | {"batch_size": 2 * base}, _QUICK_STEPS).get("peak_allocated")
            if one and more:
                self.attempt(plan | {"memory_bytes": LIMIT_BYTES}, functools.partial(self.largest, plan, one, more))

    def limit(self, plan: dict[str, Any], known: dict[str, int]) -> dict[str, Any]:
        """The smallest limit of a configuration."""
        return known | smallest_limit(lambda: "failed" not in self.measured(plan, 3), known)

    def largest(self, plan: dict[str, Any], one: int, two: int) -> dict[str, Any]:
        """The largest batch under `LIMIT_BYTES`."""

        def runs(batch: int) -> bool:
            return "failed" not in self.measured(plan | {"batch_size": batch}, _QUICK_STEPS)

        return dict(largest_batch(runs, self.model.batch_size, one, two, self.until_s))


def main() -> None:
    """Measure until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", nargs="*", default=[model.name for model in LIBRARY_MODELS])
    parser.add_argument("--seconds", type=float, default=230, help="nothing new begins after so many")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    given = parser.parse_args()
    began_s = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    models = [model for model in (*LIBRARY_MODELS, *LATER_MODELS) if model.name in given.models]
    rows: list[dict[str, Any]] = []
    sessions = []
    for i, model in enumerate(models):
        # An equal part of what is left, so that a slow model does not take the others' time.
        left_s = given.seconds - (time.monotonic() - began_s)
        study = None
        try:
            study = Study(model, given.out, given.device, time.monotonic() + left_s / (len(models) - i))
            study.run()
        except Exception as error:
            traceback.print_exc()
            rows.append({"model": model.name, "plan": {}, "error": f"{type(error).__name__}: {error}"[:300]})
        if study is not None:
            rows += study.rows
            sessions += [study.session] if study.session is not None else []
        print(f"{model.name}: {time.monotonic() - began_s:.0f} s", flush=True)
        name = torch.cuda.get_device_name(0) if given.device == "cuda" else "cpu"
        written = {"gpu": name, "torch": torch.__version__, "rows": rows}
        (given.out / "measured.json.gz").write_bytes(gzip.compress(json.dumps(written).encode(), mtime=0))
    for session in sessions:
        session.wait(60)
    for model in models:
        of = [row for row in rows if row["model"] == model.name]
        limits = sum("smallest_limit" in row for row in of)
        batches = sum("largest_batch" in row for row in of)
        errors = sum("error" in row for row in of)
        # No figure of a forecast's truth: the forecasts are made before the file is opened.
        print(f"{model.name:16} {len(of)} rows, {limits} limits, {batches} largest batches, {errors} errors")


if __name__ == "__main__":
    main()
