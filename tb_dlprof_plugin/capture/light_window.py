"""The light window: a few steps recorded with GPU activities and CUDA calls alone.

The CPU runs as fast as without a profiler, so its timeline is that of the plain training; its kernels are attributed by
the full window. Nothing here raises: after a failure there is no light window.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from tb_dlprof_plugin.capture.analysis_job import LightTrace
from tb_dlprof_plugin.capture.export import TraceExportError, export_trace, remove
from tb_dlprof_plugin.capture.profiler_turn import ProfilerTurn
from tb_dlprof_plugin.capture.warn import probe

_ACTIVITIES = [ProfilerActivity.CUDA]


def light_is_possible() -> bool:
    """Whether a GPU is in use."""
    return bool(torch.cuda.is_initialized() and torch.autograd.kineto_available())


def light_would_say_more(activities: Collection[ProfilerActivity]) -> bool:
    """Whether a full window with these activities slows the CPU down, and records the GPU's as well."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} <= set(activities)


class LightRecording:
    """One light window: `prepare`, `begin`, a `boundary` after each step but the last, then `finish`."""

    def __init__(self) -> None:
        self._profiler: Any = None
        self._state = "idle"
        self._turn = ProfilerTurn(self._lose)
        self._boundary_unix_ns: list[int] = []

    @property
    def running(self) -> bool:
        """Whether it records or warms up, or has not been ended yet."""
        return self._state != "idle"

    def prepare(self) -> None:
        """Begin to warm up, unless another profiler runs."""
        if self.running:
            return
        from torch.profiler.profiler import _KinetoProfile

        self._turn.watch()
        self._boundary_unix_ns = []
        try:
            if self._turn.is_free:
                profiler = _KinetoProfile(activities=_ACTIVITIES)
                with self._turn.using(profiler):
                    profiler.prepare_trace()
                self._profiler, self._state = profiler, "warm"
                return
        except Exception:
            probe(self._turn.end)
        self._turn.leave()

    def begin(self) -> None:
        """The first step begins."""
        if self._state != "warm":
            return
        try:
            with self._turn.using(self._profiler):
                self._profiler.start_trace()
            self._state = "live"
            self.boundary()
        except Exception:
            self.drop()

    def boundary(self) -> None:
        """A step ended."""
        if self._state == "live":
            self._boundary_unix_ns.append(time.time_ns())

    def finish(self, path: str) -> LightTrace | None:
        """The last step ended: write the trace. None if that failed; no file is left then."""
        if self._state != "live":
            self.drop()
            return None
        self.boundary()
        profiler, self._profiler, self._state = self._profiler, None, "idle"
        try:
            with self._turn.using(profiler):
                profiler.stop_trace()
            export_trace(profiler, path)
        except TraceExportError:
            return None
        except Exception:
            remove(path)
            return None
        finally:
            self._turn.leave()
        return LightTrace(path, self._boundary_unix_ns)

    def drop(self) -> None:
        """End without a trace."""
        if self._state == "idle":
            return
        probe(self._turn.end)
        self._profiler = None
        self._state = "lost" if self._turn.is_stranded else "idle"
        self._turn.leave()

    def _lose(self) -> None:
        """Another profiler took the turn."""
        self._profiler, self._state = None, "lost"
