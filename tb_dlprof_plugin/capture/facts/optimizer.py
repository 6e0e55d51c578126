"""Which optimizer steps, and whether a GradScaler calls it: observed at the step itself, changing neither."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch.autograd.profiler as autograd_profiler
from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tb_dlprof_plugin.capture.facts.parameters import GradientWatch, SteppedParameters, state_bytes
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import RunFacts

_FRAMES_TO_SEARCH = 12
"""Between an optimizer's step and the GradScaler's lie its own wrapper, a scheduler's and a framework's."""
_MOST_KEPT_CHECKS = 1000
"""A recording of more steps does not count those that the device skipped."""


class OptimizerWatch:
    """Observes the first optimizer step of each recorded cycle, through torch's own hook for all optimizers.

    Args:
        on_step: called before every optimizer step while installed; must not raise.
    """

    def __init__(self, on_step: Callable[[], None] | None = None) -> None:
        self.optimizer: str | None = None
        self.grad_scaler: bool | None = None
        self.grad_scaler_scale: float | None = None
        self._on_step = on_step
        # Weak: the training must be able to free the scaler.
        self._scaler: Callable[[], Any] = _nothing
        # Results of the checks for inf that the recorded steps were given; read when the cycle ends.
        self._checks: list[torch.Tensor] = []
        self._stepped: Callable[[], Any] = _nothing
        self._gradients = GradientWatch()
        self._parameters = SteppedParameters()
        self._seen = False
        self._handle: Any = None

    def install(self) -> None:
        """Install the hook; does nothing if it is installed."""
        if self._handle is None:
            self._handle = register_optimizer_step_pre_hook(self._hook)

    def remove(self) -> None:
        """Stop watching."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        self._scaler = self._stepped = _nothing
        self._checks = []
        self._gradients.forget()
        self._parameters.forget()

    def new_cycle(self) -> None:
        """Observe the next recorded step again."""
        self._seen = False
        self._checks = []
        self._gradients.forget()
        self._parameters.forget()

    def fill(self, facts: RunFacts, optimizer: Any = None, model: Any = None) -> None:
        """Fill the optimizer's, its parameters' and the scaler's fields.

        ``optimizer`` is what the user passed and takes precedence; ``model`` has the parameters' names.
        """
        if optimizer is not None:
            facts.optimizer = probe(lambda: describe(optimizer))
        facts.optimizer = facts.optimizer or self.optimizer
        stepped = self.stepped(optimizer)
        if stepped is not None:
            facts.optimizer_state_bytes = probe(lambda: state_bytes(stepped))
        probe(lambda: self._gradients.fill(facts, model))
        probe(lambda: self._parameters.fill(facts, model))
        facts.grad_scaler = self.grad_scaler
        scaler = self._scaler()
        if not self.grad_scaler or scaler is None:
            return
        # Copies values from the GPU; the profiler has just synchronised with it anyway.
        facts.grad_scaler_scale = probe(lambda: float(scaler.get_scale()))
        facts.grad_scaler_growth_tracker = probe(lambda: int(scaler._get_growth_tracker()))
        if 0 < len(self._checks) < _MOST_KEPT_CHECKS:
            skipped = probe(lambda: sum(bool(check.item()) for check in self._checks))
            if skipped is not None:
                facts.device_checked_steps, facts.device_skipped_steps = len(self._checks), skipped

    def stepped(self, optimizer: Any = None) -> Any:
        """``optimizer``, else the one that stepped in this cycle; None if there was none or it is gone."""
        return self._stepped() if optimizer is None else optimizer

    def _hook(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if self._on_step is not None:
            self._on_step()
        recording = bool(autograd_profiler._is_profiler_enabled)
        if recording:
            probe(lambda: self._keep_check(optimizer))
            probe(lambda: self._parameters.look(optimizer))
        if self._seen:
            return
        if recording:
            probe(lambda: self._gradients.look(optimizer))
        self._seen = recording
        if not self._seen and self.optimizer is not None:
            # One observation before the recording is enough; it is used if all recorded steps are skipped for inf.
            return
        self.optimizer = probe(lambda: describe(optimizer))
        self._stepped = probe(lambda: weakref.ref(optimizer)) or _nothing
        scaler = probe(lambda: _calling_scaler(sys._getframe(1)))
        self._scaler = _nothing if scaler is None else weakref.ref(scaler)
        self.grad_scaler = probe(lambda: scaler is not None and bool(scaler.is_enabled()))

    def _keep_check(self, optimizer: Any) -> None:
        """A fused optimizer gets the result of the check for inf as a tensor and skips on the device, unseen in traces.

        The tensor is made for this one step (`torch.amp.GradScaler.step`) and is not changed later.
        """
        check = getattr(optimizer, "found_inf", None)
        if isinstance(check, torch.Tensor) and len(self._checks) < _MOST_KEPT_CHECKS:
            self._checks.append(check)


def describe(optimizer: Any) -> str:
    """Class name and the implementation asked for, such as ``AdamW(fused=True)`` or plain ``SGD``."""
    for _ in range(4):
        # Lightning and Accelerate wrap the optimizer.
        if isinstance(optimizer, torch.optim.Optimizer) and not hasattr(optimizer, "scaler"):
            break
        held = getattr(optimizer, "optimizer", None)
        if held is None:
            break
        optimizer = held
    defaults = getattr(optimizer, "defaults", {})
    asked = [f"{flag}={defaults[flag]}" for flag in ("foreach", "fused") if defaults.get(flag) is not None]
    name = type(optimizer).__name__
    return f"{name}({', '.join(asked)})" if asked else name


def _nothing() -> None:
    return None


def _calling_scaler(frame: FrameType | None) -> Any:
    """The GradScaler whose ``step`` is on the stack, or None: an optimizer has no reference to its scaler."""
    for _ in range(_FRAMES_TO_SEARCH):
        if frame is None:
            return None
        if frame.f_code.co_name in ("step", "_maybe_opt_step"):
            owner = frame.f_locals.get("self")
            if owner is not None and any(cls.__name__ == "GradScaler" for cls in type(owner).__mro__):
                return owner
        frame = frame.f_back
    return None
