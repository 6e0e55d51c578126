"""One seed for all random generators of a process, and an offset to the seeds that the script gives."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

_MASK = 2**32 - 1
"""numpy takes seeds of 32 bits."""


def fix_seeds(seed: int, offset: int) -> None:
    """Seed torch, `random` and numpy, where it is imported; the offset is added here and to each later seed that is a
    whole number. Called once in a process."""
    random.seed((seed + offset) & _MASK)
    torch.manual_seed((seed + offset) & _MASK)
    if "numpy" in sys.modules:
        _numpy(seed, offset)
    if offset:
        _shift(torch, "manual_seed", offset)
        _shift(torch.random, "manual_seed", offset)
        _shift(torch.cuda, "manual_seed", offset)
        _shift(torch.cuda, "manual_seed_all", offset)
        _shift(random, "seed", offset)
        if "numpy" in sys.modules:
            _shift(sys.modules["numpy"].random, "seed", offset)


def _numpy(seed: int, offset: int) -> None:
    sys.modules["numpy"].random.seed((seed + offset) & _MASK)


def _shift(owner: Any, name: str, offset: int) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def shifted(seed: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(seed, int) and not isinstance(seed, bool):
            seed = (seed + offset) & _MASK
        return original(seed, *args, **kwargs)

    setattr(owner, name, shifted)
