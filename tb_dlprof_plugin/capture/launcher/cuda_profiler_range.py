"""The script's own marks: ``torch.cuda.profiler.start()`` and ``stop()``, which DLProf's profile range went by."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.cuda.profiler as cuda_profiler


class Marks:
    """Hears of both, through ``torch.cuda.profiler`` and through ``torch.cuda.cudart()``; they do what they did before.

    Args:
        on_start: called before the profiler's start; must not raise.
        on_stop: called before its end; must not raise.
    """

    def __init__(self, on_start: Callable[[], None], on_stop: Callable[[], None]) -> None:
        self._told = {"start": on_start, "stop": on_stop}
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def start(self) -> None:
        """Begin to listen."""
        runtime = getattr(torch._C, "_cudart", None)
        for what, name in (("start", "cudaProfilerStart"), ("stop", "cudaProfilerStop")):
            self._replace(cuda_profiler, what, what)
            if runtime is not None and hasattr(runtime, name):
                self._replace(runtime, name, what)

    def stop(self) -> None:
        """Put everything back."""
        for owner, name, original, replacement in self._replaced:
            if getattr(owner, name, None) is replacement:
                setattr(owner, name, original)
        self._replaced = []

    def _replace(self, owner: Any, name: str, what: str) -> None:
        original, tell = getattr(owner, name), self._told[what]

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            # First: without a GPU the original raises, and the script's marks count all the same.
            tell()
            return original(*args, **kwargs)

        setattr(owner, name, replacement)
        self._replaced.append((owner, name, original, replacement))
