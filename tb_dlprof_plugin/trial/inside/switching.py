"""Switches remedies on and off between the steps of a training that runs in this process.

What is measured is a generator that yields where the training makes its next step: a process of ``tb-dlprof try``
resumes it at the end of each step of the script, `try_step` calls the step itself.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import torch

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.trial.inside.applied import AppliedRemedies
from tb_dlprof_plugin.trial.inside.batches import Batches
from tb_dlprof_plugin.trial.inside.hooks import TrialHooks, copy_of
from tb_dlprof_plugin.trial.inside.observation import TrialObservation
from tb_dlprof_plugin.trial.inside.training_state import TrainingState
from tb_dlprof_plugin.trial.protocol import Block, Ready

WARM_STEPS = 3
"""After each switch, not timed: a remedy that is switched on is complete after the third."""
T = TypeVar("T")
_MOST_COMPILATIONS = 256
"""Of one function: each set of remedies has its own."""

_synchronize = copy_of(torch.cuda.synchronize)
"""As it is before a remedy replaces it."""


class Switcher:
    """Of one training.

    Args:
        models: returns those that its steps call.
        optimizers: returns those that have stepped.
        others: returns what else has a state: GradScalers, learning rate schedulers.
        hooks: through which it observes DataLoaders.
    """

    def __init__(
        self,
        models: Callable[[], Sequence[torch.nn.Module]],
        optimizers: Callable[[], Sequence[torch.optim.Optimizer]],
        others: Callable[[], Sequence[Any]] = tuple,
        hooks: TrialHooks | None = None,
    ) -> None:
        self._models, self._optimizers, self._others = models, optimizers, others
        self.batches = Batches(TrialHooks() if hooks is None else hooks)
        self.left_out: Callable[[], bool] = lambda: False
        """Whether a GradScaler left the last step out."""
        self._state: TrainingState | None = None
        self._known: dict[tuple[str, ...], AppliedRemedies] = {}
        """Sets that were on before: what they compiled is kept."""
        self._names: tuple[str, ...] = ()
        self._on: AppliedRemedies | None = None
        self._step = 0
        self._seen: dict[str, Any] = {}
        """Of the first steps that were compared, by the attributes of `Ready`."""

    def block(self, names: Sequence[str], steps: int) -> Generator[None, None, tuple[str, Block]]:
        """Time steps with these remedies on, which stay on; a few come before where they were not on."""
        if tuple(names) != self._names:
            self._switch(tuple(names))
            yield from self._steps(max(WARM_STEPS, self.batches.depth + 2))
        wait()
        began = time.perf_counter()
        yield from self._steps(steps)
        wait()
        seconds = time.perf_counter() - began
        peak = probe(torch.cuda.max_memory_allocated) if torch.cuda.is_initialized() else None
        failed = self._failure()
        if failed:
            self.off()
            self.restore()
        return "block", Block(steps, seconds, peak, failed=failed)

    def check(self, names: Sequence[str], seed: int, steps: int) -> Generator[None, None, tuple[str, Ready]]:
        """The first steps from the state that the training had when this was called first, with these remedies on,
        which stay on; then the state is set back. The first call keeps the batches that later calls give again.

        Args:
            names: of the remedies.
            seed: of the random generators; 0: they go on as they did.
            steps: how many.
        """
        self._switch(())
        if self._state is None:
            self._state = TrainingState(self._models(), self._optimizers(), self._others())
            self.batches.keep()
            wait()
            batches, began, on_cpu = self.batches, time.perf_counter(), time.process_time()
            before, faults = (batches.seconds, batches.cpu_seconds, batches.count), _page_faults()
            collector = _Collector()
            gc.callbacks.append(collector)
            try:
                yield from self._steps(steps)
            finally:
                gc.callbacks.remove(collector)
            wait()
            step_s, all_cpu_s = (time.perf_counter() - began) / steps, (time.process_time() - on_cpu) / steps
            self._seen = {"page_faults": (_page_faults() - faults) / steps, "collecting_s": collector.seconds / steps}
            if batches.count > before[2]:
                cpu_s = (batches.cpu_seconds - before[1]) / steps
                loading = [
                    (batches.seconds - before[0]) / steps,
                    cpu_s,
                    max((one.num_workers for one in batches.loaders()), default=0),
                    step_s,
                    all_cpu_s - cpu_s,
                    (batches.count - before[2]) / steps * batches.epochs_of_a_batch(),
                ]
                self._seen |= {"loading": loading, "padding": batches.padded_share()}
        self._state.restore()
        if seed:
            torch.manual_seed(seed)
        began = time.perf_counter()
        # Of another loader come other batches.
        self.batches.again()
        self._switch(tuple(names))
        observation = TrialObservation()
        ends_s = [time.perf_counter()]
        try:
            for _ in range(steps):
                skipped = 0 if self._on is None else self._on.skipped_steps
                yield from self._steps(1)
                more = 0 if self._on is None else self._on.skipped_steps - skipped
                observation.step(self.left_out() or more > 0)
                ends_s.append(time.perf_counter())
        finally:
            observation.stop()
            self.batches.as_they_come()
        took_s = time.perf_counter() - began
        ready = Ready(os.getpid(), checks=observation.checks(), since_start_s=took_s, **self._seen)
        # Others may have waited for a busy core.
        ready.step_s = min(after - before for before, after in itertools.pairwise(ends_s))
        if self._on is not None:
            ready.no_effect, ready.codes = self._on.no_effect(), self._on.codes()
        ready.failed = self._failure()
        if ready.failed:
            self.off()
        self.restore()
        return "ready", ready

    def restore(self) -> None:
        """Set the training back to the state that it had when it was checked first."""
        if self._state is not None:
            self._state.restore()

    def off(self) -> None:
        """Switch all remedies off."""
        self._switch(())

    def _switch(self, names: tuple[str, ...]) -> None:
        if names == self._names and (self._on is None or not self._on.failure):
            return
        on, self._on, self._names, self._step = self._on, None, (), 0
        if on is not None:
            on.stop()
            self.batches.from_second_loaders(False)
        if not names:
            return
        self._names = names
        self._on = self._known.setdefault(names, AppliedRemedies(names))
        self._on.start_in_running_process(self._optimizers())
        self.batches.from_second_loaders(any(one.of_loader for one in self._on.remedies))
        _allow_compilations()

    def _steps(self, count: int) -> Generator[None, None, None]:
        for _ in range(count):
            if self._failure():
                return
            yield
            if self._on is not None:
                self._on.step_ended(self._step)
                self._step += 1

    def _failure(self) -> str:
        return "" if self._on is None else self._on.failure


def wait() -> None:
    """Until the GPU has done what it was given."""
    if torch.cuda.is_initialized():
        _synchronize()


class _Collector:
    """Seconds of Python's garbage collector, as one of its callbacks."""

    def __init__(self) -> None:
        self.seconds = self._began = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._began = now
        elif self._began:
            self.seconds += now - self._began


def _page_faults() -> int:
    with contextlib.suppress(ImportError, OSError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return 0


def _allow_compilations() -> None:
    """Dynamo runs a function uncompiled once it has been compiled a few times."""
    config: Any = getattr(sys.modules.get("torch._dynamo"), "config", None)
    for name in ("recompile_limit", "cache_size_limit", "accumulated_recompile_limit", "accumulated_cache_size_limit"):
        with contextlib.suppress(Exception):
            if getattr(config, name) < _MOST_COMPILATIONS:
                setattr(config, name, _MOST_COMPILATIONS)
