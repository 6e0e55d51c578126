"""All that is heard of a script outside of its recording, put on and taken off together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from tb_dlprof_plugin.capture.launcher.cuda_profiler_range import Marks
from tb_dlprof_plugin.capture.launcher.disable_emit_nvtx import IdleNvtx
from tb_dlprof_plugin.capture.launcher.first_call import FirstCall


class Ears:
    """Optimizers' steps, the first call of a model and, if wanted, the script's own marks.

    Args:
        on_step: called with the optimizer at the end of each of its steps.
        on_first_call: called once, with the module, before the first call of a model.
        on_mark: called at each ``torch.cuda.profiler.start()``.
        on_end_mark: called at each ``stop()``.
        on_error: called with what one of them raises.
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
        self._first_call = FirstCall(lambda module: self.quietly(on_first_call, module))
        self._marks = Marks(lambda: self.quietly(on_mark), lambda: self.quietly(on_end_mark))
        self._nvtx = IdleNvtx()
        self._handle: Any = None

    def put_on(self, marks: bool) -> None:
        """Begin to listen."""
        self._handle = register_optimizer_step_post_hook(self._after_step)
        self._first_call.start()
        self._nvtx.start()
        if marks:
            self._marks.start()

    def take_off(self) -> None:
        """Leave nothing behind."""
        self._first_call.stop()
        self._marks.stop()
        self._nvtx.stop()
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def quietly(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do something of ours within the script's own work: it must not raise there."""
        try:
            action(*arguments)
        except Exception as error:
            self._on_error(error)

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        # At each step of a training: no detour.
        try:
            self._on_step(optimizer)
        except Exception as error:
            self._on_error(error)
