"""Records each model once with the hook, and measures what it takes in other configurations.

    python -m lab.memory_plan.record --out DIRECTORY [--subjects resnet gpt ...] [--seconds 480]

Event files go to DIRECTORY/<model>/base and DIRECTORY/<model>/twice (twice the batch), what the allocator counted to
DIRECTORY/truth.json: for each configuration the peaks since the model was built and those of the last two of five
steps, and for the recorded one the smallest limit under which it runs, found by bisection with
`torch.cuda.set_per_process_memory_fraction`. Each configuration begins with an empty allocator, without workspaces of
the one before. Takes about five minutes on an H200.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

import tb_dlprof_plugin

from .subjects import SUBJECTS, Stacked, Subject

STEPS, OWN = 5, 2
PROBES = 7
"""Of the bisection between the peak of tensors and what was reserved."""
OPTIMIZERS = ("sgd", "momentum", "adamw", "adamw_fused", "adamw_loop")


@dataclass(frozen=True)
class Configuration:
    """``layers`` counts blocks beyond the subject's own; ``accumulate`` the batches of a step."""

    batch_size: int
    optimizer: str = "adamw"
    precision: str = "fp32"
    layers: int = 0
    recompute: bool = False
    set_to_none: bool = True
    accumulate: int = 1
    expandable: bool = False


class Training:
    """A subject in a configuration, on the GPU; ``pin`` copies the batch to pinned memory of the host."""

    def __init__(self, subject: Subject, configuration: Configuration, pin: bool = True) -> None:
        torch.manual_seed(0)
        self.subject, self.configuration = subject, configuration
        self.model: Stacked = subject.build(subject.layers + configuration.layers).cuda().train()
        self.model.recompute = configuration.recompute
        self.optimizer = _optimizer(configuration.optimizer, self.model)
        batch = subject.batch(configuration.batch_size)
        self.batch = [tensor.pin_memory() if pin else tensor for tensor in batch]

    def __call__(self) -> None:
        """One training step."""
        self.optimizer.zero_grad(set_to_none=self.configuration.set_to_none)
        for _ in range(self.configuration.accumulate):
            inputs, target = (tensor.cuda(non_blocking=True) for tensor in self.batch)
            with torch.autocast("cuda", torch.bfloat16, enabled=self.configuration.precision == "bf16"):
                loss = self.subject.loss(self.model, inputs, target)
            loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def _optimizer(name: str, model: Stacked) -> torch.optim.Optimizer:
    parameters = model.parameters()
    if name in ("sgd", "momentum"):
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9 if name == "momentum" else 0.0)
    how: dict[str, Any] = {"adamw_fused": {"fused": True}, "adamw_loop": {"foreach": False}}.get(name, {})
    return torch.optim.AdamW(parameters, lr=1e-4, **how)


def configurations(subject: Subject) -> list[Configuration]:
    """Of a subject: the recorded one first, then one change at a time."""
    base = Configuration(subject.batch_size)
    sizes = [max(1, int(subject.batch_size * factor)) for factor in (0.25, 0.5, 2, 4)]
    return [
        base,
        *(replace(base, batch_size=size) for size in sizes),
        *(replace(base, optimizer=name) for name in OPTIMIZERS if name != base.optimizer),
        replace(base, precision="bf16"),
        replace(base, layers=3),
        replace(base, recompute=True),
        replace(base, recompute=True, batch_size=2 * subject.batch_size),
        replace(base, set_to_none=False),
        replace(base, accumulate=2),
        replace(base, expandable=True),
    ]


def clear() -> None:
    """Free everything that a training left on the GPU."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()


def counted(training: Callable[[], None], steps: int = STEPS) -> dict[str, Any]:
    """What the allocator counts, in bytes, in so many steps; ``own`` is of the last `OWN` of them."""
    for _ in range(steps - OWN):
        training()
    torch.cuda.synchronize()
    first = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    for _ in range(OWN):
        training()
    torch.cuda.synchronize()
    own = torch.cuda.max_memory_allocated()
    return {
        "peak_allocated": max(first, own),
        "own_peak_allocated": own,
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "steady": torch.cuda.memory_allocated(),
        "retries": torch.cuda.memory_stats()["num_alloc_retries"],
        "step_ms": round(1e3 * (time.perf_counter() - began) / OWN, 3),
    }


def measured(subject: Subject, configuration: Configuration, steps: int = STEPS) -> dict[str, Any]:
    """What the allocator counted, in bytes; ``failed`` where the memory did not suffice."""
    clear()
    if configuration.expandable:
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    try:
        training = Training(subject, configuration)
        return counted(training, steps)
    except torch.OutOfMemoryError:
        return {"failed": True}
    finally:
        if configuration.expandable:
            training = None  # type: ignore[assignment]
            clear()
            torch.cuda.memory._set_allocator_settings("expandable_segments:False")


def _runs(subject: Subject, configuration: Configuration) -> bool:
    return "failed" not in measured(subject, configuration)


def smallest_limit(runs: Callable[[], bool], known: dict[str, Any]) -> dict[str, int]:
    """The smallest limit in bytes that was seen to work and the largest that was seen to fail.

    Args:
        runs: whether the configuration runs under the limit in force.
        known: its peaks without a limit.
    """
    total = torch.cuda.get_device_properties(0).total_memory
    works, fails = known["peak_reserved"], known["peak_allocated"] - 1
    try:
        for _ in range(PROBES):
            limit = (works + fails) // 2
            torch.cuda.set_per_process_memory_fraction(limit / total)
            if runs():
                works = limit
            else:
                fails = limit
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return {"smallest_limit": works, "largest_failing": fails}


def record(subject: Subject, configuration: Configuration, directory: Path) -> Any:
    """Start the recording's analysis; its session, to wait for."""
    clear()
    training = Training(subject, configuration)
    with tb_dlprof_plugin.profile(
        directory,
        training.model,
        optimizer=training.optimizer,
        batch_size=configuration.batch_size,
        schedule={"wait": 2, "warmup": 1, "active": 2},
        profile_memory=True,
        keep_trace=False,
        quiet=True,
        wait=False,
    ) as session:
        for _ in range(6):
            training()
            session.step()
    return session


def main() -> None:
    """Write the recordings and what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--subjects", nargs="*", default=[subject.name for subject in SUBJECTS])
    parser.add_argument("--seconds", type=float, default=480, help="no new subject after so many")
    given = parser.parse_args()
    began, sessions, rows = time.monotonic(), [], []
    properties = torch.cuda.get_device_properties(0)
    # Loads the libraries, whose memory is outside the allocator.
    measured(SUBJECTS[0], Configuration(1))
    for subject in SUBJECTS:
        if subject.name not in given.subjects or time.monotonic() - began > given.seconds:
            continue
        for configuration in configurations(subject):
            found = measured(subject, configuration)
            rows.append({"model": subject.name, "held_out": subject.held_out, **asdict(configuration), **found})
        for name, factor in (("base", 1), ("twice", 2)):
            base = Configuration(factor * subject.batch_size)
            sessions.append(record(subject, base, given.out / subject.name / name))
        # Last: where a limit refuses cuDNN's workspace, torch keeps the algorithm without one for this shape.
        own = next(row for row in rows if row["model"] == subject.name)
        own |= smallest_limit(functools.partial(_runs, subject, Configuration(subject.batch_size)), own)
        print(f"{subject.name}: {time.monotonic() - began:.0f} s", flush=True)
        written = {
            "gpu": properties.name,
            "memory_bytes": properties.total_memory,
            "torch": torch.__version__,
            "outside_bytes": properties.total_memory - torch.cuda.mem_get_info()[0] - torch.cuda.memory_reserved(),
            "rows": rows,
        }
        (given.out / "truth.json").write_text(json.dumps(written, indent=1) + "\n")
    for session in sessions:
        session.wait(60)


if __name__ == "__main__":
    main()
