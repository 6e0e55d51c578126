"""One recording: a `ProfileSession` that the recorder steps, and whose analysis ``tb-dlprof run`` waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerAction, ProfilerActivity

from tb_dlprof_plugin.capture import process_pool
from tb_dlprof_plugin.capture.handler import TraceHandler
from tb_dlprof_plugin.capture.launcher.protocol import Analysis
from tb_dlprof_plugin.capture.modules import ModuleRanges
from tb_dlprof_plugin.capture.session import ProfileSession
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts

_OPTIONS: dict[str, Any] = {"record_shapes": True}
_SIMPLE_OPTIONS: dict[str, Any] = {"activities": [ProfilerActivity.CUDA], "record_shapes": False}


class Handler(TraceHandler):
    """A handler with a fixed rank and world size: at the process' end torch.distributed may be shut down."""

    world_size = 1

    @property
    def loader_facts(self) -> DataLoaderFacts | None:
        """Of the training's DataLoader."""
        return self._loader_facts

    @loader_facts.setter
    def loader_facts(self, facts: DataLoaderFacts | None) -> None:
        self._loader_facts = facts

    def _facts(self, prof: Any, cycle: int, rank: int, world_size: int) -> RunFacts:
        return super()._facts(prof, cycle, rank, self.world_size)


class Ranges(ModuleRanges):
    """Module ranges that report each call from outside the model.

    Args:
        on_call: called with the module before its range begins; must not raise.
    """

    def __init__(self, model: nn.Module, on_call: Callable[[nn.Module], None]) -> None:
        super().__init__(model)
        self._on_call = on_call

    def open(self, hook: Any, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Begin a range in this thread."""
        if not self.here.stack:
            self._on_call(module)
        super().open(hook, module, args, kwargs)


class Recording(ProfileSession):
    """Warms up until `live` is set, then records until `finish`.

    Args:
        handler: of the traces.
        ranges: the module ranges; None records none.
        iteration: the number of the iteration that begins with it.
        simple: record GPU kernels only.
        memory: record each allocation.
    """

    def __init__(
        self, handler: TraceHandler, ranges: Ranges | None, iteration: int, simple: bool, memory: bool
    ) -> None:
        options = dict(_SIMPLE_OPTIONS) if simple else {**_OPTIONS, "profile_memory": memory}
        super().__init__(handler, None, self._plan, options, wait=False)
        handler.ranges = ranges
        self.live = False
        self._first_number = iteration

    @property
    def failed(self) -> bool:
        """Whether the profiler could not run; a warning gave the reason."""
        return self._failed

    def next_step(self, number: int) -> None:
        """Iteration ``number`` begins."""
        if self.profiler is not None:
            self.profiler.step_num = number - 1
        self.step()

    def pause(self) -> None:
        """Until the next `next_step`, nothing belongs to an iteration."""
        self._guarded(lambda: self._end_annotation(always=True))

    def finish(self, goes_on: bool) -> list[Analysis]:
        """Write the trace and start its analysis; the analyses to wait for, empty if that failed.

        Args:
            goes_on: steps that come after it are going to be measured, up to `TraceHandler.complete`.
        """
        self.handler.goes_on = lambda *_: goes_on
        self._interrupted = True  # suppresses the warning about a recording without a trace
        self.stop(wait=False)
        running, self.handler._workers = self.handler._workers, []
        return [found for worker in running if (found := probe(lambda worker=worker: _hand_over(worker))) is not None]  # type: ignore[misc]

    def drop(self) -> None:
        """End without a trace."""
        self._interrupted = True
        self.live = False
        self._dropped = True
        self.stop(wait=False)

    _dropped = False

    def _plan(self, step: int) -> ProfilerAction:
        return ProfilerAction.RECORD if self.live else ProfilerAction.WARMUP

    def _start(self) -> None:
        self._turn.watch()
        if not self._turn.is_free:
            self._fail("another profiler is already running in this process")
            return
        options = {name: value for name, value in self._options.items() if value is not None}
        self.profiler = torch.profiler.profile(schedule=self._plan, on_trace_ready=self._on_trace, **options)
        self.profiler.step_num = self._first_number
        self._sync_hooks(self._plan(self._first_number))
        with self._turn.using(self.profiler):
            self.profiler.__enter__()

    def _on_trace(self, prof: torch.profiler.profile) -> None:
        self._drop_trace = self._dropped
        super()._on_trace(prof)


def _hand_over(worker: process_pool.AnalysisProcess) -> Analysis:
    """``tb-dlprof run`` waits for it instead of the interpreter's exit."""
    process_pool._forget(worker)
    return Analysis(worker.process.pid, str(worker.folder), worker.job.trace, worker.job.final_trace)
