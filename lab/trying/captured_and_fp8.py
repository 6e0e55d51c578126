"""What the captured update and FP8 products gain on a GPU, and whether the training stays the same.

    python -m lab.trying.captured_and_fp8 --out DIRECTORY [--deadline 45]

A GPT of 12 layers whose steps the CPU paces, a perceptron of many small layers and one of a few wide ones. For each
remedy, in one process: blocks of steps without, with, with and without it in turns, the gain with its 95 % interval,
and the verdict of `tb-dlprof try` over eight steps. Then all is switched off, the state is set back, and parameters,
states of the optimizer and four further steps are compared with what they were before, bit by bit.
DIRECTORY/captured_and_fp8.json has the rows.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.switching import Switcher
from tb_dlprof_plugin.trial.statistics import LEAST_QUADS, gain
from tb_dlprof_plugin.trial.verdict import compare

_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
_CHECKED, _MOST_QUADS = 8, 12
_GRAPH, _FP8 = "optimizer_cuda_graph", "fp8_products"


class Block(nn.Module):
    """Of a GPT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (batch, words, width)."""
        query, key, value = self.qkv(self.norm(x)).unflatten(-1, (3, -1, 64)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))  # type: ignore[no-any-return]


def perceptron(width: int, layers: int) -> nn.Module:
    """Layers with a residual each."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + nn.functional.gelu(self.linear(self.norm(x)))

    return nn.Sequential(*(Layer() for _ in range(layers)))


@dataclass(frozen=True)
class Subject:
    """A training; remedies are measured on top of ``base``."""

    name: str
    model: Callable[[], nn.Module]
    shape: tuple[int, ...]
    base: tuple[str, ...]
    remedies: tuple[str, ...]
    steps: int
    fused: bool = False


SUBJECTS = (
    Subject("gpt", lambda: nn.Sequential(*(Block(768) for _ in range(12))), (4, 256, 768), ("bf16_autocast",),
            ("fused_optimizer", _GRAPH), 5),
    Subject("narrow", lambda: perceptron(256, 150), (64, 256), (), ("fused_optimizer", _GRAPH), 5),
    Subject("fused", lambda: perceptron(256, 150), (64, 256), (), (_GRAPH,), 5, fused=True),
    Subject("wide", lambda: perceptron(8192, 4), (8192, 8192), ("bf16_autocast",), (_FP8,), 3),
    Subject("gpt_wide", lambda: nn.Sequential(*(Block(2048) for _ in range(4))), (8, 1024, 2048), ("bf16_autocast",),
            (_FP8, _GRAPH), 3),
)  # fmt: skip
_TINY = (Subject("tiny", lambda: perceptron(32, 3), (8, 32), (), ("fused_optimizer",), 2),)


class Measured:
    """One subject with its switcher."""

    def __init__(self, subject: Subject) -> None:
        torch.manual_seed(0)
        self.subject = subject
        self.model = subject.model().to(_DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True if subject.fused else None)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10_000)
        self.switcher = Switcher(
            lambda: [self.model], lambda: [self.optimizer], lambda: [self.schedule], hooks=TrialHooks()
        )

    def step(self) -> None:
        """One step, of a batch that the random generator gives."""
        self.optimizer.zero_grad()
        x = torch.randn(self.subject.shape, device=_DEVICE)
        (self.model(x) - x.roll(1, -1)).square().mean().backward()
        self.optimizer.step()
        self.schedule.step()

    def done(self, work: Generator[None, None, tuple[str, Any]]) -> Any:
        """The answer of the switcher's work, with the steps that it needs."""
        while True:
            try:
                next(work)
            except StopIteration as ended:
                return ended.value[1]
            self.step()

    def state(self) -> list[Any]:
        """All that a checkpoint has."""
        tensors = [one.detach().clone() for one in (*self.model.parameters(), *self.model.buffers())]
        for state in self.optimizer.state.values():
            tensors += [one.clone() for _, one in sorted(state.items())]
        groups = [{key: one for key, one in group.items() if key != "params"} for group in self.optimizer.param_groups]
        return [tensors, groups, self.schedule.state_dict(), [one.device.type for one in tensors]]

    def rows(self, until_s: float) -> list[dict[str, Any]]:
        """One for each remedy, and one for the state afterwards."""
        subject, done, switcher = self.subject, self.done, self.switcher
        for _ in range(4):
            self.step()
        first, others, again = (done(switcher.check((), seed, _CHECKED)).checks for seed in (0, 1, 0))
        before = self.state()
        further = [done(switcher.check((), 0, 4)).checks]
        of_base = done(switcher.check(subject.base, 0, _CHECKED)).checks
        rows = []
        for number, name in enumerate(subject.remedies):
            names = (*subject.base, name)
            ready = done(switcher.check(names, 0, _CHECKED))
            row: dict[str, Any] = {"subject": subject.name, "remedy": name, "base": subject.base}
            row |= {"failed": ready.failed, "no_effect": ready.no_effect.get(name, "")}
            for against, checks in (("script", first), ("base", of_base)):
                same = compare(checks, ready.checks, (others,), repeated=again)
                row[f"as_{against}"] = f"{same.verdict}: {same.detail}"
            share = (until_s - time.monotonic()) / (len(subject.remedies) - number)
            ends = time.monotonic() + share
            ratios: list[float] = []
            step_s: list[float] = []
            while len(ratios) < _MOST_QUADS and not row["failed"]:
                if len(ratios) >= LEAST_QUADS and time.monotonic() > ends:
                    break
                times = []
                for on in (subject.base, names, names, subject.base):
                    block = done(switcher.block(on, subject.steps))
                    times.append(block.seconds / block.steps)
                    row["failed"] = row["failed"] or block.failed
                ratios.append(math.log((times[1] + times[2]) / (times[0] + times[3])))
                step_s.append((times[0] + times[3]) / 2)
            found = gain(ratios)
            row |= {
                "step_ms": round(1e3 * sorted(step_s)[len(step_s) // 2], 3) if step_s else None,
                "gain_percent": round(found.percent, 2), "interval": [round(found.low, 2), round(found.high, 2)],
                "quads": found.quads,
            }  # fmt: skip
            rows.append(row)
        switcher.off()
        switcher.restore()
        after = self.state()
        further.append(done(switcher.check((), 0, 4)).checks)
        alike = [torch.equal(one, other) for one, other in zip(before[0], after[0], strict=True)]
        rows.append(
            {
                "subject": subject.name, "state": f"{sum(alike)} of {len(alike)} tensors equal to the bit",
                "groups and schedule": before[1:] == after[1:], "further steps": further[0] == further[1],
                "steps repeat": first == again,
            }
        )  # fmt: skip
        return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--deadline", type=float, default=45.0, help="seconds")
    parser.add_argument("--tiny", action="store_true", help="a model for the CPU alone")
    given = parser.parse_args()
    began = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    subjects = _TINY if given.tiny else SUBJECTS
    for number, subject in enumerate(subjects):
        now = time.monotonic()
        try:
            rows += Measured(subject).rows(now + (began + given.deadline - now) / (len(subjects) - number))
        except Exception as error:
            rows.append({"subject": subject.name, "error": f"{type(error).__name__}: {error}"[:300]})
        if _DEVICE == "cuda":
            torch.cuda.empty_cache()
        (given.out / "captured_and_fp8.json").write_text(json.dumps(rows, indent=1))
    for row in rows:
        print(row)
    print(f"{time.monotonic() - began:.0f} s, torch {torch.__version__}")


if __name__ == "__main__":
    main()
