"""What several remedies require of the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.facts import TrialFacts

_AMPERE = (8, 0)
"""Compute capability from which on Tensor Cores take TF32 and BF16 (NVIDIA A100 whitepaper)."""
_ADA = (8, 9)
"""Compute capability from which on Tensor Cores take FP8 (NVIDIA Ada architecture whitepaper)."""
_VOLTA = (7, 0)
"""Compute capability from which on there are Tensor Cores (NVIDIA V100 whitepaper)."""


def needs_gpu(facts: TrialFacts) -> str | None:
    """Why it is not tried without a GPU."""
    return "The training uses no GPU." if facts.cuda is False else None


def needs_ampere(facts: TrialFacts) -> str | None:
    """Why it is not tried on GPUs without TF32 and BF16."""
    if facts.cuda and facts.compute_capability is not None and facts.compute_capability < _AMPERE:
        return f"Compute capability {_text(facts.compute_capability)} has Tensor Cores for FP16 at most."
    return None


def needs_tensor_cores(facts: TrialFacts) -> str | None:
    """Why it is not tried on GPUs without Tensor Cores."""
    if facts.cuda and facts.compute_capability is not None and facts.compute_capability < _VOLTA:
        return f"Compute capability {_text(facts.compute_capability)} has no Tensor Cores."
    return None


def needs_fp8(facts: TrialFacts) -> str | None:
    """Why it is not tried on GPUs without FP8."""
    if facts.cuda and facts.compute_capability is not None and facts.compute_capability < _ADA:
        return f"Compute capability {_text(facts.compute_capability)} has no products in FP8."
    return None


def needs_ranks(facts: TrialFacts) -> str | None:
    """Why it is not tried in one process."""
    return "The training has one rank." if facts.world_size < 2 else None


def _text(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"
