"""Uses the script's ``torch.cuda.profiler.start()`` and ``stop()`` calls as the recording range, as DLProf did."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.cuda.profiler as cuda_profiler


class ProfilerRangeHooks:
    """Wraps both calls, in ``torch.cuda.profiler`` and ``torch.cuda.cudart()``; the originals are still called.

    Args:
        on_start: called before the profiler's start; must not raise.
        on_stop: called before its end; must not raise.
    """

    def __init__(self, on_start: Callable[[], None], on_stop: Callable[[], None]) -> None:
        self._callbacks = {"start": on_start, "stop": on_stop}
        self._replaced: list[tuple[Any, str, Any, Any]] = []

    def start(self) -> None:
        """Install the wrappers."""
        runtime = getattr(torch._C, "_cudart", None)
        for what, name in (("start", "cudaProfilerStart"), ("stop", "cudaProfilerStop")):
            self._replace(cuda_profiler, what, what)
            if runtime is not None and hasattr(runtime, name):
                self._replace(runtime, name, what)

    def stop(self) -> None:
        """Restore the original functions."""
        for owner, name, original, replacement in self._replaced:
            if getattr(owner, name, None) is replacement:
                setattr(owner, name, original)
        self._replaced = []

    def _replace(self, owner: Any, name: str, what: str) -> None:
        original, callback = getattr(owner, name), self._callbacks[what]

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            # Before the original, which raises without a GPU: the script's calls count all the same.
            callback()
            return original(*args, **kwargs)

        setattr(owner, name, replacement)
        self._replaced.append((owner, name, original, replacement))
