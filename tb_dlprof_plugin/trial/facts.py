"""What is known of a training before a remedy is tried."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_dlprof_plugin.capture.facts.machine import multiplies_bf16

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.protocol import Ready


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """Facts of the baseline's process.

    Attributes:
        torch_version: such as (2, 11); () where unknown.
        cuda: whether the script used a GPU; None where unknown.
        compute_capability: of that GPU, such as (9, 0); None on the CPU or where unknown.
        world_size: ranks of the training.
        cpu_count: CPUs that the processes may use.
        free_memory_bytes: of the GPU, while the baseline holds its own; None on the CPU or where unknown.
        peak_memory_bytes: the most that the baseline allocated on the GPU; None on the CPU or where unknown.
        repeats: whether most parameters are in blocks that are alike.
        cpu_multiplies_bf16: whether the CPU has instructions for that.
        step_ms: of the baseline; None where unknown.
    """

    torch_version: tuple[int, ...] = ()
    cuda: bool | None = None
    compute_capability: tuple[int, int] | None = None
    world_size: int = 1
    cpu_count: int = 1
    free_memory_bytes: int | None = None
    peak_memory_bytes: int | None = None
    repeats: bool = False
    cpu_multiplies_bf16: bool = False
    step_ms: float | None = None


def facts_of(ready: Ready, step_ms: float) -> TrialFacts:
    """What the baseline's first rank says, with the time of its step."""
    return TrialFacts(
        torch_version=tuple(int(one) for one in re.findall(r"\d+", ready.torch_version.split("+")[0])[:2]),
        cuda=ready.cuda,
        compute_capability=ready.compute_capability,
        world_size=ready.world_size,
        cpu_count=ready.cpu_count,
        free_memory_bytes=ready.free_memory_bytes,
        peak_memory_bytes=ready.peak_bytes,
        repeats=ready.repeats,
        cpu_multiplies_bf16=multiplies_bf16(),
        step_ms=step_ms,
    )
