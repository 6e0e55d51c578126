"""Activations computed again in the backward pass, or kept: memory against time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.called_models import repeated_blocks
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class ActivationCheckpointing(Remedy):
    name = "activation_checkpointing"
    title = "Repeated blocks compute their activations again"
    usual_percent = -20.0
    rules = ("batch_size",)
    changes = Changes.NOTHING
    may_change = "Nothing: random numbers of dropout are drawn again as before. Steps take longer and need less memory."
    group = "checkpointing"
    in_running_process = True

    def __init__(self) -> None:
        self._blocks = 0

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        from torch.utils.checkpoint import checkpoint

        def make(forward: Any) -> Any:
            def checkpointed(module: Any, *args: Any, **kwargs: Any) -> Any:
                import torch

                if not torch.is_grad_enabled() or not module.training:
                    return forward(module, *args, **kwargs)
                return checkpoint(forward, module, *args, use_reentrant=False, **kwargs)

            return checkpointed

        for block in repeated_blocks(model):
            hooks.wrap_method(block, "forward", make)
            self._blocks += 1

    def no_effect(self) -> str | None:
        return None if self._blocks else "The model has no list of blocks of the same class."

    def code(self) -> str:
        return (
            "from torch.utils.checkpoint import checkpoint\n\n"
            "for block in self.blocks:\n"
            "    x = checkpoint(block, x, use_reentrant=False)\n"
        )


class NoCheckpointing(Remedy):
    name = "no_checkpointing"
    title = "Activations are kept, not computed again"
    usual_percent = 20.0
    rules = ("recomputation",)
    changes = Changes.NOTHING
    may_change = "Nothing; steps need more memory."
    group = "checkpointing"
    in_running_process = True

    def __init__(self) -> None:
        self._calls = 0

    def on_import(self, hooks: TrialHooks) -> None:
        """What `checkpoint` calls is replaced: a script may hold the function itself."""
        import torch.utils.checkpoint as module

        class Kept:
            """In the place of the autograd function of reentrant checkpoints."""

            @staticmethod
            def apply(function: Any, preserve: bool, *args: Any) -> Any:
                self._calls += 1
                return function(*args)

        def keep(original: Any) -> Any:
            def around(*args: Any, **kwargs: Any) -> Any:
                self._calls += 1
                yield

            return around

        hooks.set(module, "CheckpointFunction", Kept)
        hooks.replace(module, "_checkpoint_without_reentrant_generator", keep)

    def no_effect(self) -> str | None:
        return None if self._calls else "The script does not call torch.utils.checkpoint."

    def code(self) -> str:
        return "x = block(x)  # instead of checkpoint(block, x)\n"


REMEDIES: tuple[type[Remedy], ...] = (ActivationCheckpointing, NoCheckpointing)
