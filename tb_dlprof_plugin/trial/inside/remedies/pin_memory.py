"""Batches in page-locked memory, which the GPU reads directly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.gpu import needs_gpu
from tb_dlprof_plugin.trial.inside.loader_remedy import LoaderRemedy, value
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class PinMemory(LoaderRemedy):
    name = "pin_memory"
    title = "DataLoader with pinned memory"
    usual_percent = 2.0
    rules: tuple[str, ...] = ("pageable_copies", "slow_copies")
    changes = Changes.NOTHING
    may_change = "Nothing; batches lie in page-locked memory of the host."
    group = "pinned"
    in_running_process = True
    keywords = (("pin_memory", "True"),)

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_gpu(facts) or super().why_not(facts)

    def change(self, arguments: dict[str, Any]) -> str | None:
        if value(arguments, "pin_memory", False):
            return "it pins memory already"
        arguments["pin_memory"] = True
        return None


class NonBlocking(PinMemory):
    name = "non_blocking"
    title = "Pinned memory and copies that the CPU does not wait for"
    usual_percent = 3.0
    rules = ("blocking_copies", "pageable_copies", "copies_not_overlapped")
    may_change = "Nothing, unless the script writes into a batch on the CPU after it has started the copy."

    def __init__(self) -> None:
        super().__init__()
        self._copies = 0

    def change(self, arguments: dict[str, Any]) -> str | None:
        super().change(arguments)
        return None

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        super().on_import(hooks)

        def without_wait(original: Any) -> Any:
            def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
                # From pinned memory alone: the other direction would give numbers before they have arrived.
                if not tensor.is_cuda and "non_blocking" not in kwargs and tensor.is_pinned():
                    positional = any(isinstance(one, bool) for one in args)
                    if not positional:
                        kwargs["non_blocking"] = True
                        self._copies += 1
                return original(tensor, *args, **kwargs)

            return copy

        hooks.replace(torch.Tensor, "to", without_wait)
        hooks.replace(torch.Tensor, "cuda", without_wait)

    def no_effect(self) -> str | None:
        return None if self._copies else "No batch in pinned memory is copied to the GPU by to() or cuda()."

    def code(self) -> str:
        return super().code() + "inputs = inputs.to(device, non_blocking=True)\n"

    def patch(self, script: Any) -> Any:
        # Which copies are of batches is not known from the source.
        return None


REMEDIES: tuple[type[Remedy], ...] = (PinMemory, NonBlocking)
