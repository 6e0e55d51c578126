"""Counts a script's iterations by the calls of its compiled functions, and records those that it was asked for.

An iteration begins with a call of the step's function and ends where the next one begins. Before the recording every
third call waits for the device, so that the time between two such calls is that of three iterations without the
profiler; after it, too. Without such calls ``--duration`` records a stretch of time.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from tb_dlprof_plugin.capture.launcher.iteration_window import IterationWindow
from tb_dlprof_plugin.capture.launcher.protocol import RECORDING, Phase, ProcessStatus, RunRequest, read_statuses
from tb_dlprof_plugin.capture.launcher.xplane.step_function import StepFunction

_TIMED_TOGETHER = 3
_TIMED_AFTER = 12
"""Iterations that are timed after the recording."""
_NO_CALL_S = 2.0
"""With ``--duration``, seconds after ``--delay`` until a script without iterations is recorded by time."""


class Profiler(Protocol):
    """A framework's own profiler. Each method may raise what the framework raises."""

    @property
    def framework(self) -> str:
        """The module's name."""
        ...

    @property
    def unit(self) -> str:
        """What the iterations are."""
        ...

    def start(self, folder: str) -> None:
        """Record from now on."""
        ...

    def stop(self) -> None:
        """Write what was recorded into the folder."""
        ...

    def step(self, number: int) -> contextlib.AbstractContextManager[Any]:
        """Marks an iteration."""
        ...

    def wait(self, arguments: object) -> None:
        """Wait until the device has computed what a call takes."""
        ...

    @property
    def runs_ahead(self) -> bool:
        """Whether calls return before the CPU has computed them: then an iteration's work would lie in later ones, with
        no kernel that says when it ended."""
        ...

    def place(self) -> tuple[int, int]:
        """This process among those of the training, and how many they are."""
        ...


class CallWindow(IterationWindow):
    """An `IterationWindow` that begins after a delay. Which function is the step's is known with its second call."""

    def __init__(self, request: RunRequest) -> None:
        super().__init__(request, least=1)

    def due(self, iteration: int) -> bool:
        """Whether the profiler starts before this iteration, one before the first that counts."""
        return iteration + 1 >= self.first and self.delay_is_over()

    def open(self, iteration: int) -> None:
        """The profiler starts before this iteration."""
        self.begin_at(max(self.first, iteration + (1 if iteration > 1 or self.first > iteration else 0)))


class CallRecorder:
    """The recorder of one process."""

    def __init__(self, request: RunRequest, folder: Any, profiler: Profiler) -> None:
        self._request, self._folder, self._profiler = request, folder, profiler
        self._status = ProcessStatus(pid=os.getpid(), framework=profiler.framework, unit=profiler.unit)
        self._window, self._function = CallWindow(request), StepFunction()
        self._inside = threading.local()
        self._lock = threading.RLock()
        self._thread: int | None = None
        self._mark: contextlib.AbstractContextManager[Any] | None = None
        self._running = self._waits = self._marks = False
        # Of the iterations that are timed: when the last one of known time began, and which it was.
        self._timed_ns: int | None = None
        self._timed_at = 0
        self._stopped_at: int | None = None
        self.off = False
        """Whether calls are of no interest any more."""

    def begin(self) -> None:
        """Install what does not belong to the framework."""
        self._status.write(self._folder)
        atexit.register(self.end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        if self._request.between_marks:
            self._abandon("failed", "--profile-range is for PyTorch's scripts; leave it out")
        elif self._request.duration_s is not None:
            threading.Thread(target=self._record_by_time, name="tb-dlprof", daemon=True).start()

    def call(self, key: int, function: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
        """What ``function`` returns, or raises; the call may be an iteration. A call within another is none."""
        inside = self._inside
        if self.off or getattr(inside, "active", False):
            return function(*arguments, **keywords)
        self._guarded(lambda: self._begins(key, (arguments, keywords)))
        inside.active = True
        began_ns = time.perf_counter_ns()
        try:
            return function(*arguments, **keywords)
        finally:
            inside.active = False
            self._function.end(key, time.perf_counter_ns() - began_ns)

    def leave(self) -> None:
        """The script is about to use the profiler itself."""
        with self._lock:
            if self._running:
                self._guarded(self._stop)
            if self._status.phase != "recorded":
                self._abandon("left_alone", f"it uses the profiler of {self._profiler.framework} itself")
            self.off = True

    def end(self) -> None:
        """The process ends: save what was recorded. Never raises."""
        if self._status.pid != os.getpid():
            return
        with self._lock:
            if self._running:
                self._guarded(self._stop)
            self.off = True
            self._status.iterations = self._function.calls
            self._status.ended = True
            self._status.write(self._folder)

    # ---- iterations

    def _begins(self, key: int, arguments: object) -> None:
        number = self._function.begin(key)
        if number is None:
            if self._function.is_apart(key) and threading.get_ident() == self._thread:
                with self._lock:
                    self._interrupt(arguments)
            return
        here = threading.get_ident()
        if self._thread is None or not self._running:
            self._thread = here
        if here != self._thread:
            return
        with self._lock:
            self._iteration(number, arguments)

    def _iteration(self, number: int, arguments: object) -> None:
        if self._stopped_at is not None:
            self._time(number, arguments, self._status.after_ns)
            if number > self._stopped_at + _TIMED_AFTER:
                self.off = True
        elif self._running:
            self._next(number, arguments)
        elif self._window.due(number):
            self._time(number, arguments, self._status.before_ns, last=True)
            self._start(number, arguments)
        else:
            if self._status.phase == "watching":
                self._status.phase, self._status.starts_at = "waiting", self._window.first
                self._status.write(self._folder)
            self._time(number, arguments, self._status.before_ns)

    def _interrupt(self, arguments: object) -> None:
        """Something else than an iteration begins, mostly an evaluation: its time belongs to no iteration."""
        if self._mark is not None:
            if self._waits:
                self._profiler.wait(arguments)
            self._end_mark()
        self._timed_ns = None

    def _time(self, number: int, arguments: object, durations: list[int], last: bool = False) -> None:
        """Takes the time of every third iteration, by waiting for the device; the first one is left out."""
        if number < self._timed_at:
            # A larger function has become the step's.
            self._timed_ns = None
        if number < 2 or (self._timed_ns is not None and number - self._timed_at < _TIMED_TOGETHER and not last):
            return
        self._profiler.wait(arguments)
        now_ns = time.perf_counter_ns()
        iterations = number - self._timed_at
        if self._timed_ns is not None and iterations == _TIMED_TOGETHER:
            durations.append((now_ns - self._timed_ns) // iterations)
        self._timed_ns, self._timed_at = now_ns, number

    def _start(self, number: int, arguments: object) -> None:
        self._window.open(number)
        if self._window.missed:
            self._abandon("failed", self._window.why_missed(number))
            return
        if self._others_record():
            self.off = True
            return
        self._profiler.wait(arguments)
        self._start_profiler()
        if number >= self._window.first:
            self._next(number, arguments)

    def _start_profiler(self) -> None:
        status = self._status
        status.rank, status.world_size = self._profiler.place()
        os.makedirs(self._request.run_directory, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=RECORDING, dir=self._request.run_directory)
        status.folder = folder
        self._profiler.start(folder)
        self._running = True

    def _next(self, number: int, arguments: object) -> None:
        if number < self._window.first:
            return
        status = self._status
        if self._window.over(number):
            self._profiler.wait(arguments)
            self._stop()
            self._timed_ns, self._stopped_at = None, number
            return
        if not self._marks:
            self._marks = True
            self._profiler.wait(arguments)
            self._window.begin()
            self._waits = self._profiler.runs_ahead
            status.phase, status.first, status.recording_since_s = "recording", number, time.time()
            status.write(self._folder)
        elif self._waits:
            self._profiler.wait(arguments)
        self._end_mark()
        status.last = number
        self._mark = self._profiler.step(number)
        self._mark.__enter__()

    def _end_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _stop(self) -> None:
        """Write what was recorded."""
        self._running = False
        self._end_mark()
        self._profiler.stop()
        status = self._status
        status.phase = "recorded"
        status.iterations = self._function.calls
        status.write(self._folder)

    # ---- by time

    def _record_by_time(self) -> None:
        request = self._request
        time.sleep(max(0.0, request.began_s + request.delay_s + _NO_CALL_S - time.time()))
        with self._lock:
            if self.off or self._running or self._function.calls or self._others_record():
                return
            self._guarded(self._start_profiler)
            if not self._running:
                return
            self._status.phase, self._status.recording_since_s = "recording", time.time()
            self._status.write(self._folder)
            # Calls that begin later are no iterations of this recording.
            self.off = True
        time.sleep(request.duration_s or 0.0)
        with self._lock:
            if self._running:
                self._guarded(self._stop)

    # ---- failures

    def _others_record(self) -> bool:
        """Whether another framework's recorder of this process records, or has: there is one profiler of the GPU."""
        return any(
            one.pid == self._status.pid
            and one.framework != self._status.framework
            and one.phase in ("recording", "recorded")
            for one in read_statuses(self._folder)
        )

    def _forked(self) -> None:
        """Called in a forked child, whose profiler is a copy that records nothing."""
        self.off = True

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        running, self._running = self._running, False
        with contextlib.suppress(Exception):
            self._end_mark()
        if running:
            with contextlib.suppress(Exception):
                self._profiler.stop()
        if self._status.phase != "recorded":
            self._abandon("failed", why)
            with contextlib.suppress(Exception):
                sys.stderr.write(f"tb-dlprof: the script goes on without a profile: {ascii(why)[1:-1]}\n")  # noqa: TID251
        self.off = True

    def _abandon(self, phase: Phase, said: str) -> None:
        self._status.phase, self._status.said = phase, said
        self.off = True
        self._status.write(self._folder)
