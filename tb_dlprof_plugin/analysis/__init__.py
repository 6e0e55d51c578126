"""A Timeline in, a Profile out: pure passes, one subject a file; `analyze_trace` runs them all."""

from tb_dlprof_plugin.analysis.build import analyze_trace, build_profile

__all__ = ["analyze_trace", "build_profile"]
