"""The called modules are compiled by torch.compile, in one of its modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.called_models import repeated_blocks
from tb_dlprof_plugin.trial.inside.gpu import needs_gpu
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_MODULE_COMPILE = (2, 2)
"""The first torch with ``nn.Module.compile``."""


class _Compile(Remedy):
    mode = ""
    rules = ("no_fusion", "launch_bound", "small_kernels")
    changes = Changes.ROUNDING
    may_change = "Fused kernels round in another order; random numbers of dropout are drawn otherwise."
    group = "compile"
    measures_kernels = True
    in_running_process = True
    compiles = True

    def __init__(self) -> None:
        self._compiled = 0
        self._known: dict[int, Any] = {}
        """By id of the model."""
        self._kept = ""

    def why_not(self, facts: TrialFacts) -> str | None:
        if facts.torch_version and facts.torch_version < _MODULE_COMPILE:
            return "torch.compile of a module needs PyTorch 2.2."
        return None

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        from tb_dlprof_plugin.capture.wrappers import is_compiled_region

        if is_compiled_region(model):
            self._kept = "The script compiles the model itself."
            return
        if id(model) in self._known:
            # In a running process: it was switched off in between.
            model._compiled_call_impl = self._known[id(model)]
        else:
            model.compile(mode=self.mode or None)
        self._known[id(model)] = model._compiled_call_impl
        hooks.on_undo(lambda: setattr(model, "_compiled_call_impl", None))
        self._compiled += 1

    def no_effect(self) -> str | None:
        return None if self._compiled else self._kept or "The script calls no module."

    def code(self) -> str:
        mode = f', mode="{self.mode}"' if self.mode else ""
        return f"model = torch.compile(model{mode})\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        from tb_dlprof_plugin.trial.training_loop import find_training_loop

        loop = find_training_loop(script)
        if loop is None or not loop.model.isidentifier():
            return None
        # In place: names of parameters in checkpoints stay as they are.
        return [
            loop.before_loop(f"{loop.model}.compile({f'mode={self.mode!r}' if self.mode else ''})".replace("'", '"'))
        ]


class Compile(_Compile):
    name = "compile"
    title = "torch.compile"
    usual_percent = 20.0


class CompileReduceOverhead(_Compile):
    name = "compile_reduce_overhead"
    title = "torch.compile with CUDA graphs"
    usual_percent = 15.0
    mode = "reduce-overhead"

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_gpu(facts) or super().why_not(facts)


class CompileMaxAutotune(_Compile):
    name = "compile_max_autotune"
    title = "torch.compile that measures its kernels"
    usual_percent = -1.0
    mode = "max-autotune"


class CompileBlocks(_Compile):
    name = "compile_blocks"
    title = "torch.compile of repeated blocks"
    usual_percent = 18.0

    def usual(self, facts: TrialFacts) -> float:
        """It compiles one of many blocks, in a fraction of the time that the model takes, and gains about as much."""
        return Compile.usual_percent + 1.0 if facts.repeats else -1.0

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        """Blocks of one class share their code: it is compiled once (regional compilation)."""
        for block in repeated_blocks(model):
            super().on_model(block, hooks)

    def no_effect(self) -> str | None:
        return super().no_effect() and (self._kept or "The model has no list of blocks of the same class.")

    def code(self) -> str:
        return "for block in model.blocks:\n    block.compile()\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        # The name of the list of blocks is not known from the source.
        return None


class CompileStaticShapes(Remedy):
    """Of what the script compiles itself."""

    name = "compile_static_shapes"
    title = "torch.compile(dynamic=False)"
    rules = ("dynamic_shapes", "recompiles")
    changes = Changes.ROUNDING
    may_change = "Kernels of one size round in another order; each new size is compiled."
    measures_kernels = True
    usual_percent = -1.0

    def __init__(self) -> None:
        self._changed = self._kept = 0

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        def make(original: Any) -> Any:
            def with_static_shapes(*args: Any, **kwargs: Any) -> Any:
                if kwargs.get("dynamic") is None:
                    self._changed += 1
                    kwargs["dynamic"] = False
                else:
                    self._kept += 1
                return original(*args, **kwargs)

            return with_static_shapes

        # A module that is compiled in place calls it, too.
        hooks.replace(torch, "compile", make)

    def no_effect(self) -> str | None:
        if self._changed:
            return None
        return "The script says what shapes are dynamic." if self._kept else "The script compiles nothing."

    def code(self) -> str:
        return "model = torch.compile(model, dynamic=False)\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        calls = script.calls("torch.compile")
        unsaid = [call for call in calls if all(one.arg != "dynamic" for one in call.node.keywords)]
        edits = [one.file.set_keyword(one.node, "dynamic", "False") for one in unsaid]
        return [one for one in edits if one is not None] or None


REMEDIES: tuple[type[Remedy], ...] = (
    Compile, CompileBlocks, CompileReduceOverhead, CompileMaxAutotune, CompileStaticShapes
)  # fmt: skip
