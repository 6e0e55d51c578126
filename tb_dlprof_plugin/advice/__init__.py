"""Runs the advice rules on a profile and a selection and returns findings: one rule per file."""

from tb_dlprof_plugin.advice.engine import Advice, advise

__all__ = ["Advice", "advise"]
