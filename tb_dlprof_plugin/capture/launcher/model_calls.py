"""Reports calls of a model while the module ranges are off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from tb_dlprof_plugin.capture.module_calls import OBSERVED
from tb_dlprof_plugin.capture.modules import walk


class CallsOfModel:
    """Observes each module of a model: the one that is called first is the one that user code calls.

    Args:
        on_call: called with the module before each call; must not raise.
    """

    def __init__(self, on_call: Callable[[nn.Module], None]) -> None:
        self._on_call = on_call
        self._leave: list[Callable[[], None]] = []

    def install(self, model: nn.Module) -> bool:
        """Begin with all modules. Returns whether there is any."""
        for _, module in walk(model):
            self.install_on(module)
        return bool(self._leave)

    def install_on(self, module: nn.Module) -> None:
        """Begin with this module only."""
        self._leave.append(OBSERVED.observe(self, module))

    def remove(self) -> None:
        """End with all of them."""
        leave, self._leave = self._leave, []
        for end in leave:
            end()

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call begins."""
        if self._leave:
            self._on_call(module)

    def after(self, module: nn.Module) -> None:
        """A call ends."""
