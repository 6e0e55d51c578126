"""Counts the iterations of a script from outside, and records those that it was asked for.

An iteration ends with an optimizer's step, which torch tells through a hook for all optimizers; the next one begins
where the model is called next. (Not in the hook itself: it runs inside the range that torch records around the step.)
Without an optimizer each call of the model is an iteration. Until the warm-up only that one hook is there, after the
recording none.
"""

from __future__ import annotations

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
from torch.optim import Optimizer

from tb_dlprof_plugin.capture.around_window import OutsideSteps
from tb_dlprof_plugin.capture.cycle import LIGHT_STEPS, StepKind, kind_outside
from tb_dlprof_plugin.capture.identity import rank_and_world_size
from tb_dlprof_plugin.capture.launcher.evaluation_detector import ENOUGH_ITERATIONS, Course, mode_of
from tb_dlprof_plugin.capture.launcher.protocol import Order, Report
from tb_dlprof_plugin.capture.launcher.recording_window import Window
from tb_dlprof_plugin.capture.launcher.step_boundary import IterationEnd
from tb_dlprof_plugin.capture.launcher.training_hooks import Ears
from tb_dlprof_plugin.capture.light_window import light_is_possible
from tb_dlprof_plugin.capture.warn import probe, warn

if TYPE_CHECKING:
    # Imported where a recording begins: most processes that import torch train nothing.
    from tb_dlprof_plugin.capture.launcher.first_forward_hook import Door
    from tb_dlprof_plugin.capture.launcher.live_objects import Alive
    from tb_dlprof_plugin.capture.launcher.recording import Recording
    from tb_dlprof_plugin.capture.launcher.training_state import Subject

_OPTIMIZER_STEPS, _CALLS = "optimizer steps", "calls of the model"
_SKIPPED_CALLS = 5
"""Without an optimizer, but with gradients: perhaps a trial call before the training begins, perhaps a training that
updates its parameters itself."""
_SKIPPED_EVALUATIONS = 50
"""With an optimizer, but evaluating: mostly a look at the model before the training begins."""
_RECORDED_CALLS = 100


class _Phase(enum.Enum):
    IDLE = "nothing was seen yet"
    WAIT = "iterations are counted"
    DUE = "the light window or the warm-up begins with the next iteration"
    LIGHT = "the light window is recorded"
    WARM = "the profiler warms up"
    ACTIVE = "the profiler records"
    AFTER = "iterations after the recording are measured"
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
        # Steps of the only optimizer that need no more than to be counted, and those that were.
        self._only: int | None = None
        self._idle = self._counted = 0
        self._optimizers: dict[int, weakref.ref[Optimizer]] = {}
        self._called: Callable[[], nn.Module | None] = _nothing
        self._thread: int | None = None
        # An optimizer has stepped, and the model was not called since.
        self._pending = False
        # No call of the model is seen: iterations begin with the optimizer's step.
        self._without_calls = False
        self._skip_call = self._ending = False
        self._course = Course()
        self._cycle = 0
        self._session: str | None = None
        self._door: Door | None = None
        self._subject: Subject | None = None
        self._recording: Recording | None = None
        self._own_profilers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._outside = OutsideSteps(order.run_directory)
        # Iterations of the light window that have begun; iterations after the recording.
        self._light_steps = self._since = 0
        # The one that came last, while the iterations after it are measured.
        self._after: Recording | None = None
        self._ears = Ears(self._on_step, self._on_first_call, self._on_mark, self._on_end_mark, self._fail)

    def begin(self) -> None:
        """Watch this process."""
        self._ears.put_on(marks=self._order.between_marks)
        self._report.write(self._folder)

    def end(self) -> None:
        """The process ends: save what was recorded. Never raises."""
        if self._report.pid == os.getpid() and not self._report.ended:
            self._ears.quietly(self._end)

    def forked(self) -> None:
        """This is a child now: mostly a worker of a DataLoader, but perhaps a rank of a training."""
        if self._in(_Phase.DUE, _Phase.LIGHT, _Phase.WARM, _Phase.ACTIVE, _Phase.AFTER):
            # Its profiler is a copy that records nothing.
            self._recording = None
            self._outside = OutsideSteps(self._order.run_directory)
            self._complete_after()
            self._off()
        self._report = Report(pid=os.getpid())
        self._thread = None

    # ---- what is heard

    def _on_step(self, optimizer: Optimizer) -> None:
        # Most steps of a training end here, at the cost of a fraction of a microsecond.
        if self._idle > self._counted and id(optimizer) == self._only:
            self._counted += 1
            return
        self._catch_up()
        self._hear_step(optimizer)
        if self._in(_Phase.WAIT) and self._ends.only:
            self._only, self._idle = id(optimizer), self._window.idle(self._iteration)

    def _catch_up(self) -> None:
        """With the steps that were only counted."""
        self._iteration += self._counted
        self._ends.count(self._counted)
        self._idle = self._counted = 0

    def _hear_step(self, optimizer: Optimizer) -> None:
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
            if self._window.near(self._iteration):
                self._outside.turn(StepKind.TIMED)
            if not self._order.between_marks and self._window.due(self._iteration):
                self._pending = True
                self._prepare()
        elif threading.get_ident() == self._thread and (self._pending or self._without_calls):
            if self._course.aside:
                self._course.forget()
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
        trains = any(mode_of(module))
        self._steps_count = bool(alive.optimizers) and trains
        if self._steps_count:
            self._course.learn(mode_of(module))
        else:
            self._report.unit = _CALLS
            skipped = _SKIPPED_EVALUATIONS if alive.optimizers else _SKIPPED_CALLS if trains else 0
            self._window = Window(self._order, skipped, _RECORDED_CALLS)
        self._wait()
        if self._window.due(0):
            # The hooks that are put on now hear of this call as well.
            self._skip_call = not self._steps_count
            self._prepare(alive)
            self._next_iteration()
        elif not self._steps_count:
            self._iteration = -1
            self._open_door()

    def _on_call(self, module: nn.Module) -> None:
        """A module is called from outside."""
        if self._thread is None:
            self._thread = threading.get_ident()
        if self._in(_Phase.OFF) or threading.get_ident() != self._thread:
            return
        course = self._course
        course.count_call()
        if not self._steps_count:
            self._count_call(module)
            return
        if self._in(_Phase.ACTIVE) and course.is_too_long:
            self._close()
        if not self._pending or self._in(_Phase.OFF):
            return
        mode = mode_of(module)
        if self._in(_Phase.ACTIVE) and course.is_evaluation(mode):
            self._step_aside()
            return
        if (self._in(_Phase.LIGHT) and course.is_unlikely(mode)) or (
            self._in(_Phase.AFTER) and course.is_evaluation(mode)
        ):
            self._outside.interrupt()
            return
        if self._in(_Phase.WARM) and self._iteration >= self._window.first and course.is_unlikely(mode):
            # An evaluation: the recording begins with the training that follows.
            return
        if self._in(_Phase.DUE, _Phase.LIGHT, _Phase.WARM):
            course.learn(mode)
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
        self._catch_up()
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
        self._window.light = self._light_is_possible()
        self._report.phase = "waiting"
        self._report.starts_at = self._window.first
        self._report.write(self._folder)

    def _count_steps(self) -> None:
        """What looked like an evaluation becomes a training."""
        if self._recording is not None:
            self._recording.drop()
        self._complete_after()
        self._outside.drop()
        self._let_go()
        self._steps_count, self._iteration = True, 0
        self._window = Window(self._order)
        self._report.unit = _OPTIMIZER_STEPS
        self._wait()

    def _prepare(self, alive: Alive | None = None) -> None:
        """Find the models, and hear of their next call."""
        from tb_dlprof_plugin.capture.launcher.training_state import Subject

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
        self._subject = Subject(alive, stepped, self._called())
        self._report.model = self._subject.name
        self._phase = _Phase.DUE
        # Until the next iteration begins.
        self._outside.begin(StepKind.REST)
        self._without_calls = not self._open_door()

    def _open_door(self) -> bool:
        """Whether calls of the model will be heard of."""
        from tb_dlprof_plugin.capture.launcher.first_forward_hook import Door

        self._close_door()
        hear = self._hear
        if self._steps_count:
            # GPU kernels alone need no exact beginning, and hooks cost time.
            if self._subject is not None and not self._order.simple:
                self._door = self._subject.door(hear)
        elif (called := self._called()) is not None:
            self._door = Door(hear)
            self._door.install_on(called)
        return self._door is not None

    def _close_door(self) -> None:
        if self._door is not None:
            self._door.remove()
            self._door = None

    def _next_iteration(self) -> None:
        self._course.begin_iteration()
        if self._in(_Phase.DUE) and self._iteration + self._window.warmup < self._window.first:
            self._phase, self._light_steps = _Phase.LIGHT, 0
            self._outside.turn(StepKind.LIGHT_WARMUP)
        elif self._in(_Phase.LIGHT) and self._light_steps < LIGHT_STEPS:
            self._light_steps += 1
            self._outside.turn(StepKind.LIGHT)
        elif self._in(_Phase.DUE, _Phase.LIGHT):
            self._outside.turn(StepKind.FULL)
            self._begin_recording()
        elif self._in(_Phase.AFTER):
            self._measure_after()
        elif self._in(_Phase.WARM):
            self._step(live=self._iteration >= self._window.first)
        elif self._in(_Phase.ACTIVE):
            if self._window.over(self._iteration):
                self._close()
            else:
                self._step(live=True)

    def _begin_recording(self) -> None:
        assert self._subject is not None
        report = self._report
        report.rank, report.world_size = rank_and_world_size()
        if report.world_size > 1:
            # The ranks of one training; other processes with the same rank are trainings of their own.
            self._session = self._order.session
        self._recording = self._subject.recording(
            self._order,
            self._hear,
            iteration=self._iteration,
            session=self._session,
            cycle=self._cycle,
            rank=report.rank,
            world_size=report.world_size,
            outside=self._outside,
        )
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
        self._recording.next_step(self._iteration + self._course.gaps)
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
        self._course.settle()
        report = self._report
        report.phase, report.first, report.recording_since_s = "recording", self._window.first, time.time()
        report.write(self._folder)

    def _step_aside(self) -> None:
        """An evaluation begins between two iterations."""
        if self._course.aside or self._recording is None:
            return
        if self._iteration - self._window.first >= ENOUGH_ITERATIONS and not self._window.explicit:
            self._close()
            return
        self._recording.pause()
        self._course.step_aside()

    def _close(self) -> None:
        """Write what was recorded."""
        assert self._recording is not None
        last = self._iteration - (1 if self._pending or self._window.over(self._iteration) else 0)
        recording, self._recording = self._recording, None
        # The script is stopped where seconds were given, and between marks the next recording may begin at any time.
        goes_on = not (self._ending or self._order.between_marks or self._order.duration_s is not None)
        analyses = recording.finish(goes_on)
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
            report.phase = "failed"
            report.said = "the trace was not written; a warning of the script's process says why"
        subject = self._subject
        self._let_go()
        if self._order.between_marks and analyses:
            self._phase = _Phase.WAIT
            self._window.rest(self._iteration)
        elif goes_on and analyses:
            self._phase, self._after, self._since = _Phase.AFTER, recording, 0
            if self._outside.light_due and self._light_is_possible():
                # Its steps begin where those of the recording do.
                self._subject = subject
            self._without_calls = not self._open_door()
        else:
            self._rest()
        report.iterations = self._seen
        report.write(self._folder)

    def _measure_after(self) -> None:
        """An iteration after the recording begins."""
        outside = self._outside
        self._since += 1
        kind = kind_outside(
            self._since, None, leading=False, light_after=outside.light_due, light=self._light_is_possible()
        )
        outside.turn(kind)
        if kind is StepKind.TIMED and self._steps_count and self._door is not None:
            # A mark needs no exact beginning, and hooks cost time.
            self._close_door()
            self._without_calls = True
        if outside.after_is_over():
            self._complete_after()
            self._rest()

    def _complete_after(self) -> None:
        """No further iteration after the recording counts."""
        recording, self._after = self._after, None
        if recording is not None:
            recording.handler.complete()
            self._outside.drop()

    def _rest(self) -> None:
        """A recording is over, with all that is measured after it."""
        if self._steps_count:
            self._off()
        else:
            self._phase = _Phase.REST
            self._let_go()

    def _light_is_possible(self) -> bool:
        # Where calls of the model are all that is recorded, that is a light window itself.
        return not self._order.simple and not self._order.between_marks and light_is_possible()

    def _let_go(self) -> None:
        self._close_door()
        self._recording = self._subject = None
        self._pending = self._course.aside = self._skip_call = False

    def _look(self) -> Alive:
        from tb_dlprof_plugin.capture.launcher.live_objects import look

        return look()

    def _is_profiled(self, alive: Alive) -> bool:
        """Whether the script profiles itself; it is left alone then."""
        if any(profiler not in self._own_profilers for profiler in alive.profilers):
            self._leave("left_alone", "it uses torch.profiler itself")
            return True
        return False

    def _leave(self, phase: Any, said: str) -> None:
        if self._after is not None:
            # What was recorded is not lost by what comes after it.
            self._complete_after()
            self._off()
            return
        self._report.phase, self._report.said = phase, said
        self._outside.drop()
        if self._recording is not None and not self._recording.failed:
            self._recording.drop()
        self._off()
        self._report.write(self._folder)

    def _off(self) -> None:
        self._phase = _Phase.OFF
        self._let_go()
        self._ears.take_off()
        self._optimizers.clear()

    def _end(self) -> None:
        self._ending = True
        self._catch_up()
        self._complete_after()
        if self._recording is not None:
            if self._in(_Phase.ACTIVE):
                self._close()
            else:
                self._recording.drop()
        report = self._report
        report.iterations = self._seen
        report.used_gpu = report.used_gpu or bool(probe(torch.cuda.is_initialized))
        self._outside.drop()
        self._off()
        report.ended = True
        report.write(self._folder)

    def _hear(self, module: nn.Module) -> None:
        self._ears.quietly(self._on_call, module)

    def _fail(self, error: Exception) -> None:
        why = f"{type(error).__name__}: {error}"
        probe(lambda: self._leave("failed", why))
        warn(f"The script goes on without a profile: {why}.")


def _nothing() -> None:
    return None
