"""The CPU does not wait for the GPU in each step."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.gpu import needs_gpu
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_LIBRARIES = ("torch", "triton")


class NoSynchronize(Remedy):
    name = "no_synchronize"
    title = "No torch.cuda.synchronize() in the loop"
    usual_percent = 3.0
    rules = ("synchronising_calls",)
    changes = Changes.NOTHING
    may_change = (
        "Nothing, unless the script copies from the GPU without waiting and reads the copy; times it prints do."
    )
    in_running_process = True

    def __init__(self) -> None:
        self._calls = 0

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_gpu(facts)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        import torch

        if self._calls:
            return

        def make(original: Any) -> Any:
            def synchronize(device: Any = None) -> None:
                # The frame between is that of the function whose code was replaced.
                caller = str(sys._getframe(2).f_globals.get("__name__", ""))
                if caller.partition(".")[0] in _LIBRARIES:
                    # What torch.compile measures to choose a kernel has to be over.
                    original(device)
                else:
                    self._calls += 1

            return synchronize

        hooks.replace_everywhere(torch.cuda.synchronize, make)

    def no_effect(self) -> str | None:
        return None if self._calls else "The training loop does not call torch.cuda.synchronize()."

    def code(self) -> str:
        return "# remove torch.cuda.synchronize() from the training loop\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        from tb_dlprof_plugin.trial.training_loop import find_training_loop

        loop = find_training_loop(script)
        return None if loop is None else loop.without("torch.cuda.synchronize")


REMEDIES: tuple[type[Remedy], ...] = (NoSynchronize,)
