"""Counts the iterations of a script from outside, and records those that it was asked for.

An iteration ends with an optimizer's step, seen by torch's hook for all optimizers; the next one begins at the next
call of the model. (Not in the hook itself, which runs inside the range that torch records around the step.) Without an
optimizer each call of the model is an iteration. Before the warm-up only that one hook is installed, after the
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

from tb_dlprof_plugin.capture.compiled.compilations import COMPILATIONS
from tb_dlprof_plugin.capture.compiled.provenance import PROVENANCE
from tb_dlprof_plugin.capture.cycle import StepKind
from tb_dlprof_plugin.capture.launcher.evaluation_detector import ENOUGH_ITERATIONS, EvaluationDetector, mode_of
from tb_dlprof_plugin.capture.launcher.protocol import ProcessStatus, RunRequest
from tb_dlprof_plugin.capture.launcher.recording_window import RecordingWindow
from tb_dlprof_plugin.capture.launcher.recordings import Recordings
from tb_dlprof_plugin.capture.launcher.step_clock import StepClock
from tb_dlprof_plugin.capture.launcher.training_hooks import HookSet
from tb_dlprof_plugin.capture.loader.watch import LOADERS
from tb_dlprof_plugin.capture.warn import probe, warn

if TYPE_CHECKING:
    # Imported where a recording begins: most processes that import torch train nothing.
    from tb_dlprof_plugin.capture.launcher.live_objects import LiveObjects
    from tb_dlprof_plugin.capture.launcher.model_calls import CallsOfModel
    from tb_dlprof_plugin.capture.launcher.training_state import TrainingState

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
    """The recorder of one process.

    Args:
        request: what to record.
        folder: where reports go.
    """

    def __init__(self, request: RunRequest, folder: Path) -> None:
        self._request, self._folder = request, folder
        self._status = ProcessStatus(pid=os.getpid())
        self._phase = _Phase.IDLE
        self._window = RecordingWindow(request)
        self._clock = StepClock(self._on_step)
        self._recordings = Recordings(request)
        self._evaluations = EvaluationDetector()
        # Iterations are steps of an optimizer, else calls of the model.
        self._steps_count = True
        self._called: Callable[[], nn.Module | None] = _nothing
        self._thread: int | None = None
        # An optimizer has stepped, and the model has not been called since.
        self._pending = False
        # No call of the model is seen: iterations begin with the optimizer's step.
        self._without_calls = False
        self._skip_call = False
        self._call_hook: CallsOfModel | None = None
        self._training: TrainingState | None = None
        self._hooks = HookSet(self._clock.step, self._on_first_call, self._on_mark, self._on_end_mark, self._fail)

    def begin(self) -> None:
        """Install the hooks in this process."""
        PROVENANCE.install()
        COMPILATIONS.install()
        LOADERS.install(self)
        self._hooks.install(marks=self._request.between_marks)
        self._status.write(self._folder)

    def end(self) -> None:
        """The process ends: save what was recorded. Never raises."""
        if self._status.pid == os.getpid() and not self._status.ended:
            self._hooks.quietly(self._end)

    def forked(self) -> None:
        """Called in a forked child: usually a DataLoader worker, but perhaps a rank of a training."""
        if self._in(_Phase.DUE, _Phase.LIGHT, _Phase.WARM, _Phase.ACTIVE, _Phase.AFTER):
            self._recordings.forked()
            self._off()
        self._status = ProcessStatus(pid=os.getpid())
        self._thread = None

    # ---- callbacks

    def _on_step(self, number: int) -> None:
        """An iteration has ended with the step of an optimizer, and the one of this number follows."""
        if self._in(_Phase.OFF):
            return
        if not self._steps_count:
            self._count_steps()
        if self._thread is None:
            self._thread = threading.get_ident()
        if self._in(_Phase.IDLE):
            self._wait()
        if self._in(_Phase.WAIT):
            self._wait_for_window()
        elif threading.get_ident() == self._thread and (self._pending or self._without_calls):
            if self._evaluations.evaluating:
                self._evaluations.forget()
            else:
                self._without_calls = True
            self._pending = False
            self._next_iteration()
        else:
            self._pending = True

    def _wait_for_window(self) -> None:
        number = self._clock.number
        if self._window.near(number):
            self._recordings.outside.turn(StepKind.TIMED)
        if not self._request.between_marks and self._window.due(number):
            self._pending = True
            self._prepare()
        if self._in(_Phase.WAIT):
            self._clock.rest(self._window.idle(number))

    def _on_first_call(self, module: nn.Module) -> None:
        self._called = weakref.ref(module)
        self._thread = threading.get_ident()
        if not self._in(_Phase.IDLE) or self._request.between_marks:
            return
        objects = self._find_objects()
        if self._is_profiled(objects):
            return
        trains = any(mode_of(module))
        self._steps_count = bool(objects.optimizers) and trains
        if self._steps_count:
            self._evaluations.learn(mode_of(module))
        else:
            self._status.unit = _CALLS
            skipped = _SKIPPED_EVALUATIONS if objects.optimizers else _SKIPPED_CALLS if trains else 0
            self._window = RecordingWindow(self._request, skipped, recorded=_RECORDED_CALLS)
        self._wait()
        if self._window.due(0):
            # The hooks installed now see this call as well.
            self._skip_call = not self._steps_count
            self._prepare(objects)
            self._next_iteration()
        elif not self._steps_count:
            self._clock.number = -1
            self._install_call_hook()

    def _on_call(self, module: nn.Module) -> None:
        """A module is called by user code."""
        if self._thread is None:
            self._thread = threading.get_ident()
        if self._in(_Phase.OFF) or threading.get_ident() != self._thread:
            return
        course = self._evaluations
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
            self._begin_evaluation()
            return
        if (self._in(_Phase.LIGHT) and course.is_unlikely(mode)) or (
            self._in(_Phase.AFTER) and course.is_evaluation(mode)
        ):
            self._recordings.outside.interrupt()
            return
        if self._in(_Phase.WARM) and self._clock.number >= self._window.first and course.is_unlikely(mode):
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
        self._clock.number += 1
        if self._in(_Phase.WAIT) and self._window.due(self._clock.number):
            self._prepare()
        if not self._in(_Phase.WAIT):
            self._next_iteration()

    def _on_mark(self) -> None:
        self._clock.wake()
        if not self._in(_Phase.IDLE, _Phase.WAIT):
            return
        self._wait()
        self._thread = threading.get_ident()
        self._window.open_now(self._clock.number)
        self._prepare()
        if self._in(_Phase.DUE):
            self._next_iteration()

    def _on_end_mark(self) -> None:
        if self._in(_Phase.ACTIVE):
            self._close()

    # ---- actions

    @property
    def _seen(self) -> int:
        # A call begins an iteration, a step ends one.
        return self._clock.number + (0 if self._steps_count else 1)

    def _in(self, *phases: _Phase) -> bool:
        return self._phase in phases

    def _wait(self) -> None:
        self._phase = _Phase.WAIT
        self._window.light = self._recordings.light_is_possible()
        self._status.phase = "waiting"
        self._status.starts_at = self._window.first
        self._status.write(self._folder)

    def _count_steps(self) -> None:
        """What looked like an evaluation becomes a training."""
        self._recordings.drop()
        self._release()
        # Of the one that ends with this step.
        self._steps_count, self._clock.number = True, 1
        self._window = RecordingWindow(self._request)
        self._status.unit = _OPTIMIZER_STEPS
        self._wait()

    def _prepare(self, objects: LiveObjects | None = None) -> None:
        """Find the models, and install a hook for their next call."""
        from tb_dlprof_plugin.capture.launcher.training_state import TrainingState

        objects = objects or self._find_objects()
        if self._is_profiled(objects):
            return
        if not self._request.between_marks:
            self._window.open(self._clock.number)
        if self._window.missed:
            self._abandon("failed", self._window.why_missed(self._clock.number))
            return
        if self._request.simple and not torch.cuda.is_available():
            self._abandon("failed", "--mode simple records GPU kernels, and torch sees no GPU here: leave it out")
            return
        self._training = TrainingState(objects, self._clock.optimizers, self._called())
        self._status.model = self._training.name
        self._phase = _Phase.DUE
        # Not timed until the next iteration begins.
        self._recordings.outside.begin(StepKind.REST)
        self._without_calls = not self._install_call_hook()

    def _install_call_hook(self) -> bool:
        """Returns whether there is a model whose calls are seen."""
        from tb_dlprof_plugin.capture.launcher.model_calls import CallsOfModel

        self._remove_call_hook()
        on_call = self._guarded_on_call
        if self._steps_count:
            # GPU kernels alone need no exact beginning, and hooks cost time.
            if self._training is not None and not self._request.simple:
                self._call_hook = self._training.install_call_hook(on_call)
        elif (called := self._called()) is not None:
            self._call_hook = CallsOfModel(on_call)
            self._call_hook.install_on(called)
        return self._call_hook is not None

    def _remove_call_hook(self) -> None:
        if self._call_hook is not None:
            self._call_hook.remove()
            self._call_hook = None

    def _next_iteration(self) -> None:
        self._evaluations.begin_iteration()
        number, window = self._clock.number, self._window
        if self._in(_Phase.DUE) and number + window.warmup < window.first:
            self._phase = _Phase.LIGHT
            self._recordings.begin_light()
        elif self._in(_Phase.LIGHT) and self._recordings.next_light():
            return
        elif self._in(_Phase.DUE, _Phase.LIGHT):
            self._begin_recording()
        elif self._in(_Phase.AFTER):
            self._measure_after()
        elif self._in(_Phase.WARM):
            self._step(live=number >= window.first)
        elif self._in(_Phase.ACTIVE):
            if window.over(number):
                self._close()
            else:
                self._step(live=True)

    def _begin_recording(self) -> None:
        assert self._training is not None
        number = self._clock.number
        live = number >= self._window.first
        recording = self._recordings.begin(
            self._training, self._guarded_on_call, self._status, iteration=number, live=live
        )
        if recording.failed:
            self._abandon("failed", recording.failure)
            return
        self._phase = _Phase.WARM
        if live:
            self._is_live()
        else:
            # Installed before the module ranges: the recording must begin before the first recorded call does.
            self._install_call_hook()

    def _step(self, live: bool) -> None:
        recording = self._recordings.current
        assert recording is not None
        recording.live = live
        recording.next_step(self._clock.number + self._evaluations.gaps)
        if recording.failed:
            self._abandon("failed", recording.failure)
        elif live and self._in(_Phase.WARM):
            self._is_live()

    def _is_live(self) -> None:
        recording = self._recordings.current
        if self._call_hook is not None and recording is not None and recording.handler.ranges is not None:
            # From here on the module ranges report calls, beginning with the current one.
            self._skip_call = self._skip_call or not self._steps_count
            self._remove_call_hook()
        self._phase = _Phase.ACTIVE
        self._window.begin()
        if multiprocessing.parent_process() is not None:
            # Forked processes end without the functions that were registered with `atexit`.
            multiprocessing.util.Finalize(None, self.end, exitpriority=0)
        self._evaluations.settle()
        status = self._status
        status.phase, status.first, status.recording_since_s = "recording", self._window.first, time.time()
        status.write(self._folder)

    def _begin_evaluation(self) -> None:
        """An evaluation begins between two iterations."""
        recording = self._recordings.current
        if self._evaluations.evaluating or recording is None:
            return
        if self._clock.number - self._window.first >= ENOUGH_ITERATIONS and not self._window.explicit:
            self._close()
            return
        recording.pause()
        self._evaluations.begin_evaluation()

    def _close(self, ending: bool = False) -> None:
        """Write what was recorded.

        Args:
            ending: the process ends.
        """
        number, window, between_marks = self._clock.number, self._window, self._request.between_marks
        last = number - (1 if self._pending or window.over(number) else 0)
        # The script is stopped where seconds were given, and between marks the next recording may begin at any time.
        goes_on = not (ending or between_marks or self._request.duration_s is not None)
        written = self._recordings.finish(self._status, max(window.first, last), goes_on)
        training = self._training
        self._release()
        if between_marks and written:
            self._phase = _Phase.WAIT
            window.rest(number)
        elif goes_on and written:
            self._phase = _Phase.AFTER
            if self._recordings.outside.light_due and self._recordings.light_is_possible():
                # Its steps begin where those of the recording do.
                self._training = training
            self._without_calls = not self._install_call_hook()
        else:
            self._rest()
        self._status.iterations = self._seen
        self._status.write(self._folder)

    def _measure_after(self) -> None:
        """An iteration after the recording begins."""
        kind = self._recordings.measure_after()
        if kind is StepKind.TIMED and self._steps_count and self._call_hook is not None:
            # A timed step needs no exact beginning, and hooks cost time.
            self._remove_call_hook()
            self._without_calls = True
        if self._recordings.outside.after_is_over():
            self._recordings.complete_after()
            self._rest()

    def _rest(self) -> None:
        """A recording and the measurements after it are complete."""
        if self._steps_count:
            self._off()
        else:
            self._phase = _Phase.REST
            self._release()

    def _release(self) -> None:
        self._remove_call_hook()
        self._training = None
        self._pending = self._evaluations.evaluating = self._skip_call = False

    def _find_objects(self) -> LiveObjects:
        from tb_dlprof_plugin.capture.launcher.live_objects import find_live_objects

        return find_live_objects()

    def _is_profiled(self, objects: LiveObjects) -> bool:
        """Whether the script uses torch's profiler itself; then nothing is recorded."""
        if any(map(self._recordings.is_of_script, objects.profilers)):
            self._abandon("left_alone", "it uses torch.profiler itself")
            return True
        return False

    def _abandon(self, phase: Any, said: str) -> None:
        if self._recordings.is_measured_after:
            # The recording is complete: keep it.
            self._recordings.complete_after()
            self._off()
            return
        self._status.phase, self._status.said = phase, said
        self._recordings.drop()
        self._off()
        self._status.write(self._folder)

    def _off(self) -> None:
        self._phase = _Phase.OFF
        self._release()
        self._hooks.remove()
        LOADERS.remove(self)

    def _end(self) -> None:
        self._recordings.complete_after()
        if self._in(_Phase.ACTIVE):
            self._close(ending=True)
        status = self._status
        status.iterations = self._seen
        status.used_gpu = status.used_gpu or bool(probe(torch.cuda.is_initialized))
        self._recordings.drop()
        self._off()
        status.ended = True
        status.write(self._folder)

    def _guarded_on_call(self, module: nn.Module) -> None:
        self._hooks.quietly(self._on_call, module)

    def _fail(self, error: Exception) -> None:
        why = f"{type(error).__name__}: {error}"
        probe(lambda: self._abandon("failed", why))
        warn(f"The script goes on without a profile: {why}.")


def _nothing() -> None:
    return None
