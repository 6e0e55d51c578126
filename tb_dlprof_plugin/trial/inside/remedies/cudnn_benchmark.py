"""cuDNN measures its algorithms for each shape of a convolution and keeps the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tb_dlprof_plugin.trial.inside.gpu import needs_gpu
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_LINE = "torch.backends.cudnn.benchmark = True"


class CudnnBenchmark(Remedy):
    name = "cudnn_benchmark"
    title = "cuDNN picks the fastest algorithms"
    usual_percent = 5.0
    rules = ("cudnn_benchmark_off",)
    changes = Changes.ROUNDING
    may_change = "Another algorithm may add in another order; which one may differ from run to run."
    measures_kernels = True
    in_running_process = True
    of_kernels = True

    def __init__(self) -> None:
        self._was_on: bool | None = None

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_gpu(facts)

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        if self._was_on is None:
            self._was_on = torch.backends.cudnn.benchmark
        hooks.set(torch.backends.cudnn, "benchmark", True)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        # Between both the script has run, and may have set its own.
        self.on_import(hooks)

    def no_effect(self) -> str | None:
        import torch

        if not torch.cuda.is_initialized():
            return "The training uses no GPU."
        if self._was_on:
            return "torch.backends.cudnn.benchmark is on."
        return "The script asks for deterministic algorithms." if torch.backends.cudnn.deterministic else None

    def code(self) -> str:
        return f"{_LINE}\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        return script.script.after_imports(_LINE)


REMEDIES: tuple[type[Remedy], ...] = (CudnnBenchmark,)
