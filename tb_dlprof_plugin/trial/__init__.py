"""Remedies tried on the user's own training: the experiment, its statistics and its verdicts.

What is imported from outside stands here and is loaded on first use. `inside` runs in the script's process and alone
imports torch, but for `inside.remedy` and `inside.remedies`, which the command reads, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.inside.try_step import try_step

__all__ = ["try_step"]


def __getattr__(name: str) -> Any:
    if name != "try_step":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tb_dlprof_plugin.capture import import_with_torch

    return import_with_torch(f"{__name__}.inside.try_step").try_step
