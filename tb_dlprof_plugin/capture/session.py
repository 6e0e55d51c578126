"""The one-line API: ``with profile(logdir, model=model) as prof: ... prof.step()``.

Combines a configured ``torch.profiler.profile``, the module ranges and the trace handler. Nothing here raises into the
training: if the profiler cannot run, every method does nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch.profiler import ProfilerAction

from tb_dlprof_plugin.capture import arguments
from tb_dlprof_plugin.capture.cycle import StepKind, StepKinds
from tb_dlprof_plugin.capture.facts.optimizer import OptimizerWatch
from tb_dlprof_plugin.capture.handler import TraceHandler, make_ranges
from tb_dlprof_plugin.capture.light_window import light_would_say_more
from tb_dlprof_plugin.capture.out_of_memory import OutOfMemoryWatch, Stacks
from tb_dlprof_plugin.capture.process_pool import EXIT_WAIT_S
from tb_dlprof_plugin.capture.profiler_turn import ProfilerTurn
from tb_dlprof_plugin.capture.record_options import NAMES
from tb_dlprof_plugin.capture.schedule import DEFAULT, RECORDING, Schedule, make_schedule, steps_needed
from tb_dlprof_plugin.capture.warn import probe, warn

QUIET = "TB_DLPROF_QUIET"
"""The environment variable that silences the line about a recording: anything but 0."""

_UNSTEPPED_CALLS = 100
_UNSTEPPED_S = 30.0
"""A block that never calls `step` is recorded whole, up to this: a whole training would not fit into memory."""


def profile(
    logdir: str | os.PathLike[str],
    model: Any = None,
    dataloader: Any = None,
    *,
    optimizer: Any = None,
    schedule: Any = None,
    activities: Any = None,
    record_shapes: bool = True,
    profile_memory: bool = False,
    with_stack: bool = False,
    worker_name: str | None = None,
    use_gzip: bool = True,
    subdirectory: str | None = None,
    run_name: str | None = None,
    batch_size: int | None = None,
    rank: int | None = None,
    session: str | None = None,
    keep_trace: bool = True,
    pytorch_views: bool | None = None,
    module_ranges: bool = True,
    wait: bool | None = None,
    quiet: bool | None = None,
    exit_wait_s: float = EXIT_WAIT_S,
    oom: bool | Stacks = False,
    **profiler_options: Any,
) -> ProfileSession:
    """Profile the training steps inside the ``with`` block; call ``step()`` on the result after each one.

    In a block that never calls ``step()`` each optimizer step ends an iteration; without one, as in a notebook cell
    that runs a batch forward, the block is recorded whole as one, unless a schedule is given.

    Args:
        schedule: a ``torch.profiler.schedule``, a dict of its arguments or a tuple (wait, warmup, active[, repeat]); by
            default 10 steps to wait, of which the step time without the profiler and the light window are taken, 2 to
            warm up and 10 to record, once.
        activities: as in torch; by default CPU, and CUDA where it is available.
        record_shapes: needed for Tensor Core eligibility.
        module_ranges: name ops after the modules of ``model``.
        wait: wait for the analysis when the block ends; by default only in a notebook, an interactive interpreter or a
            worker of Ray. Otherwise the interpreter's exit waits.
        quiet: print no line on standard error about the first recording of rank 0 once it is analysed; by default
            where TB_DLPROF_QUIET is set to anything but 0.
        oom: leave an explanation for `tb-dlprof oom` where an out-of-memory error of CUDA leaves the block; "stacks"
            also records the Python stacks of allocations, up to 100,000 of them.
        profiler_options: further arguments of ``torch.profiler.profile``.

    The other arguments are those of `trace_handler`.
    """
    handler = TraceHandler(**{name: value for name, value in locals().items() if name in NAMES})
    quiet = arguments.flag("quiet", quiet, None)
    handler.announces = not (_is_quiet() if quiet is None else quiet)
    options = {
        "activities": activities,
        "record_shapes": record_shapes,
        "profile_memory": profile_memory,
        "with_stack": with_stack,
        **profiler_options,
    }
    ranges_of = model if arguments.flag("module_ranges", module_ranges, True) else None
    watch = _watch(handler, oom, model, optimizer, rank, batch_size) if oom else None
    return ProfileSession(handler, ranges_of, schedule, options, arguments.flag("wait", wait, None), watch)


class ProfileSession:
    """What `profile` returns: a context manager with ``step()``. Unknown attributes are the torch profiler's own."""

    def __init__(
        self,
        handler: TraceHandler,
        ranges_of: Any,
        schedule: Any,
        options: dict[str, Any],
        wait: bool | None,
        oom: OutOfMemoryWatch | None = None,
    ) -> None:
        self.handler = handler
        self.profiler: torch.profiler.profile | None = None
        self._options = options
        self._wait = wait
        self._oom = oom
        # Without a schedule it is not known yet whether the block calls `step`. So its first step is recorded, and
        # discarded if a second one follows.
        self._undecided = schedule is None
        self._drop_trace = False
        self._closed_unstepped = False
        self._schedule = _schedule_or_default(schedule)
        self._traces = 0
        self._failed = not handler.has_logdir
        self.failure = ""
        """Why nothing is recorded any more."""
        self._may_skip = False
        # Hooks or a profiler are still to be removed.
        self._unsettled = False
        self._told_not_started = False
        self._interrupted = False
        self._started = False
        self._entered_s = 0.0
        self._unstepped_forwards = 0
        self._unstepped_updates = 0
        self._kinds = StepKinds(light=False)
        self._turn = ProfilerTurn(self._lose_turn)
        # In a forked child nothing is recorded: the profiler and the analyses are the parent's.
        self._pid = os.getpid()
        handler.goes_on = lambda _, prof: prof.current_action is ProfilerAction.NONE
        handler.ranges = make_ranges(ranges_of, on_outermost=lambda: self._guarded(self._count_forward))
        handler.watch = OptimizerWatch(on_step=lambda: self._guarded(self._count_update))

    def __enter__(self) -> ProfileSession:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._interrupted = kind is not None
        if self._oom is not None:
            self._oom.left_by(error)
        self.stop(wait=False if self._interrupted else None)

    def start(self) -> None:
        """Begin; the same as entering the ``with`` block. Never raises."""
        if self._started or self._failed:
            return
        self._started, self._pid = True, os.getpid()
        if self._oom is not None:
            self._oom.begin()
        self._entered_s = time.monotonic()
        self._guarded(self._start)

    def step(self) -> None:
        """The next training step begins. Never raises."""
        if self._failed:
            if self._unsettled:
                probe(self._settle)
        elif self.profiler is not None:
            self._guarded(self._step)
        elif not self._started and not self._told_not_started:
            self._told_not_started = True
            warn("Nothing is recorded: enter the profile first, `with tb_dlprof_plugin.profile(...) as prof:`.")

    def stop(self, wait: bool | None = None) -> None:
        """End; the same as leaving the ``with`` block. Never raises, except KeyboardInterrupt while it waits."""
        if self._pid != os.getpid():
            return
        if self.profiler is not None and self._started:
            self._started = False
            self._guarded(self._stop)
        probe(self._settle)
        self.handler.release()
        if self._oom is not None:
            self._oom.end()
        if not self._failed and wait is not False and (_waits_by_itself() if self._wait is None else self._wait):
            self.handler.wait()

    def stop_unfinished(self) -> None:
        """End without waiting and without a recording that is incomplete. Never raises."""
        self._interrupted = self._drop_trace = True
        self.stop(wait=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the analyses, ``timeout`` seconds at most; whether all profiles were written."""
        return not self._failed and self._traces > 0 and self.handler.wait(timeout)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "profiler":
            raise AttributeError(name)
        if self._failed or self.profiler is None:
            return _Nothing()
        return getattr(self.profiler, name)

    def _start(self) -> None:
        self._turn.watch()
        if not self._turn.is_free:
            self._fail("another profiler is already running in this process; leave its block first")
            return
        self.handler.watch_loaders()
        options = {name: value for name, value in self._options.items() if value is not None}
        self.profiler = torch.profiler.profile(schedule=self._action, on_trace_ready=self._on_trace, **options)
        since = 0 if self._action(0) is ProfilerAction.NONE else -1
        self._kinds = StepKinds(light_would_say_more(self.profiler.activities), since)
        self._sync_hooks(self._action(0))
        # Entering also starts the profiler's own step annotation.
        # Kineto's daemon counts calls of torch's `step`.
        self._may_skip = not os.environ.get("KINETO_USE_DAEMON")
        with self._turn.using(self.profiler):
            self.profiler.__enter__()
        self._end_annotation()

    def _step(self) -> None:
        prof = self.profiler
        assert prof is not None
        step = prof.step_num + 1
        before, after = prof.current_action, self._action(step)
        kind, outside = self._kind_of(step, after), self.handler.outside
        if before is after is ProfilerAction.NONE and self._may_skip:
            self._step_outside(prof, kind)
            return
        # Before the profiler's own work at this boundary, which is not part of the training.
        probe(lambda: outside.end(kind))
        # Between two steps, so that the line is in no measured one.
        self.handler.announce()
        if kind is StepKind.FULL:
            self.handler.complete()
        if before not in RECORDING and after is not ProfilerAction.NONE and not self._turn.is_free:
            self._fail("another profiler was started in this process; leave its block first")
            return
        self._drop_trace = self._undecided and prof.step_num == 0
        try:
            with self._turn.using(prof):
                prof.step()
        finally:
            self._drop_trace = False
        self._end_annotation()
        probe(lambda: outside.begin(kind))
        if self.handler.awaits_after and outside.after_is_over():
            self.handler.complete()
        self._sync_hooks(prof.current_action)

    def _step_outside(self, prof: torch.profiler.profile, kind: StepKind) -> None:
        """Neither the step that ended nor the one that begins is the profiler's: it only counts."""
        handler, outside = self.handler, self.handler.outside
        prof.step_num += 1
        if handler.announces:
            handler.announce()
        try:
            outside.turn(kind)
        except Exception:
            probe(lambda: outside.begin(kind))
        if handler.awaits_after and outside.after_is_over():
            handler.complete()

    def _end_annotation(self, always: bool = False) -> None:
        """End torch's range around the step that begins; unless always, only where nothing records it."""
        prof = self.profiler
        if prof is not None and prof.step_rec_fn is not None and (always or prof.current_action is ProfilerAction.NONE):
            annotation, prof.step_rec_fn = prof.step_rec_fn, None
            annotation.__exit__(None, None, None)

    def _kind_of(self, step: int, action: ProfilerAction) -> StepKind:
        """Of the step that begins."""
        if action is not ProfilerAction.NONE:
            return self._kinds.full()
        if self._closed_unstepped:
            return StepKind.REST
        outside = self.handler.outside
        return self._kinds.outside(self._schedule, step, leading=not self._traces, light_after=outside.light_due)

    def _stop(self) -> None:
        assert self.profiler is not None
        self._unhook(keep_facts=True)
        self.handler.complete()
        probe(self.handler.outside.interrupt)
        # A later window that the loop's end finds in its first step: as a rule nothing ran in it.
        self._drop_trace |= self._traces > 0 and self._begins_window(self.profiler.step_num)
        with self._turn.using(self.profiler):
            self.profiler.__exit__(None, None, None)
        # A light window whose full one never came.
        probe(self.handler.outside.drop)
        if not self._traces and not self._interrupted:
            self._explain_nothing_recorded()

    def _explain_nothing_recorded(self) -> None:
        needed = probe(lambda: steps_needed(self._schedule))
        at_least = str(needed) if needed else "more"
        assert self.profiler is not None
        steps = self.profiler.step_num
        seen = f"after {steps} calls of step()" if steps else "without a call of step()"
        warn(
            f"No profile was written to {self.handler.logdir}: the block ended {seen}, and this schedule records from "
            f"{at_least} steps on; call prof.step() after each training step, or pass a shorter schedule such as "
            "schedule=dict(wait=0, warmup=1, active=3)."
        )

    def _action(self, step: int) -> ProfilerAction:
        if self._undecided:
            if step == 0:
                return ProfilerAction.RECORD_AND_SAVE
            if self._closed_unstepped:
                return ProfilerAction.NONE
        return self._schedule(step)

    def _begins_window(self, step: int) -> bool:
        """Whether ``step`` is the first one that a window records."""
        return self._action(step) in RECORDING and self._action(step - 1) not in RECORDING

    def _on_trace(self, prof: torch.profiler.profile) -> None:
        if self._drop_trace:
            # Frees the events, and torch does not warn that it clears them.
            prof.profiler = None
            if self.handler.ranges is not None:
                self.handler.ranges.new_cycle()
            self.handler.watch.new_cycle()
            self.handler.garbage.new_cycle()
            self.handler.peaks.forget()
            return
        self._traces += 1
        self.handler(prof)

    def _sync_hooks(self, action: ProfilerAction) -> None:
        """Hooks are on the model only while the profiler warms up or records."""
        if action in RECORDING:
            self.handler.peaks.begin()
        if action is ProfilerAction.NONE:
            self._unhook()
            return
        if self.handler.ranges is not None:
            self.handler.ranges.install()
        self.handler.watch.install()
        self.handler.garbage.install()

    def _unhook(self, keep_facts: bool = False) -> None:
        if self.handler.ranges is not None:
            probe(self.handler.ranges.remove)
        probe(self.handler.garbage.remove)
        if not keep_facts:
            probe(self.handler.watch.remove)

    def _count_forward(self) -> None:
        self._unstepped_forwards += 1
        self._guard_memory()

    def _count_update(self) -> None:
        self._unstepped_updates += 1
        self._guard_memory()

    def _guard_memory(self) -> None:
        """End the recording of a block that does not call `step` before it fills the memory."""
        if not self._undecided or self.profiler is None or self.profiler.step_num:
            return
        calls = self._unstepped_updates or self._unstepped_forwards
        if calls <= _UNSTEPPED_CALLS and time.monotonic() - self._entered_s < _UNSTEPPED_S:
            return
        self._closed_unstepped = True
        with self._turn.using(self.profiler):
            self.profiler.step()
        self.handler.complete()
        # The optimizer's hook stays: removed within a step of the optimizer, it would break its loop over the hooks.
        self._unhook(keep_facts=True)
        warn(
            f"The profile in {self.handler.logdir} ends after {calls} calls of the model: the block does not call "
            "step(); call prof.step() after each training step."
        )

    def _guarded(self, action: Callable[[], None]) -> None:
        if self._failed or self._pid != os.getpid():
            return
        try:
            action()
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")

    def _fail(self, why: str) -> None:
        self._failed, self.failure = True, why.rstrip(".")
        self._settle()
        self._warn_of_failure()

    def _warn_of_failure(self) -> None:
        warn(f"The training goes on without a profile in {self.handler.logdir}: {self.failure}.")

    def _lose_turn(self) -> None:
        """The script starts a profiler itself: in any thread, within a step, perhaps within a hook."""
        self._failed = self._unsettled = True
        self.failure = "the script started a profiler itself in a step to record; torch has only one at a time"
        self._unhook(keep_facts=True)
        if self._pid == os.getpid():
            self._warn_of_failure()

    def _settle(self) -> None:
        """Remove what is left of a recording that ended or failed. Call at a step's boundary."""
        self._unhook()
        if not self._failed:
            self._turn.leave()
            return
        self.handler.close()
        self.handler.complete()
        probe(self.handler.outside.drop)
        with contextlib.suppress(Exception):
            self._end_annotation(always=True)
        # A profiler that still runs must not record for the rest of the training.
        probe(self._turn.end)
        self._unsettled = self._turn.is_stranded
        self._turn.leave()


def _watch(
    handler: TraceHandler, oom: bool | Stacks, model: Any, optimizer: Any, rank: int | None, batch_size: int | None
) -> OutOfMemoryWatch | None:
    if oom not in (True, "stacks"):
        warn(f'oom={oom!r} is left out: it must be True, False or "stacks".')
        return None
    directory = handler.logdir if handler.has_logdir else None
    return OutOfMemoryWatch(directory, model, optimizer, oom == "stacks", rank, batch_size)


def _schedule_or_default(given: Any) -> Schedule:
    if given is not None:
        try:
            return make_schedule(given)
        except ValueError as error:
            warn(f"The schedule {given!r} cannot be used ({error}); using {DEFAULT}.")
    return make_schedule(DEFAULT)


def _is_quiet() -> bool:
    """Whether the environment silences the line about a recording."""
    return os.environ.get(QUIET, "0") not in ("", "0")


def _waits_by_itself() -> bool:
    """Whether the interpreter's exit is too late: a notebook's kernel or an interactive interpreter may run for hours,
    and Ray kills a worker, with what it has started, once its function has returned."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and probe(lambda: ipython.get_ipython() is not None):
        return True
    ray = sys.modules.get("ray")
    if ray is not None and probe(ray.is_initialized):
        return bool(probe(lambda: ray.get_runtime_context().worker.mode == ray.WORKER_MODE))
    return hasattr(sys, "ps1")


class _Nothing:
    """Null object for the attributes of a profiler that does not run."""

    def __call__(self, *args: Any, **kwargs: Any) -> _Nothing:
        return self

    def __getattr__(self, name: str) -> _Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __str__(self) -> str:
        return ""
