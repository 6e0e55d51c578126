"""Calls back before the first call of each module that the script itself calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tb_dlprof_plugin.capture.module_calls import OBSERVED


class FirstModelCalls:
    """Until `stop`: calls ``on_model(module)`` before the first call of each module with parameters that no other
    module calls; what it raises goes to the caller of the module. What a checkpoint calls once more, in a backward
    pass, is not called by the script.

    While such a module runs, ``nn.Module.__call__`` is torch's own: what is compiled sees nothing of this.
    """

    def __init__(self, on_model: Callable[[nn.Module], None]) -> None:
        self._on_model = on_model
        # Held: the id of a module that is gone could be another's.
        self._known: dict[int, nn.Module] = {}
        self._leave: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin to observe all modules."""
        self._leave = OBSERVED.observe(self)

    def stop(self) -> None:
        """End the observation, and forget the modules."""
        leave, self._leave, self._known = self._leave, None, {}
        if leave is not None:
            leave()

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call begins."""
        in_backward = torch._C._current_graph_task_id() != -1
        if self._leave is None or in_backward or id(module) in self._known:
            OBSERVED.pause()
            return
        if torch.utils.data.get_worker_info() is None and next(module.parameters(), None) is not None:
            # A remedy may call the module, or compile it.
            OBSERVED.pause()
            try:
                self._known[id(module)] = module
                self._on_model(module)
            except BaseException:
                OBSERVED.resume()
                raise
        OBSERVED.pause()

    def after(self, module: nn.Module) -> None:
        """A call ends."""
        OBSERVED.resume()
