"""Calls a function once a module has been imported, without importing it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from tb_dlprof_plugin.capture.warn import probe


def after_import(name: str, action: Callable[[], object]) -> None:
    """Call ``action`` now if the module is there, else when its import has ended. What it raises is swallowed."""
    if name in sys.modules:
        probe(action)
    else:
        sys.meta_path.insert(0, _ImportWatch(name, action))


class _ImportWatch:
    """A module finder that only makes the loader of one module call an action after the import."""

    def __init__(self, name: str, action: Callable[[], object]) -> None:
        self._name, self._action = name, action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                probe(lambda spec=spec: self._watch(spec.loader))  # type: ignore[misc]
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            # Once: `importlib.util.find_spec` creates a loader that is never used.
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            execute(module)
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)
                probe(self._action)

        # Set on the instance: the loader keeps its class, which other tools check.
        loader.exec_module = exec_module
