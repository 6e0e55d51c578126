"""Runs the advice rules on a profile and a selection and returns findings: one rule per file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_dlprof_plugin.model.lazy_imports import imported_on_use

if TYPE_CHECKING:
    from tb_dlprof_plugin.advice.engine import Advice, advise

_HOME = {
    "Advice": "tb_dlprof_plugin.advice.engine",
    "advise": "tb_dlprof_plugin.advice.engine",
}

__all__ = ["Advice", "advise"]

__getattr__ = imported_on_use(__name__, _HOME)
