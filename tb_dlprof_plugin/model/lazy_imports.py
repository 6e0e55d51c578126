"""Names of a package that are imported on first use: who needs one module does not wait for the others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def imported_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Args:
        package: its name.
        homes: of each name its module, and after a colon what it is called there if that is another name.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, other = homes[name].partition(":")
        return getattr(importlib.import_module(module), other or name)

    return attribute
