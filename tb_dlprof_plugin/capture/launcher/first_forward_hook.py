"""Forward pre-hook that reports calls of a model while the module ranges are off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.compiler import is_compiling

from tb_dlprof_plugin.capture.modules import walk


class FirstForwardHook:
    """A forward pre-hook on each module of a model: the module called first is the one that user code calls.

    Args:
        on_call: called with the module before each call; must not raise.
    """

    def __init__(self, on_call: Callable[[nn.Module], None]) -> None:
        self._on_call: Callable[[nn.Module], None] | None = on_call
        self._handles: list[Any] = []

    def install(self, model: nn.Module) -> bool:
        """Install the hooks. Returns whether any module accepted one."""
        for _, module in walk(model):
            self.install_on(module)
        return bool(self._handles)

    def install_on(self, module: nn.Module) -> None:
        """Install a hook on this module only. A module that refuses hooks is skipped."""
        try:
            self._handles.append(module.register_forward_pre_hook(_Hook(self), prepend=True))
        except Exception:
            return

    def remove(self) -> None:
        """Remove all hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        # A copy of the model made in the meantime may still hold the hook.
        self._on_call = None

    def called(self, module: nn.Module) -> None:
        """Called by the hook."""
        if self._on_call is not None:
            self._on_call(module)


class _Hook:
    """Copies as a hook that does nothing, with a copied or pickled model."""

    __slots__ = ("hook",)

    def __init__(self, hook: FirstForwardHook | None = None) -> None:
        self.hook = hook

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self.hook is not None and not is_compiling():
            self.hook.called(module)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hook:
        return _Hook()

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return (_Hook, ())
