"""Counts the iterations of a script from outside, and records those that it was asked for.

An iteration ends with an optimizer's step, which torch tells through a hook for all optimizers; the next one begins
where the model is called next. (Not in the hook itself: it runs inside the range that torch records around the step.)
Without an optimizer each call of the model is an iteration. Until the warm-up only that one hook is there, after the
recording none.
"""

from __future__ import annotations

import collections
import enum
import multiprocessing.util
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from tb_dlprof_plugin.capture.identity import rank_and_world_size
from tb_dlprof_plugin.capture.run.first_call import FirstCall
from tb_dlprof_plugin.capture.run.iteration_end import IterationEnd
from tb_dlprof_plugin.capture.run.marks import Marks
from tb_dlprof_plugin.capture.run.nvtx import IdleNvtx
from tb_dlprof_plugin.capture.run.window import Window
from tb_dlprof_plugin.capture.unprofiled import UnprofiledSteps
from tb_dlprof_plugin.capture.warn import probe, warn
from tb_dlprof_plugin.storage.run_files import Order, Report

if TYPE_CHECKING:
    # Imported where a recording begins: most processes that import torch train nothing.
    from tb_dlprof_plugin.capture.run.alive import Alive
    from tb_dlprof_plugin.capture.run.door import Door
    from tb_dlprof_plugin.capture.run.recording import Recording

_OPTIMIZER_STEPS, _CALLS = "optimizer steps", "calls of the model"
_SKIPPED_CALLS = 5
"""Without an optimizer, but with gradients: perhaps a trial call before the training begins, perhaps a training that
updates its parameters itself."""
_SKIPPED_EVALUATIONS = 50
"""With an optimizer, but evaluating: mostly a look at the model before the training begins."""
_RECORDED_CALLS = 100
_ENOUGH_ITERATIONS = 3
"""An evaluation that comes after so many recorded iterations ends the recording, unless its end was asked for; else it
belongs to none of them."""
_LONGEST_PAUSE_S = 30.0
_MOST_CALLS_IN_PAUSE = 100
_MOST_CALLS = 1000
"""Of one iteration that takes longer than `_LONGEST_PAUSE_S` as well: the memory must not fill."""

_Mode = tuple[bool, bool]
"""Of a call: whether the module trains, whether gradients are recorded."""


class _Phase(enum.Enum):
    IDLE = "nothing was seen yet"
    WAIT = "iterations are counted"
    DUE = "the warm-up begins with the next iteration"
    WARM = "the profiler warms up"
    ACTIVE = "the profiler records"
    REST = "an evaluation was recorded; a training would be, too"
    OFF = "all is done"


class Recorder:
    """Of one process.

    Args:
        order: what to record.
        folder: where reports go.
    """

    def __init__(self, order: Order, folder: Path) -> None:
        self._order, self._folder = order, folder
        self._report = Report(pid=os.getpid())
        self._phase = _Phase.IDLE
        self._window = Window(order)
        self._steps_count = True
        self._iteration = 0
        self._ends = IterationEnd()
        self._optimizers: dict[int, weakref.ref[Optimizer]] = {}
        self._called: Callable[[], nn.Module | None] = _nothing
        self._thread: int | None = None
        # An optimizer has stepped, and the model was not called since.
        self._pending = False
        # No call of the model is seen: iterations begin with the optimizer's step.
        self._without_calls = False
        self._skip_call = False
        self._modes: collections.Counter[_Mode] = collections.Counter()
        self._usual: _Mode | None = None
        self._aside = False
        self._gaps = 0
        self._calls_here = 0
        self._here_since_s = 0.0
        self._cycle = 0
        self._session: str | None = None
        self._door: Door | None = None
        self._model: nn.Module | None = None
        self._loader: Any = None
        self._recording: Recording | None = None
        self._own_profilers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._unprofiled = UnprofiledSteps()
        self._first_call = FirstCall(lambda module: self._quietly(self._on_first_call, module))
        self._marks = Marks(lambda: self._quietly(self._on_mark), lambda: self._quietly(self._on_end_mark))
        self._nvtx = IdleNvtx()
        self._handle: Any = None

    def begin(self) -> None:
        """Watch this process."""
        self._handle = register_optimizer_step_post_hook(self._after_step)
        self._first_call.start()
        self._nvtx.start()
        if self._order.between_marks:
            self._marks.start()
        self._report.write(self._folder)

    def end(self) -> None:
        """The process ends: save what was recorded. Never raises."""
        if self._report.pid == os.getpid() and not self._report.ended:
            self._quietly(self._end)

    def forked(self) -> None:
        """This is a child now: mostly a worker of a DataLoader, but perhaps a rank of a training."""
        if self._in(_Phase.DUE, _Phase.WARM, _Phase.ACTIVE):
            # Its profiler is a copy that records nothing.
            self._recording = None
            self._off()
        self._report = Report(pid=os.getpid())
        self._thread = None

    # ---- what is heard

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            self._quietly(self._on_step, optimizer)

    def _on_step(self, optimizer: Optimizer) -> None:
        if self._in(_Phase.OFF):
            return
        known = self._optimizers.get(id(optimizer))
        if known is None or known() is not optimizer:
            self._optimizers[id(optimizer)] = weakref.ref(optimizer)
        if not self._steps_count:
            self._count_steps()
        if self._thread is None:
            self._thread = threading.get_ident()
        if not self._ends.ends(optimizer):
            return
        self._iteration += 1
        if self._in(_Phase.IDLE):
            self._wait()
        if self._in(_Phase.WAIT):
            self._unprofiled.mark()
            if not self._order.between_marks and self._window.due(self._iteration):
                self._pending = True
                self._prepare()
        elif threading.get_ident() == self._thread and (self._pending or self._without_calls):
            if self._aside:
                self._usual = None
            else:
                self._without_calls = True
            self._pending = False
            self._next_iteration()
        else:
            self._pending = True

    def _on_first_call(self, module: nn.Module) -> None:
        self._called = weakref.ref(module)
        self._thread = threading.get_ident()
        if not self._in(_Phase.IDLE) or self._order.between_marks:
            return
        alive = self._look()
        if self._is_profiled(alive):
            return
        trains = module.training or torch.is_grad_enabled()
        if alive.optimizers and trains:
            self._modes[(module.training, torch.is_grad_enabled())] += 1
            self._wait()
            if self._window.due(0):
                self._prepare(alive)
                self._next_iteration()
            return
        self._steps_count = False
        self._report.unit = _CALLS
        skipped = _SKIPPED_EVALUATIONS if alive.optimizers else _SKIPPED_CALLS if trains else 0
        self._window = Window(self._order, skipped, _RECORDED_CALLS)
        self._wait()
        if self._window.due(0):
            # The hooks that are put on now hear of this call as well.
            self._skip_call = True
            self._prepare(alive)
            self._next_iteration()
        else:
            self._iteration = -1
            self._open_door()

    def _on_call(self, module: nn.Module) -> None:
        """A module is called from outside."""
        if self._thread is None:
            self._thread = threading.get_ident()
        if self._in(_Phase.OFF) or threading.get_ident() != self._thread:
            return
        self._calls_here += 1
        if not self._steps_count:
            self._count_call(module)
            return
        if self._in(_Phase.ACTIVE) and self._is_too_long():
            self._close()
        if not self._pending or self._in(_Phase.OFF):
            return
        mode = (module.training, torch.is_grad_enabled())
        if self._in(_Phase.ACTIVE) and self._usual is not None and mode != self._usual:
            self._step_aside()
            return
        if self._in(_Phase.WARM) and self._iteration >= self._window.first:
            most = self._modes.most_common(1)
            if most and most[0][1] > 1 and mode != most[0][0]:
                # An evaluation: the recording begins with the training that follows.
                return
        if self._in(_Phase.DUE, _Phase.WARM):
            self._modes[mode] += 1
        self._pending = False
        self._next_iteration()

    def _count_call(self, module: nn.Module) -> None:
        if module is not self._called():
            return
        if self._skip_call:
            self._skip_call = False
            return
        self._iteration += 1
        if self._in(_Phase.WAIT) and self._window.due(self._iteration):
            self._prepare()
        if not self._in(_Phase.WAIT):
            self._next_iteration()

    def _on_mark(self) -> None:
        if not self._in(_Phase.IDLE, _Phase.WAIT):
            return
        self._wait()
        self._thread = threading.get_ident()
        self._window.open_now(self._iteration)
        self._prepare()
        if self._in(_Phase.DUE):
            self._next_iteration()

    def _on_end_mark(self) -> None:
        if self._in(_Phase.ACTIVE):
            self._close()

    # ---- what is done

    @property
    def _seen(self) -> int:
        # A call begins an iteration, a step ends one.
        return self._iteration + (0 if self._steps_count else 1)

    def _in(self, *phases: _Phase) -> bool:
        return self._phase in phases

    def _wait(self) -> None:
        self._phase = _Phase.WAIT
        self._report.phase = "waiting"
        self._report.starts_at = self._window.first
        self._report.write(self._folder)

    def _count_steps(self) -> None:
        """What looked like an evaluation becomes a training."""
        if self._recording is not None:
            self._recording.drop()
        self._let_go()
        self._steps_count, self._iteration = True, 0
        self._window = Window(self._order)
        self._report.unit = _OPTIMIZER_STEPS
        self._wait()

    def _prepare(self, alive: Alive | None = None) -> None:
        """Find the models, and hear of their next call."""
        from tb_dlprof_plugin.capture.run.alive import training_loader
        from tb_dlprof_plugin.capture.run.roots import as_one, choose_roots, name_of

        alive = alive or self._look()
        if self._is_profiled(alive):
            return
        if not self._order.between_marks:
            self._window.open(self._iteration)
        if self._window.missed:
            self._leave("failed", f"iteration {self._iteration} had begun when the delay was over, and --iter-stop is "
                        f"{self._window.last}: give a shorter --delay or a later --iter-stop")  # fmt: skip
            return
        if self._order.simple and not torch.cuda.is_available():
            self._leave("failed", "--mode simple records GPU kernels, and torch sees no GPU here: leave it out")
            return
        stepped = [one for known in self._optimizers.values() if (one := known()) is not None]
        roots = choose_roots(alive.modules, stepped or alive.optimizers, self._called())
        self._model = as_one(roots)
        self._loader = probe(lambda: training_loader(alive))
        self._report.model = "" if self._model is None else name_of(self._model)
        self._phase = _Phase.DUE
        self._without_calls = not self._open_door()

    def _open_door(self) -> bool:
        """Whether calls of the model will be heard of."""
        from tb_dlprof_plugin.capture.run.door import Door

        self._close_door()
        self._door = Door(lambda module: self._quietly(self._on_call, module))
        if not self._steps_count:
            called = self._called()
            if called is not None:
                self._door.install_on(called)
            return called is not None
        # GPU kernels alone need no exact beginning, and hooks cost time.
        return self._model is not None and not self._order.simple and self._door.install(self._model)

    def _close_door(self) -> None:
        if self._door is not None:
            self._door.remove()
            self._door = None

    def _next_iteration(self) -> None:
        self._calls_here, self._here_since_s, self._aside = 0, time.monotonic(), False
        if self._in(_Phase.DUE):
            self._begin_recording()
        elif self._in(_Phase.WARM):
            self._step(live=self._iteration >= self._window.first)
        elif self._in(_Phase.ACTIVE):
            if self._window.over(self._iteration):
                self._close()
            else:
                self._step(live=True)

    def _begin_recording(self) -> None:
        from tb_dlprof_plugin.capture.run.recording import Handler, Ranges, Recording

        report = self._report
        report.rank, report.world_size = rank_and_world_size()
        if report.world_size > 1:
            # The ranks of one training; other processes with the same rank are trainings of their own.
            self._session = self._order.session
        handler = Handler(
            self._order.run_directory,
            use_gzip=True,
            model=self._model,
            dataloader=self._loader,
            session=self._session,
            rank=report.rank,
        )
        handler.world_size = report.world_size
        handler.cycle, handler.unprofiled = self._cycle, self._unprofiled
        ranges = None
        if self._model is not None and not self._order.simple:
            ranges = Ranges(self._model, lambda module: self._quietly(self._on_call, module))
        self._loader = None
        self._recording = Recording(handler, ranges, self._iteration, self._order.simple)
        live = self._recording.live = self._iteration >= self._window.first
        self._recording.start()
        if self._recording.failed:
            self._leave("failed", "the profiler did not start")
            return
        self._own_profilers.add(self._recording.profiler)
        self._phase = _Phase.WARM
        if live:
            self._is_live()
        else:
            # In front of the module ranges: the first recorded call must not have begun when the recording begins.
            self._open_door()

    def _step(self, live: bool) -> None:
        assert self._recording is not None
        self._recording.live = live
        self._recording.next_step(self._iteration + self._gaps)
        if self._recording.failed:
            self._leave("failed", "the profiler did not start")
        elif live and self._in(_Phase.WARM):
            self._is_live()

    def _is_live(self) -> None:
        assert self._recording is not None
        by_door = self._door is not None and self._in(_Phase.WARM) and self._recording.handler.ranges is not None
        if by_door:
            # From here on the module ranges say it, beginning with the call that is under way.
            self._skip_call = self._skip_call or not self._steps_count
            self._close_door()
        self._phase = _Phase.ACTIVE
        self._window.begin()
        if multiprocessing.parent_process() is not None:
            # Forked ones end without the functions that were registered with `atexit`.
            multiprocessing.util.Finalize(None, self.end, exitpriority=0)
        self._usual = self._modes.most_common(1)[0][0] if self._modes else None
        report = self._report
        report.phase, report.first, report.recording_since_s = "recording", self._window.first, time.time()
        report.write(self._folder)

    def _is_too_long(self) -> bool:
        seconds = time.monotonic() - self._here_since_s
        if self._aside:
            return seconds > _LONGEST_PAUSE_S or self._calls_here > _MOST_CALLS_IN_PAUSE
        return seconds > _LONGEST_PAUSE_S and self._calls_here > _MOST_CALLS

    def _step_aside(self) -> None:
        """An evaluation begins between two iterations."""
        if self._aside or self._recording is None:
            return
        if self._iteration - self._window.first >= _ENOUGH_ITERATIONS and not self._window.explicit:
            self._close()
            return
        self._recording.pause()
        # Iterations whose numbers follow each other share their boundary.
        self._gaps += 1
        self._aside, self._calls_here, self._here_since_s = True, 0, time.monotonic()

    def _close(self) -> None:
        """Write what was recorded."""
        assert self._recording is not None
        last = self._iteration - (1 if self._pending or self._window.over(self._iteration) else 0)
        recording, self._recording = self._recording, None
        analyses = recording.finish()
        # A second recording is a cycle of the same training.
        self._session = recording.handler.session
        report = self._report
        report.used_gpu = bool(probe(torch.cuda.is_initialized))
        if analyses:
            self._cycle += 1
            report.phase = "recorded"
            report.last = max(self._window.first, last)
            report.analyses = [*report.analyses, *analyses]
        else:
            report.phase, report.said = (
                "failed",
                "the trace was not written; a warning of the script's process says why",
            )
        self._let_go()
        if self._order.between_marks and analyses:
            self._phase = _Phase.WAIT
        elif not self._steps_count:
            self._phase = _Phase.REST
        else:
            self._off()
        report.iterations = self._seen
        report.write(self._folder)

    def _let_go(self) -> None:
        self._close_door()
        self._recording = self._model = self._loader = None
        self._pending = self._aside = self._skip_call = False

    def _look(self) -> Alive:
        from tb_dlprof_plugin.capture.run.alive import look

        return look()

    def _is_profiled(self, alive: Alive) -> bool:
        """Whether the script profiles itself; it is left alone then."""
        if any(profiler not in self._own_profilers for profiler in alive.profilers):
            self._leave("left_alone", "it uses torch.profiler itself")
            return True
        return False

    def _leave(self, phase: Any, said: str) -> None:
        self._report.phase, self._report.said = phase, said
        if self._recording is not None and not self._recording.failed:
            self._recording.drop()
        self._off()
        self._report.write(self._folder)

    def _off(self) -> None:
        self._phase = _Phase.OFF
        self._let_go()
        self._first_call.stop()
        self._marks.stop()
        self._nvtx.stop()
        self._optimizers.clear()
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _end(self) -> None:
        if self._recording is not None:
            if self._in(_Phase.ACTIVE):
                self._close()
            else:
                self._recording.drop()
        report = self._report
        report.iterations = self._seen
        report.used_gpu = report.used_gpu or bool(probe(torch.cuda.is_initialized))
        self._off()
        report.ended = True
        report.write(self._folder)

    def _quietly(self, action: Callable[..., None], *arguments: Any) -> None:
        try:
            action(*arguments)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            probe(lambda: self._leave("failed", why))
            warn(f"The script goes on without a profile: {why}.")


def _nothing() -> None:
    return None
