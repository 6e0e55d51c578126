"""Two Profiles in: matched ops and differences out."""

from tb_dlprof_plugin.comparison.match import Comparison, OpPair, OpSide, compare

__all__ = ["Comparison", "OpPair", "OpSide", "compare"]
