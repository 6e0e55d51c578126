"""Calls back before the first call of each module that the script itself calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling

from tb_dlprof_plugin.capture.launcher.first_call import FirstCallHook


class ModelCalls(FirstCallHook):
    """Until `stop`: calls ``on_model(module)`` before the first call of each module with parameters that no other
    module calls.

    While such a module runs, ``nn.Module.__call__`` is torch's own: what is compiled sees nothing of this.
    """

    def __init__(self, on_model: Callable[[nn.Module], None]) -> None:
        super().__init__(self._once)
        self._on_model = on_model
        # Held: the id of a module that is gone could be another's.
        self._known: dict[int, nn.Module] = {}

    def stop(self) -> None:
        """Restore everything, and forget the modules."""
        super().stop()
        self._known = {}

    def _once(self, module: nn.Module) -> None:
        if id(module) not in self._known:
            self._known[id(module)] = module
            self._on_model(module)

    def _make_call(self) -> Any:
        original = self._call

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if not self._waiting or is_compiling():
                return original(module, *args, **kwargs)
            self._restore()
            try:
                self._report_model(module)
                return original(module, *args, **kwargs)
            finally:
                if self._waiting:
                    self._replace()

        return functools.wraps(original)(__call__)

    def _report_model(self, module: nn.Module) -> None:
        if torch.utils.data.get_worker_info() is not None or next(module.parameters(), None) is None:
            return
        # A remedy may compile the module; that is not a compilation of the script's.
        torch.compile, ours = self._compile, torch.compile
        try:
            self._once(module)
        finally:
            torch.compile = ours
