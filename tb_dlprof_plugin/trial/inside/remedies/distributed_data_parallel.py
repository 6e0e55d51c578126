"""Settings of DistributedDataParallel: buckets, static graph, BF16 gradients, and fewer exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.gpu import needs_ranks
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_DDP = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")


class _Ddp(Remedy):
    """Changes arguments of the constructor."""

    rules: tuple[str, ...] = ("communication_bound",)
    keyword: tuple[str, str] = ("", "")

    def __init__(self) -> None:
        self._changed = 0
        self._kept = ""

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_ranks(facts)

    def change(self, arguments: dict[str, Any]) -> str | None:
        """Change the arguments; returns why they stay as they are, else None."""
        raise NotImplementedError

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        def change(arguments: dict[str, Any]) -> None:
            kept = self.change(arguments)
            self._changed += kept is None
            self._kept = self._kept or kept or ""

        hooks.before_init(torch.nn.parallel.DistributedDataParallel, change)

    def no_effect(self) -> str | None:
        return None if self._changed else self._kept or "The script makes no DistributedDataParallel."

    def code(self) -> str:
        name, value = self.keyword
        return f"model = DistributedDataParallel(model, ..., {name}={value})\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        calls = script.calls(*_DDP)
        edit = calls[0].file.set_keyword(calls[0].node, *self.keyword) if len(calls) == 1 else None
        return None if edit is None else [edit]


class _Buckets(_Ddp):
    megabytes = 0
    changes = Changes.ROUNDING
    may_change = "Gradients are added in another order."
    group = "ddp_buckets"

    def change(self, arguments: dict[str, Any]) -> str | None:
        if arguments.get("bucket_cap_mb") == self.megabytes:
            return f"Buckets have {self.megabytes} MB already."
        arguments["bucket_cap_mb"] = self.megabytes
        return None


class DdpBuckets10(_Buckets):
    name, title, megabytes = "ddp_buckets_10", "DDP buckets of 10 MB", 10
    keyword = ("bucket_cap_mb", "10")


class DdpBuckets100(_Buckets):
    name, title, megabytes = "ddp_buckets_100", "DDP buckets of 100 MB", 100
    keyword = ("bucket_cap_mb", "100")


class _Flag(_Ddp):
    wanted = True
    kept = ""

    def change(self, arguments: dict[str, Any]) -> str | None:
        name = self.keyword[0]
        if bool(arguments.get(name, False)) == self.wanted:
            return self.kept
        arguments[name] = self.wanted
        return None


class DdpStaticGraph(_Flag):
    name = "ddp_static_graph"
    title = "DDP with a static graph"
    changes = Changes.NOTHING
    may_change = "Nothing where each step uses the same parameters; else gradients are wrong or the script fails."
    keyword = ("static_graph", "True")
    kept = "The graph is static already."


class DdpBucketView(_Flag):
    name = "ddp_bucket_view"
    title = "DDP gradients lie in their buckets"
    changes = Changes.NOTHING
    may_change = "Nothing; gradients are views of the buckets, which saves a copy and its memory."
    keyword = ("gradient_as_bucket_view", "True")
    kept = "Gradients are views of the buckets already."


class DdpNoUnusedSearch(_Flag):
    name = "ddp_no_unused_search"
    title = "DDP does not search for unused parameters"
    rules = ("communication_bound", "unused_parameters")
    changes = Changes.NOTHING
    may_change = "Nothing where each step uses all parameters; else the script fails."
    keyword = ("find_unused_parameters", "False")
    wanted = False
    kept = "It does not search for them."


class DdpBf16Gradients(_Ddp):
    name = "ddp_bf16_gradients"
    title = "DDP exchanges gradients in BF16"
    changes = Changes.ROUNDING
    may_change = "Gradients are rounded to 8 bits of mantissa before they are added over the ranks."

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        hooks.after_init(torch.nn.parallel.DistributedDataParallel, self._register)

    def _register(self, wrapped: Any) -> None:
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

        wrapped.register_comm_hook(None, bf16_compress_hook)
        self._changed += 1

    def code(self) -> str:
        return (
            "from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook\n\n"
            "model.register_comm_hook(None, bf16_compress_hook)  # model: the DistributedDataParallel\n"
        )

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        return None


class NoSync(_Ddp):
    name = "no_sync"
    title = "DDP exchanges gradients once per step"
    changes = Changes.ROUNDING
    may_change = "Gradients of the step's batches are added on each rank first: another order of the same sum."

    def __init__(self) -> None:
        super().__init__()
        self._of_script = False
        # Forward passes since the last step, those of the last two steps.
        self._forwards = 0
        self._per_step: list[int] = []

    def on_import(self, hooks: TrialHooks) -> None:
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        def make(original: Any) -> Any:
            def forward(wrapped: Any, *args: Any, **kwargs: Any) -> Any:
                if not torch.is_grad_enabled() or not wrapped.require_backward_grad_sync:
                    self._of_script = self._of_script or torch.is_grad_enabled()
                    return original(wrapped, *args, **kwargs)
                self._forwards += 1
                last = self._accumulated
                if last is None or self._forwards >= last:
                    return original(wrapped, *args, **kwargs)
                self._changed += 1
                with wrapped.no_sync():
                    return original(wrapped, *args, **kwargs)

            return forward

        hooks.replace(torch.nn.parallel.DistributedDataParallel, "forward", make)
        handle = register_optimizer_step_post_hook(self._after_step)
        hooks.on_undo(handle.remove)

    @property
    def _accumulated(self) -> int | None:
        """Forward passes per step, where the last two steps had the same number."""
        steps = self._per_step
        return steps[0] if len(steps) == 2 and steps[0] == steps[1] else None

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._per_step = [*self._per_step[-1:], self._forwards]
        self._forwards = 0

    def no_effect(self) -> str | None:
        if self._changed:
            return None
        return "The script uses no_sync() itself." if self._of_script else "Each step has one forward pass."

    def code(self) -> str:
        return (
            "with contextlib.nullcontext() if last_batch_of_the_step else model.no_sync():\n"
            "    loss = loss_fn(model(inputs), targets)\n"
            "    loss.backward()\n"
        )

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        return None


REMEDIES: tuple[type[Remedy], ...] = (
    DdpBuckets10,
    DdpBuckets100,
    DdpStaticGraph,
    DdpBucketView,
    DdpNoUnusedSearch,
    DdpBf16Gradients,
    NoSync,
)
