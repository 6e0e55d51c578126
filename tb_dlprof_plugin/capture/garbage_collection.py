"""Marks full collections of Python's garbage collector in the recording: they stop the thread that launches.

A collection of the younger generations takes microseconds and is not marked.
"""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import torch.autograd.profiler as autograd_profiler

from tb_dlprof_plugin.names.ops import GARBAGE_COLLECTION

_FULL = 2


class GarbageRanges:
    """A range around each full collection while a profiler records."""

    def __init__(self) -> None:
        self._range: Any = None

    def install(self) -> None:
        """Begin to mark collections."""
        if self._note not in gc.callbacks:
            gc.callbacks.append(self._note)

    def remove(self) -> None:
        """Mark no more collections."""
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        # Whatever fails here must not reach the training.
        with contextlib.suppress(Exception):
            if phase == "stop":
                opened, self._range = self._range, None
                if opened is not None:
                    opened.__exit__(None, None, None)
            elif info["generation"] >= _FULL and autograd_profiler._is_profiler_enabled:
                opened = autograd_profiler.record_function(GARBAGE_COLLECTION)
                opened.__enter__()
                self._range = opened
