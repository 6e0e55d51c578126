"""Analyses a Timeline into a Profile: pure passes, one subject per file; `analyze_trace` runs them all."""

from tb_dlprof_plugin.analysis.build import analyze_ranks, analyze_trace, build_profile

__all__ = ["analyze_ranks", "analyze_trace", "build_profile"]
