"""Measures changes that `lab.memory_plan.record` leaves out: size of the input, offload, ReLUs in place, a
rank's part of a tensor-parallel model, and the largest batch under a limit.

    python -m lab.memory_plan.inputs_and_splits --out DIRECTORY [--seconds 100] [--subjects resnet gpt ...]

The forecasts come from the recordings that `record` made (`recorded/`, `held_out/`), so nothing is recorded here but
three models without a part in any rule (`NEW`): DIRECTORY/<model>/base. DIRECTORY/inputs_and_splits.json has a row
for each configuration: what the allocator counted, and for the largest batch the most samples that were seen to run
under `LIMIT_BYTES` and the fewest that were not. Takes 100 s on an H200.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .inputs_and_splits_subjects import NEW, halved, resized
from .record import Configuration, Training, clear, measured, record
from .subjects import SUBJECTS, Stacked, Subject

LIMIT_BYTES = 12 << 30
"""Under which the largest batch is searched: small, so that its batches are quickly made."""
CLOSE_ENOUGH = 0.01
_STEPS = 2


class Offloaded(nn.Module):
    """A module that keeps on the CPU what its backward pass needs."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        with torch.autograd.graph.save_on_cpu():
            return self.body(x)  # type: ignore[no-any-return]


def _offloaded(build: Callable[[int], Stacked]) -> Callable[[int], Stacked]:
    def built(layers: int) -> Stacked:
        model = build(layers)
        model.blocks = nn.ModuleList(Offloaded(block) for block in model.blocks)
        return model

    return built


def _inplace(build: Callable[[int], Stacked]) -> Callable[[int], Stacked]:
    def built(layers: int) -> Stacked:
        model = build(layers)
        for module in model.modules():
            if isinstance(module, (nn.ReLU, nn.ReLU6)):
                module.inplace = True
        return model

    return built


@dataclass(frozen=True)
class Further:
    """A change of a subject, with the arguments of the plan that forecasts it."""

    plan: dict[str, Any]
    subject: Subject


def changes(subject: Subject) -> list[Further]:
    """What is measured of a subject besides its largest batch."""
    found = []
    for plan, other in resized(subject):
        found.append(Further(plan, other))
    found.append(Further({"offload": "blocks"}, replace(subject, build=_offloaded(subject.build))))
    if any(isinstance(module, nn.ReLU) and not module.inplace for module in subject.build(1).modules()):
        found.append(Further({"relu": "inplace"}, replace(subject, build=_inplace(subject.build))))
    rank = halved(subject)
    if rank is not None:
        found.append(Further({"shard": "tensor", "gpus": 2}, rank))
    return found


def runs(subject: Subject, batch: int) -> bool:
    """Whether two steps with a batch run under the limit in force. Its values are 0, which takes no time to make."""
    clear()
    configuration = Configuration(batch)
    try:
        one, target = (tensor[:1] for tensor in subject.batch(1))
        zeros = (torch.zeros(batch, *one.shape[1:], dtype=one.dtype), torch.zeros(batch, *target.shape[1:]).long())
        training = Training(replace(subject, batch=lambda _: zeros), configuration, pin=False)
        for _ in range(_STEPS):
            training()
        torch.cuda.synchronize()
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error).lower():
            raise
        return False
    return True


def largest_batch(runs: Callable[[int], bool], base: int, one: int, two: int, until_s: float) -> dict[str, int]:
    """The most samples that were seen to run under the limit, and the fewest that were seen not to.

    Args:
        runs: whether a batch runs under the limit in force.
        base: a batch size.
        one: bytes at the peak with it.
        two: with twice as many.
        until_s: when the search ends, whatever it knows.
    """
    total = torch.cuda.get_device_properties(0).total_memory
    guess = max(1, int(base * (1 + (LIMIT_BYTES - one) / max(two - one, 1))))
    torch.cuda.set_per_process_memory_fraction(LIMIT_BYTES / total)
    works, fails = 0, 0
    at, step = guess, max(1, guess // 25)
    try:
        while time.monotonic() < until_s and not (works and fails and fails - works <= max(1, CLOSE_ENOUGH * works)):
            if runs(at):
                works = max(works, at)
                at = (works + fails) // 2 if fails else works + step
            else:
                fails = min(fails or at, at)
                at = (works + fails) // 2 if works else max(1, fails - step)
            step *= 1 if works and fails else 2
            if at < 1 or at == works or (fails == 1 and not works):
                break
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return {"largest_batch": works, "smallest_failing": fails}


class Measurements:
    """Rows of what was measured, and the recordings whose analysis is under way.

    Args:
        out: where recordings go.
        until_s: when a search for the largest batch ends, by the monotonic clock.
    """

    def __init__(self, out: Path, until_s: float) -> None:
        self.out, self.until_s = out, until_s
        self.rows: list[dict[str, Any]] = []
        self.sessions: list[Any] = []

    def attempt(self, what: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Add a row; one that fails has its error."""
        try:
            found = measure()
        except Exception as error:
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        self.rows.append(what | found)
        return found

    def of(self, subject: Subject) -> None:
        """All that is measured of a subject."""
        new, base = subject in NEW, Configuration(subject.batch_size)
        twice = replace(base, batch_size=2 * subject.batch_size)
        if new:
            self.sessions.append(record(subject, base, self.out / subject.name / "base"))

        def what(**plan: Any) -> dict[str, Any]:
            return {"model": subject.name, "new": new, "batch_size": subject.batch_size, "plan": plan}

        one = self.attempt(what(), lambda: measured(subject, base))
        two = self.attempt(what(batch_size=twice.batch_size), lambda: measured(subject, twice))
        for change in changes(subject):
            self.attempt(what(**change.plan), functools.partial(measured, change.subject, base, 3))
        if "peak_allocated" in one and "peak_allocated" in two:
            peaks = one["peak_allocated"], two["peak_allocated"]
            tries = functools.partial(runs, subject)
            self.attempt(
                what(memory_bytes=LIMIT_BYTES), lambda: largest_batch(tries, subject.batch_size, *peaks, self.until_s)
            )


def main() -> None:
    """Measure until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--subjects", nargs="*", default=[one.name for one in (*NEW, *SUBJECTS)])
    parser.add_argument("--seconds", type=float, default=100, help="nothing new begins after so many")
    given = parser.parse_args()
    began_s = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    found = Measurements(given.out, began_s + given.seconds + 5)
    measured(SUBJECTS[0], Configuration(1))  # Loads the libraries.
    for subject in (*NEW, *SUBJECTS):
        if subject.name not in given.subjects or time.monotonic() - began_s > given.seconds:
            continue
        found.of(subject)
        print(f"{subject.name}: {time.monotonic() - began_s:.0f} s", flush=True)
        written = {"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "rows": found.rows}
        (given.out / "inputs_and_splits.json").write_text(json.dumps(written, indent=1) + "\n")
    for session in found.sessions:
        session.wait(30)
    for row in found.rows:
        if not row["new"]:
            print(
                row["model"], row["plan"], {key: row.get(key) for key in ("peak_allocated", "largest_batch", "error")}
            )


if __name__ == "__main__":
    main()
