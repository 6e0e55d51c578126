"""All remedies, one file each: the value `REMEDY` of a module, or the tuple `REMEDIES` where one file has several."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from tb_dlprof_plugin.trial.inside.remedy import Remedy


@cache
def classes() -> dict[str, type[Remedy]]:
    """By name, in order of names."""
    found: dict[str, type[Remedy]] = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for remedy in getattr(loaded, "REMEDIES", ()):
            found[remedy.name] = remedy
    return dict(sorted(found.items()))


def make(name: str) -> Remedy:
    """A new remedy of this name: each process and each trial has its own, because remedies count what they do.

    Raises:
        KeyError: there is none of this name.
    """
    return classes()[name]()
