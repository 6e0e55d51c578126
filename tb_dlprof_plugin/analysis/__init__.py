"""Analyses a Timeline into a Profile: pure passes, one subject per file; `analyze_trace` runs them all."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_dlprof_plugin.analysis.build import analyze_ranks, analyze_trace, build_profile

_HOME = {
    "analyze_ranks": "tb_dlprof_plugin.analysis.build",
    "analyze_trace": "tb_dlprof_plugin.analysis.build",
    "build_profile": "tb_dlprof_plugin.analysis.build",
}

__all__ = ["analyze_ranks", "analyze_trace", "build_profile"]


def __getattr__(name: str) -> Any:
    # Who needs one module of the package does not wait for the others.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
