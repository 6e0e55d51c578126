"""The hooks that are active outside of a recording, installed and removed as a set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from tb_dlprof_plugin.capture.launcher.cuda_profiler_range import ProfilerRangeHooks
from tb_dlprof_plugin.capture.launcher.disable_emit_nvtx import EmitNvtxDisabler
from tb_dlprof_plugin.capture.launcher.first_call import FirstCallHook


class HookSet:
    """Hooks on optimizer steps, the first call of a model and, if requested, cudaProfilerStart/Stop.

    Args:
        on_step: called with the optimizer at the end of each of its steps.
        on_first_call: called once, with the module, before the first call of a model.
        on_mark: called at each ``torch.cuda.profiler.start()``.
        on_end_mark: called at each ``stop()``.
        on_error: called with an exception that one of them raises.
    """

    def __init__(
        self,
        on_step: Callable[[Optimizer], None],
        on_first_call: Callable[[nn.Module], None],
        on_mark: Callable[[], None],
        on_end_mark: Callable[[], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._on_step, self._on_error = on_step, on_error
        self._first_call = FirstCallHook(lambda module: self.quietly(on_first_call, module))
        self._marks = ProfilerRangeHooks(lambda: self.quietly(on_mark), lambda: self.quietly(on_end_mark))
        self._nvtx = EmitNvtxDisabler()
        self._handle: Any = None

    def install(self, marks: bool) -> None:
        """Install all hooks."""
        self._handle = register_optimizer_step_post_hook(self._after_step)
        self._first_call.start()
        self._nvtx.start()
        if marks:
            self._marks.start()

    def remove(self) -> None:
        """Remove all hooks."""
        self._first_call.stop()
        self._marks.stop()
        self._nvtx.stop()
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def quietly(self, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action``; an exception goes to ``on_error``, not into the script."""
        try:
            action(*arguments)
        except Exception as error:
            self._on_error(error)

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        # Not through `quietly`: this runs at each step of a training.
        try:
            self._on_step(optimizer)
        except Exception as error:
            self._on_error(error)
