"""Hears of the next call of a model, while no module ranges are there to hear of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.compiler import is_compiling

from tb_dlprof_plugin.capture.modules import walk


class Door:
    """A forward pre-hook on each module of a model: whichever is called first is the one that is called from outside.

    Args:
        on_call: called with the module before each call; must not raise.
    """

    def __init__(self, on_call: Callable[[nn.Module], None]) -> None:
        self._on_call: Callable[[nn.Module], None] | None = on_call
        self._handles: list[Any] = []

    def install(self, model: nn.Module) -> bool:
        """Put the hooks on; whether there is a module that took one."""
        for _, module in walk(model):
            self.install_on(module)
        return bool(self._handles)

    def install_on(self, module: nn.Module) -> None:
        """Put a hook on this module alone. One that refuses hooks is left out."""
        try:
            self._handles.append(module.register_forward_pre_hook(_Hook(self), prepend=True))
        except Exception:
            return

    def remove(self) -> None:
        """Take all hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        # A copy of the model made meanwhile may still hold the hook.
        self._on_call = None

    def called(self, module: nn.Module) -> None:
        """From the hook."""
        if self._on_call is not None:
            self._on_call(module)


class _Hook:
    """A copied or pickled model takes along one that does nothing."""

    __slots__ = ("door",)

    def __init__(self, door: Door | None = None) -> None:
        self.door = door

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self.door is not None and not is_compiling():
            self.door.called(module)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hook:
        return _Hook()

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return (_Hook, ())
