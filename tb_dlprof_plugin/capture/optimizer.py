"""Which optimizer steps, and whether a GradScaler makes it step: seen at the step itself, without touching either."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch.autograd.profiler as autograd_profiler
from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.storage.facts import RunFacts

_FRAMES_TO_SEARCH = 12
"""Between an optimizer's step and the GradScaler's lie its own wrapper, a scheduler's and a framework's."""


class OptimizerWatch:
    """Looks at the first optimizer step of each recorded cycle, through torch's own hook for all optimizers.

    Args:
        on_step: called before every optimizer step while installed; must not raise.
    """

    def __init__(self, on_step: Callable[[], None] | None = None) -> None:
        self.optimizer: str | None = None
        self.grad_scaler: bool | None = None
        self.grad_scaler_scale: float | None = None
        self._on_step = on_step
        self._scaler: Any = None
        self._seen = False
        self._handle: Any = None

    def install(self) -> None:
        """Begin to watch; does nothing if it already does."""
        if self._handle is None:
            self._handle = register_optimizer_step_pre_hook(self._hook)

    def remove(self) -> None:
        """Stop watching."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        self._scaler = None

    def new_cycle(self) -> None:
        """Look again at the next recorded step."""
        self._seen = False
        self._scaler = None

    def fill(self, facts: RunFacts, optimizer: Any = None) -> None:
        """Fill the optimizer's and the scaler's fields; ``optimizer`` is what the user passed and counts first."""
        if optimizer is not None:
            facts.optimizer = probe(lambda: describe(optimizer))
        facts.optimizer = facts.optimizer or self.optimizer
        facts.grad_scaler = self.grad_scaler
        if self.grad_scaler and self._scaler is not None:
            # Reads a value off the GPU; the profiler has just waited for it anyway.
            facts.grad_scaler_scale = probe(lambda: float(self._scaler.get_scale()))

    def _hook(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if self._on_step is not None:
            self._on_step()
        if self._seen:
            return
        self._seen = bool(autograd_profiler._is_profiler_enabled)
        if not self._seen and self.optimizer is not None:
            # One look before the recording is enough; it counts where the recorded steps are all skipped for inf.
            return
        self.optimizer = probe(lambda: describe(optimizer))
        self._scaler = probe(lambda: _calling_scaler(sys._getframe(1)))
        self.grad_scaler = probe(lambda: self._scaler is not None and bool(self._scaler.is_enabled()))


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


def _calling_scaler(frame: FrameType | None) -> Any:
    """The GradScaler in whose ``step`` we are, or None. Only the stack knows: an optimizer does not know its scaler."""
    for _ in range(_FRAMES_TO_SEARCH):
        if frame is None:
            return None
        if frame.f_code.co_name in ("step", "_maybe_opt_step"):
            owner = frame.f_locals.get("self")
            if owner is not None and any(cls.__name__ == "GradScaler" for cls in type(owner).__mro__):
                return owner
        frame = frame.f_back
    return None
