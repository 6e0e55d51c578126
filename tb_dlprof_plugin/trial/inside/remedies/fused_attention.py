"""Attention in one kernel, where the model can use PyTorch's fused attention without an edit.

Three cases: fused kernels that the script has switched off; ``nn.MultiheadAttention`` that is asked for weights that
the caller drops; a model of transformers that computes attention step by step (``attn_implementation="eager"``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_SWITCHES = ("flash_sdp", "mem_efficient_sdp", "cudnn_sdp")


class FusedAttention(Remedy):
    name = "fused_attention"
    title = "Fused attention"
    usual_percent = 10.0
    rules = ("attention_not_fused",)
    changes = Changes.ROUNDING
    may_change = (
        "The same formula, rounded in another order; dropout draws other numbers. "
        "Attention weights that nn.MultiheadAttention returns are None."
    )
    in_running_process = True

    def __init__(self) -> None:
        self._changed = 0

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        import torch

        cuda = torch.backends.cuda
        for name in _SWITCHES:
            if hasattr(cuda, f"enable_{name}") and not getattr(cuda, f"{name}_enabled")():
                getattr(cuda, f"enable_{name}")(True)
                hooks.on_undo(partial(getattr(cuda, f"enable_{name}"), False))
                self._changed += 1
        for module in model.modules():
            if isinstance(module, torch.nn.MultiheadAttention):
                hooks.wrap_method(module, "forward", self._without_weights)
        self._use_sdpa(model, hooks)

    def _without_weights(self, forward: Any) -> Any:
        def attend(
            module: Any,
            query: Any,
            key: Any,
            value: Any,
            key_padding_mask: Any = None,
            need_weights: bool = True,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            self._changed += bool(need_weights)
            return forward(module, query, key, value, key_padding_mask, False, *args, **kwargs)

        return attend

    def _use_sdpa(self, model: nn.Module, hooks: TrialHooks) -> None:
        """Of transformers: its attention layers read the implementation from the configuration at each call."""
        config: Any = getattr(model, "config", None)
        choose = getattr(model, "set_attn_implementation", None)
        if config is None or getattr(config, "_attn_implementation", None) != "eager" or choose is None:
            return
        choose("sdpa")
        hooks.on_undo(lambda: choose("eager"))
        self._changed += 1

    def no_effect(self) -> str | None:
        return None if self._changed else "No attention was found that can be fused without an edit."

    def code(self) -> str:
        return "output = torch.nn.functional.scaled_dot_product_attention(query, key, value)\n"


REMEDIES: tuple[type[Remedy], ...] = (FusedAttention,)
