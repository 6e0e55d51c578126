"""Analyses a Timeline into a Profile: pure passes, one subject per file; `analyze_trace` runs them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_dlprof_plugin.model.lazy_imports import imported_on_use

if TYPE_CHECKING:
    from tb_dlprof_plugin.analysis.build import analyze_ranks, analyze_trace, build_profile

_HOME = {
    "analyze_ranks": "tb_dlprof_plugin.analysis.build",
    "analyze_trace": "tb_dlprof_plugin.analysis.build",
    "build_profile": "tb_dlprof_plugin.analysis.build",
}

__all__ = ["analyze_ranks", "analyze_trace", "build_profile"]

__getattr__ = imported_on_use(__name__, _HOME)
