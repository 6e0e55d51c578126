"""FSDP gathers the parameters of the next block while one computes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.gpu import needs_ranks
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class FsdpPrefetch(Remedy):
    name = "fsdp_prefetch"
    title = "FSDP gathers the next block's parameters early"
    rules = ("communication_bound",)
    changes = Changes.NOTHING
    may_change = "Nothing; the parameters of one block more are in memory."

    def __init__(self) -> None:
        self._changed = 0
        self._kept = ""

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_ranks(facts)

    def on_import(self, hooks: TrialHooks) -> None:
        from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel

        def change(arguments: dict[str, Any]) -> None:
            early = BackwardPrefetch.BACKWARD_PRE
            if arguments.get("forward_prefetch") and arguments.get("backward_prefetch", early) is early:
                self._kept = "FSDP gathers early in both passes already."
                return
            arguments["forward_prefetch"] = True
            arguments["backward_prefetch"] = early
            self._changed += 1

        hooks.before_init(FullyShardedDataParallel, change)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        """Of ``fully_shard``: the order of blocks is that of ``modules()``, as in its documentation."""
        sharded: list[Any] = [one for one in model.modules() if hasattr(one, "set_modules_to_forward_prefetch")]
        # The outermost one gathers what no block has.
        for block, following in pairwise(sharded[1:]):
            block.set_modules_to_forward_prefetch([following])
            hooks.on_undo(partial(block.set_modules_to_forward_prefetch, []))
            self._changed += 1

    def no_effect(self) -> str | None:
        return None if self._changed else self._kept or "The script makes no FSDP of several blocks."

    def code(self) -> str:
        return (
            "model = FullyShardedDataParallel(\n"
            "    model, ..., forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE\n"
            ")\n"
            "# or, after fully_shard:\n"
            "for block, following in zip(model.layers, model.layers[1:]):\n"
            "    block.set_modules_to_forward_prefetch([following])\n"
        )

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        calls = script.calls(
            "torch.distributed.fsdp.FullyShardedDataParallel",
            "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
        )
        edit = calls[0].file.set_keyword(calls[0].node, "forward_prefetch", "True") if len(calls) == 1 else None
        return None if edit is None else [edit]


REMEDIES: tuple[type[Remedy], ...] = (FsdpPrefetch,)
