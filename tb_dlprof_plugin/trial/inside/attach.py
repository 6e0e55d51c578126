"""Called by the injected ``sitecustomize`` when torch has been imported in a process of ``tb-dlprof try``."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_module
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from tb_dlprof_plugin.capture.facts.identity import rank_and_world_size
from tb_dlprof_plugin.capture.launcher.protocol import ProcessStatus
from tb_dlprof_plugin.capture.launcher.step_clock import StepClock
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.trial.inside.applied import AppliedRemedies
from tb_dlprof_plugin.trial.inside.called_models import mostly_repeats
from tb_dlprof_plugin.trial.inside.gate import Gate
from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.model_calls import FirstModelCalls
from tb_dlprof_plugin.trial.inside.observation import TrialObservation
from tb_dlprof_plugin.trial.inside.seeds import fix_seeds
from tb_dlprof_plugin.trial.inside.switching import Switcher
from tb_dlprof_plugin.trial.protocol import WARMUP_STEPS, Ready, TrialRequest


def attach(folder: str) -> None:
    """Seed, apply the remedies, and wait at the gate once the first steps are done.

    Raises:
        Exception: whatever goes wrong; the caller reports it.
    """
    TrialProcess(Path(folder), TrialRequest.read(Path(folder))).begin()


_PASSES_WITHOUT_STEP, _WITHOUT_STEP_S = 256, 3.0
"""Backward passes and seconds without a step of an optimizer: more than anyone accumulates gradients over."""
_WITHOUT_PASS_S = 10.0
"""Seconds from the first call of a model: a compilation takes as long, and beyond the budget nothing is measured."""
_LOOK_S = 0.5
_LEAST_STEPS, _LONG_S = 8, 8.0
"""Steps that are compared at least, as a t test needs them, and seconds after which there are no more."""


class TrialProcess:
    """The remedies and the gate of one process."""

    def __init__(self, folder: Path, request: TrialRequest) -> None:
        self._folder, self._request = folder, request
        self._pid = os.getpid()
        self._remedies = AppliedRemedies(request.remedies)
        self._variables = _variables()
        self._clock = StepClock(self._on_step)
        self._called: dict[int, nn.Module] = {}
        """By id, the models that the script calls."""
        self._others: weakref.WeakSet[Any] = weakref.WeakSet()
        """GradScalers and learning rate schedulers."""
        self._gate: Gate | None = None
        self._first_step_s = 0.0
        self._arrives_at = 0
        """The number of the step after which it waits; 0: steps are still compared."""
        self._observation: TrialObservation | None = None
        self._models = FirstModelCalls(self._model_called)
        # Whether an optimizer has stepped since a GradScaler was called to have it step, and whether the scaler left
        # the step out.
        self._stepped = self._left_out = False
        # Steps that the remedies have kept optimizers from.
        self._skipped = 0

    def begin(self) -> None:
        """Install everything."""
        fix_seeds(self._request.seed, self._request.seed_offset)
        self._remedies.start()
        if self._request.socket:
            hooks = TrialHooks()
            for cls in (torch.amp.GradScaler, torch.optim.lr_scheduler.LRScheduler):
                hooks.after_init(cls, self._others.add)
            switcher = Switcher(
                lambda: list(self._called.values()), lambda: self._clock.optimizers, lambda: list(self._others), hooks
            )
            switcher.left_out = lambda: self._left_out
            self._gate = Gate(self._request.socket, switcher)
            register_optimizer_step_pre_hook(self._stay_last)
            self._observation = TrialObservation()
            self._models.start()
        self._hook = register_optimizer_step_post_hook(self._after_step)
        self._count_skipped_steps()

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._stepped = True
        if not is_compiling() and os.getpid() == self._pid:
            self._left_out = False
            self._clock.step(optimizer)

    def _stay_last(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """Torch iterates over its hooks while this one waits at the gate, where remedies register others: none may come
        after it. Called before each step, when torch iterates over others."""
        if next(reversed(optimizer_module._global_optimizer_post_hooks), None) != self._hook.id:
            self._hook.remove()
            self._hook = register_optimizer_step_post_hook(self._after_step)

    def _model_called(self, module: nn.Module) -> None:
        """Of each one. Of the first: without a step the process never comes to the gate, and the command waits."""
        self._called[id(module)] = module
        if len(self._called) > 1:
            return
        threading.Thread(target=self._say_why_no_step_comes, args=(time.monotonic(),), daemon=True).start()

    def _say_why_no_step_comes(self, began_s: float) -> None:
        assert self._observation is not None
        said = ""
        while not said and not self._clock.number:
            time.sleep(_LOOK_S)
            passes, now_s = self._observation.passes, time.monotonic()
            if passes >= _PASSES_WITHOUT_STEP and now_s > began_s + _WITHOUT_STEP_S:
                said = f"it trains without an optimizer of torch: {passes} backward passes and no step of one"
            elif not passes and now_s > max(began_s + _WITHOUT_PASS_S, self._request.budget_ends_s):
                said = (
                    f"it calls its model for {now_s - began_s:.0f} s without a backward pass: it does not train, or "
                    "trains later and needs a larger --budget"
                )
        if said and not self._clock.number:
            ProcessStatus(self._pid, said=said).write(self._folder)

    def _count_skipped_steps(self) -> None:
        """A step that GradScaler leaves out is a step, too."""
        original = torch.amp.GradScaler.step

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self._stepped = False
            made = original(scaler, optimizer, *args, **kwargs)
            if not self._stepped and os.getpid() == self._pid:
                self._left_out = True
                self._clock.step(optimizer)
            return made

        torch.amp.GradScaler.step = step  # type: ignore[method-assign,assignment]

    def _on_step(self, number: int) -> None:
        """A step has ended, and the one of this number follows."""
        if not self._first_step_s:
            self._first_step_s = time.monotonic()
        before, self._skipped = self._skipped, self._remedies.skipped_steps
        self._remedies.step_ended(number - 1)
        if self._gate is None or self._observation is None:
            return
        if self._gate.open:
            self._gate.step()
            return
        if not self._arrives_at:
            self._observation.step(self._left_out or self._skipped > before)
            slow = self._is_slow()
            if slow or self._observation.steps == self._request.steps:
                self._observation.stop()
                self._models.stop()
                self._arrives_at = number + (1 if slow else WARMUP_STEPS)
        elif number > self._arrives_at:
            self._gate.arrive(self._ready())

    def _is_slow(self) -> bool:
        """Whether enough steps are compared for a training whose steps take long. Ranks have to make the same ones."""
        assert self._observation is not None
        long = time.monotonic() > self._first_step_s + _LONG_S
        return long and self._observation.steps >= _LEAST_STEPS and rank_and_world_size()[1] == 1

    def _ready(self) -> Ready:
        assert self._observation is not None
        rank, world_size = rank_and_world_size()
        ready = Ready(
            self._pid,
            rank,
            world_size,
            self._clock.number,
            time.monotonic() - self._request.launched_s,
            self._observation.checks(),
            self._remedies.no_effect(),
            self._remedies.codes(),
            torch.__version__,
            first_step_s=self._first_step_s,
            repeats=mostly_repeats(self._called.values()),
            sets_variables=_variables() != self._variables,
            cpu_count=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
        )
        if torch.cuda.is_initialized():
            ready.cuda = True
            ready.gpu = probe(torch.cuda.get_device_name) or ""
            ready.compute_capability = probe(torch.cuda.get_device_capability)
            free, _ = probe(torch.cuda.mem_get_info) or (None, None)
            ready.free_memory_bytes, ready.memory_bytes = free, probe(torch.cuda.max_memory_reserved)
            ready.peak_bytes = probe(torch.cuda.max_memory_allocated)
            ready.measures_kernels = torch.backends.cudnn.benchmark or bool(probe(_compiled_frames))
        return ready


def _variables() -> dict[str, str]:
    """Those of torch, which parts of it read when they are imported."""
    return {name: value for name, value in os.environ.items() if name.startswith(("TORCH", "PYTORCH"))}


def _compiled_frames() -> int:
    """How many functions torch.compile has compiled in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return 0 if dynamo is None else int(dynamo.counters["frames"]["ok"])
