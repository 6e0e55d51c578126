"""Calls back once, before the first call of a model; every function that it replaces is restored before that call.

Inference has no optimizer whose steps could be counted, and module names start at the module that is called. A global
forward hook would do too, but slows down every module, makes torch.compile warn and causes recompilations.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling

_DYNAMO = "torch._dynamo.utils"
"""Stores ``nn.Module.__call__`` at import, and compiles differently if it is another one later."""


class FirstCallHook:
    """Until `stop`: calls ``on_first_call(module)`` before the first call of a module with parameters; it must not
    raise.

    A model compiled by torch.compile gets a hook of its own; a compiled function gets none.
    """

    def __init__(self, on_first_call: Callable[[nn.Module], None]) -> None:
        self._on_first_call = on_first_call
        self._call: Any = nn.Module.__call__
        self._compile: Any = torch.compile
        self._handles: list[Any] = []
        self._waiting = self._compiled = False
        self._replacement = self._make_call()
        self._compile_replacement = self._make_compile()

    def start(self) -> None:
        """Install the replacements."""
        self._waiting = True
        self._replace()
        torch.compile = self._compile_replacement
        if _DYNAMO not in sys.modules:
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Restore everything."""
        self._waiting = False
        self._restore()
        if torch.compile is self._compile_replacement:
            torch.compile = self._compile
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """A module finder that finds nothing, but removes the replacement while Dynamo is imported."""
        if name == _DYNAMO:
            # Replaced again at the next module lookup: Dynamo's own imports continue after this one.
            self._restore()
        elif _DYNAMO in sys.modules and hasattr(sys.modules[_DYNAMO], "unpatched_nn_module_call"):
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)
            if self._waiting:
                self._replace()

    def _replace(self) -> None:
        if nn.Module.__call__ is self._call and not self._compiled:
            setattr(nn.Module, "__call__", self._replacement)  # noqa: B010 (as a method it must not be assigned to)

    def _restore(self) -> None:
        if nn.Module.__call__ is self._replacement:
            setattr(nn.Module, "__call__", self._call)  # noqa: B010

    def _make_call(self) -> Any:
        original = self._call

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._waiting and not is_compiling():
                self._report_model(module)
            return original(module, *args, **kwargs)

        return __call__

    def _make_compile(self) -> Any:
        original = self._compile

        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:
            # What is compiled must not see the replacement, now or when it is compiled again.
            self._compiled = True
            self._restore()
            made = original(*args, **kwargs)
            if self._waiting and isinstance(made, nn.Module):
                with contextlib.suppress(Exception):
                    self._handles.append(made.register_forward_pre_hook(lambda module, _: self._report_model(module)))
            return made

        return compile

    def _report_model(self, module: nn.Module) -> None:
        if not self._waiting:
            return
        try:
            counts = torch.utils.data.get_worker_info() is None and next(module.parameters(), None) is not None
        except Exception:
            return
        if counts:
            self.stop()
            self._on_first_call(module)
