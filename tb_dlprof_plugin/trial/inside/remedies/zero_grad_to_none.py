"""Gradients are dropped after the step, not filled with zeros and added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class ZeroGradToNone(Remedy):
    name = "zero_grad_to_none"
    title = "zero_grad(set_to_none=True)"
    rules = ("zero_grad_to_zero",)
    changes = Changes.NOTHING
    may_change = (
        "Nothing for parameters that get a gradient in each step; others are passed over, "
        "where weight decay or momentum changed them."
    )
    in_running_process = True

    def __init__(self) -> None:
        self._changed = self._calls = 0

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        def make(original: Any) -> Any:
            def zero_grad(owner: Any, set_to_none: bool = True) -> None:
                self._calls += 1
                self._changed += not set_to_none
                original(owner, set_to_none=True)

            return zero_grad

        hooks.replace(torch.optim.Optimizer, "zero_grad", make)
        hooks.replace(torch.nn.Module, "zero_grad", make)

    def no_effect(self) -> str | None:
        if self._changed:
            return None
        return "zero_grad sets gradients to None already." if self._calls else "zero_grad is not called."

    def code(self) -> str:
        return "optimizer.zero_grad(set_to_none=True)\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        edits = []
        for call in script.methods("zero_grad"):
            of_false = [one.value for one in call.node.keywords if one.arg == "set_to_none"] + call.node.args
            edits += [call.file.replace(one, "True") for one in of_false if call.file.source(one) == "False"]
        return edits or None


REMEDIES: tuple[type[Remedy], ...] = (ZeroGradToNone,)
