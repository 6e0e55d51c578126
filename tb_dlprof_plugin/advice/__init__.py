"""A Profile and a selection in, findings out: one rule per file, every threshold in `thresholds`."""

from tb_dlprof_plugin.advice.engine import Advice, advise

__all__ = ["Advice", "advise"]
