"""Python's garbage collector passes over what lives as long as the training, and is not called in each step."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_FROZEN_AT = 2
"""Steps: what a training keeps, its optimizer's state included, has been made then."""


class FrozenGarbage(Remedy):
    name = "frozen_garbage"
    title = "Garbage collector frozen after the start"
    rules = ("gpu_gaps",)
    changes = Changes.NOTHING
    may_change = "Nothing; what is frozen is not collected before the end."
    in_running_process = True

    def __init__(self) -> None:
        self._frozen = 0
        self._collect: Any = None

    def on_import(self, hooks: TrialHooks) -> None:
        self._collect = gc.collect
        # A script that collects in each step walks through everything that it keeps.
        hooks.replace(gc, "collect", lambda original: lambda *args, **kwargs: 0)
        hooks.on_undo(gc.unfreeze)

    def on_step(self, step: int) -> None:
        if step == _FROZEN_AT:
            if not self._frozen:
                # In a running process it may be switched on again and again.
                self._collect()
            gc.freeze()
            self._frozen = gc.get_freeze_count()

    def no_effect(self) -> str | None:
        return None if self._frozen else "The training ended before anything was frozen."

    def code(self) -> str:
        return "gc.collect()\ngc.freeze()  # once, after the first steps; no gc.collect() in the loop\n"


class NoEmptyCache(Remedy):
    name = "no_empty_cache"
    title = "The allocator's cache is not emptied"
    usual_percent = 2.0
    rules = ("allocator_churn",)
    changes = Changes.NOTHING
    may_change = "Nothing; the process keeps memory of the GPU that it has freed."
    in_running_process = True

    def __init__(self) -> None:
        self._calls = 0

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        """From the first call of the model on: before it, what the start needed may be given back."""
        import torch

        if self._calls:
            return

        def make(original: Any) -> Any:
            def empty_cache() -> None:
                self._calls += 1

            return empty_cache

        hooks.replace_everywhere(torch.cuda.empty_cache, make)

    def no_effect(self) -> str | None:
        return None if self._calls else "The training loop does not call torch.cuda.empty_cache()."

    def code(self) -> str:
        return "# remove torch.cuda.empty_cache() from the training loop\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        from tb_dlprof_plugin.trial.training_loop import find_training_loop

        loop = find_training_loop(script)
        return None if loop is None else loop.without("torch.cuda.empty_cache")


REMEDIES: tuple[type[Remedy], ...] = (FrozenGarbage, NoEmptyCache)
