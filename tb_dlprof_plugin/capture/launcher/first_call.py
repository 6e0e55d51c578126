"""Calls back once, before the first call of a model.

Inference has no optimizer whose steps could be counted, and module names start at the module that is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tb_dlprof_plugin.capture.module_calls import OBSERVED


class FirstCallHook:
    """Until `stop`: calls ``on_first_call(module)`` before the first call of a module with parameters; it must not
    raise.

    A compiled function has no such call.
    """

    def __init__(self, on_first_call: Callable[[nn.Module], None]) -> None:
        self._on_first_call = on_first_call
        self._leave: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin to observe all modules."""
        self._leave = OBSERVED.observe(self)

    def stop(self) -> None:
        """End the observation; does nothing after it."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call begins."""
        if self._leave is None:
            return
        try:
            counts = torch.utils.data.get_worker_info() is None and next(module.parameters(), None) is not None
        except Exception:
            return
        if counts:
            self.stop()
            self._on_first_call(module)

    def after(self, module: nn.Module) -> None:
        """A call ends."""
