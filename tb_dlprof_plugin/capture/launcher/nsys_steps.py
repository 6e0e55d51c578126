"""Under Nsight Systems: counts a training's iterations, times some of them, and has nsys record those asked for.

nsys waits for cudaProfilerStart: until then, and after cudaProfilerStop, it costs the training nothing that could be
measured, so that the steps before and after are those without a profiler. An iteration ends with an optimizer's step.
"""

from __future__ import annotations

import atexit
import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import emit_nvtx
from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from tb_dlprof_plugin.capture.baseline_timer import StepTimer
from tb_dlprof_plugin.capture.facts.identity import rank_and_world_size
from tb_dlprof_plugin.capture.launcher.iteration_window import IterationWindow
from tb_dlprof_plugin.capture.launcher.protocol import Phase, ProcessStatus, RunRequest
from tb_dlprof_plugin.capture.launcher.step_clock import StepClock
from tb_dlprof_plugin.capture.warn import probe, warn

_TIMED_BEFORE = 40
"""Iterations before the recording that are timed, at most."""
_TIMED_AFTER, _TIMED_AFTER_S = 40, 6.0
"""After it: so many, or so many as end within these seconds."""
_COLD = 2
"""First iterations that are not timed: they load kernels and reserve memory."""
_SETTLE_S = 1.0


class NsysSteps:
    """The counter of one process.

    Args:
        request: which iterations.
        folder: where the status goes.
    """

    def __init__(self, request: RunRequest, folder: Path) -> None:
        # nsys records a number of iterations, whatever time they take.
        window = IterationWindow(dataclasses.replace(request, duration_s=None), least=1)
        self._first, self._last = window.first, window.last
        self._folder = folder
        self._status = ProcessStatus(pid=os.getpid(), starts_at=self._first)
        self._clock = StepClock(lambda number: self._guarded(lambda: self._on_step(number)))
        self._timer = StepTimer()
        self._since_s = 0.0
        self._timed = False
        self._ranges: Any = None
        self._mark: Any = None
        self._hook: Any = None

    def begin(self) -> None:
        """Install the hook in this process."""
        self._hook = register_optimizer_step_post_hook(self._after_step)
        atexit.register(self.end)
        self._status.write(self._folder)

    def end(self) -> None:
        """The process ends. Never raises."""
        if os.getpid() != self._status.pid:
            return
        self._guarded(self._finish)
        self._status.iterations, self._status.ended = self._clock.number, True
        self._status.write(self._folder)

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not is_compiling() and os.getpid() == self._status.pid:
            self._clock.step(optimizer)

    def _on_step(self, number: int) -> None:
        """An iteration has ended, and the one of this number begins."""
        status = self._status
        if status.phase == "watching":
            status.phase = "waiting"
            status.write(self._folder)
        if status.phase == "recorded":
            self._timer.mark()
            if self._timer.steps >= _TIMED_AFTER or time.monotonic() - self._since_s > _TIMED_AFTER_S:
                self._finish()
        elif status.phase == "recording":
            self._end_iteration()
            if number > self._last:
                self._stop()
            else:
                self._begin_iteration()
        else:
            self._time(number)
            if number == self._first:
                self._start()

    def _time(self, number: int) -> None:
        if self._timed:
            self._timer.mark()
        elif max(_COLD, self._first - _TIMED_BEFORE) <= number < self._first:
            self._timer.begin()
            self._timed = True

    def _start(self) -> None:
        torch.cuda.synchronize()
        self._status.before_ns = self._timer.durations_ns()
        self._timer.new_cycle()
        self._status.rank, self._status.world_size = rank_and_world_size()
        torch.cuda.cudart().cudaProfilerStart()
        self._ranges = emit_nvtx(record_shapes=True)
        self._ranges.__enter__()
        self._status.phase, self._status.first = "recording", self._first
        self._status.recording_since_s = time.time()
        self._status.write(self._folder)
        self._begin_iteration()

    def _begin_iteration(self) -> None:
        # Not pushed: ranges of the optimizer's step, in which this runs, are open.
        self._mark = torch.cuda.nvtx.range_start(f"ProfilerStep#{self._clock.number}")
        self._status.last = self._clock.number

    def _end_iteration(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            torch.cuda.nvtx.range_end(mark)

    def _stop(self) -> None:
        ranges, self._ranges = self._ranges, None
        ranges.__exit__(None, None, None)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()
        self._said("recorded")
        self._since_s = time.monotonic()
        self._timer.begin()

    def _finish(self) -> None:
        """End what goes on, and count no more."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        if self._status.phase == "recording":
            self._end_iteration()
            self._status.last = max(self._first, self._clock.number - 1)
            self._stop()
        elif self._status.phase == "recorded" and not self._status.after_ns:
            until = time.monotonic() + _SETTLE_S
            while not self._timer.settled() and time.monotonic() < until:
                time.sleep(0.001)
            self._status.after_ns = self._timer.durations_ns()
        self._status.write(self._folder)

    def _said(self, phase: Phase) -> None:
        self._status.phase = phase
        self._status.write(self._folder)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            if self._hook is not None:
                self._hook.remove()
                self._hook = None
            if self._ranges is not None:
                probe(lambda: self._ranges.__exit__(None, None, None))
                self._ranges = None
            if self._status.phase != "recorded":
                self._status.said = f"{type(error).__name__}: {error}"
                self._said("failed")
                warn(f"the iterations are not recorded: {self._status.said}")
