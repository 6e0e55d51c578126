"""A Profile and a selection in, totals out: the one place where numbers are added up, for pages, advice and reports."""

from tb_dlprof_plugin.measures.frame import Frame, Selection

__all__ = ["Frame", "Selection"]
