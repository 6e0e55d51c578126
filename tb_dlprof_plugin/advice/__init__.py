"""Runs the advice rules on a profile and a selection and returns findings: one rule per file."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_dlprof_plugin.advice.engine import Advice, advise

_HOME = {
    "Advice": "tb_dlprof_plugin.advice.engine",
    "advise": "tb_dlprof_plugin.advice.engine",
}

__all__ = ["Advice", "advise"]


def __getattr__(name: str) -> Any:
    # Who needs one module of the package does not wait for the others.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
