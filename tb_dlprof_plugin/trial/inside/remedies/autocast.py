"""Mixed precision: the called modules run under autocast, and give their outputs in FP32 as Accelerate does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.called_models import device_type, map_tensors
from tb_dlprof_plugin.trial.inside.gpu import needs_ampere, needs_gpu, needs_tensor_cores
from tb_dlprof_plugin.trial.inside.loss_scaling import LossScaling
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class _Autocast(Remedy):
    dtype = ""
    changes = Changes.ROUNDING
    of_kernels = True
    group = "precision"

    def __init__(self) -> None:
        self._calls = self._wrapped = 0
        self._kept = ""

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        import torch

        device, dtype = device_type(model), getattr(torch, self.dtype)
        if torch.is_autocast_enabled(device):
            # This is in the middle of the script's call.
            self._kept = "The script uses autocast itself."
            return
        self._wrapped += 1

        def make(forward: Any) -> Any:
            def under_autocast(module: Any, *args: Any, **kwargs: Any) -> Any:
                if not torch.compiler.is_compiling():
                    if torch.is_autocast_enabled(device):
                        self._kept = "The script uses autocast itself."
                        return forward(module, *args, **kwargs)
                    self._calls += 1
                with torch.autocast(device, dtype=dtype):
                    output = forward(module, *args, **kwargs)
                return map_tensors(_float, output)

            return under_autocast

        def _float(tensor: Any) -> Any:
            return tensor.float() if tensor.dtype is dtype else tensor

        hooks.wrap_method(model, "forward", make)

    def no_effect(self) -> str | None:
        # Calls within compiled code are not counted.
        if self._calls or (self._wrapped and not self._kept):
            return None
        return self._kept or "The script calls no module."

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        from tb_dlprof_plugin.trial.training_loop import find_training_loop

        loop = find_training_loop(script)
        if loop is None or script.calls("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast"):
            return None
        # A script that does not name the GPU runs without it.
        device = "cuda" if any("cuda" in file.text for file in script.files) else "cpu"
        edits = loop.wrap_forward(f'with torch.autocast("{device}", dtype=torch.{self.dtype}):')
        return edits if loop.file.imports("torch") else None


_LONG_STEP_MS, _LONG_STEP_PERCENT = 30.0, 10.0
"""On a CPU that multiplies BF16: steps of 40 to 180 ms took 12 to 45 % less time (three scripts of lab/trying/unseen),
of 2 to 25 ms between 28 % less and 42 % more (seven). EPYC of Zen 4, torch 2.13."""


class Bf16Autocast(_Autocast):
    name = "bf16_autocast"
    title = "Mixed precision with BF16"
    usual_percent = 30.0
    rules = ("amp_not_used",)
    may_change = "Products are rounded to 8 bits of mantissa (BF16), sums stay in FP32; the range is FP32's."
    dtype = "bfloat16"
    in_running_process = True

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_ampere(facts)

    def usual(self, facts: TrialFacts) -> float:
        if facts.cuda:
            return super().usual(facts)
        if not facts.cpu_multiplies_bf16:
            # Products of BF16 are computed in FP32.
            return -1.0
        # Casts cost about the same in a short step.
        return _LONG_STEP_PERCENT if (facts.step_ms or 0.0) >= _LONG_STEP_MS else 0.0

    def code(self) -> str:
        from tb_dlprof_plugin.advice.code_snippets import BF16

        return BF16


class Fp16Autocast(_Autocast):
    name = "fp16_autocast"
    title = "Mixed precision with FP16 and GradScaler"
    usual_percent = 25.0
    rules = ("amp_not_used",)
    may_change = (
        "Products are rounded to 11 bits of mantissa (FP16); losses are scaled, "
        "and steps whose gradients overflow are skipped."
    )
    dtype = "float16"
    in_running_process = True

    def __init__(self) -> None:
        super().__init__()
        self._scaling = LossScaling()

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_gpu(facts) or needs_tensor_cores(facts)

    def on_import(self, hooks: TrialHooks) -> None:
        self._scaling.install(hooks)

    def on_optimizer(self, optimizer: Any, hooks: TrialHooks) -> None:
        self._scaling.watch(optimizer)

    def no_effect(self) -> str | None:
        return super().no_effect() or self._scaling.no_effect

    @property
    def skipped_steps(self) -> int:
        return self._scaling.skipped_steps

    def code(self) -> str:
        from tb_dlprof_plugin.advice.code_snippets import FP16

        return FP16

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        from tb_dlprof_plugin.trial.training_loop import find_training_loop

        loop, edits = find_training_loop(script), super().patch(script)
        clips = script.methods("clip_grad_norm_") + script.methods("clip_grad_value_")
        if loop is None or edits is None or clips:
            return None
        loss, step = loop.loss, loop.step
        end = loop.file.line_end(step)
        return [
            *edits,
            loop.before_loop('scaler = torch.amp.GradScaler("cuda")'),
            loop.file.replace(loop.backward, f"scaler.scale({loss}).backward()"),
            loop.file.replace(step, f"scaler.step({loop.optimizer})"),
            type(edits[0])(loop.file.path, end, end, f"{loop.indent(step)}scaler.update()\n"),
        ]


REMEDIES: tuple[type[Remedy], ...] = (Bf16Autocast, Fp16Autocast)
