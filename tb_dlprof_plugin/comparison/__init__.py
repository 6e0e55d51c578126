"""Compares two profiles: matches their ops and returns the differences."""

from tb_dlprof_plugin.comparison.compared_run import OpSide
from tb_dlprof_plugin.comparison.differences import Bucket, Comparison, OpPair, compare

__all__ = ["Bucket", "Comparison", "OpPair", "OpSide", "compare"]
