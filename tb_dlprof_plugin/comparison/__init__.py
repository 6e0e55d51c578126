"""Two Profiles in: matched ops and differences out."""

from tb_dlprof_plugin.comparison.differences import Bucket, Comparison, OpPair, OpSide, compare

__all__ = ["Bucket", "Comparison", "OpPair", "OpSide", "compare"]
