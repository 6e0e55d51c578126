"""The allocator's segments grow, so that blocks of changing sizes leave no gaps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tb_dlprof_plugin.trial.inside.gpu import needs_gpu
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.facts import TrialFacts

_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_SETTING = "expandable_segments"


class ExpandableSegments(Remedy):
    name = "expandable_segments"
    title = "Allocator with expandable segments"
    usual_percent = -1.0
    rules = ("allocator_churn",)
    changes = Changes.NOTHING
    may_change = "Nothing; fewer gaps in the GPU's memory."

    def why_not(self, facts: TrialFacts) -> str | None:
        return f"{_SETTING} is set in the environment." if _SETTING in _given() else needs_gpu(facts)

    def environment(self) -> Mapping[str, str]:
        given = _given()
        # The older name is read by all versions.
        return {_VARIABLES[0]: f"{given},{_SETTING}:True" if given else f"{_SETTING}:True"}

    def no_effect(self) -> str | None:
        import torch

        return None if torch.cuda.is_initialized() else "The training uses no GPU."

    def code(self) -> str:
        return f"export {_VARIABLES[0]}={_SETTING}:True  # in the shell, before the script starts\n"


def _given() -> str:
    return next((given for name in _VARIABLES if (given := os.environ.get(name, "").strip())), "")


REMEDIES: tuple[type[Remedy], ...] = (ExpandableSegments,)
