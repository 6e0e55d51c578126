"""TF32 on Tensor Cores for products of FP32 matrices and for FP32 convolutions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.trial.inside.gpu import needs_ampere, needs_gpu
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class Tf32(Remedy):
    name = "tf32"
    title = "TF32 for matrix products and convolutions"
    usual_percent = 30.0
    rules = ("tf32_off",)
    changes = Changes.ROUNDING
    may_change = "Inputs of products are rounded to 10 bits of mantissa; range and sums stay FP32's."
    in_running_process = True
    of_kernels = True

    def __init__(self) -> None:
        self._kept = ""

    def why_not(self, facts: TrialFacts) -> str | None:
        return needs_gpu(facts) or needs_ampere(facts)

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        # In a running process the script has set its own by now.
        if _matmul_precision() == "high" and probe(lambda: torch.backends.cudnn.allow_tf32):
            self._kept = "TF32 is on for matrix products and convolutions."
        _switch_on(hooks)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        # Between both the script has run, and may have set its own.
        if _matmul_precision() == "medium":
            self._kept = "The script itself asks for less precision."
        else:
            _switch_on(hooks)

    def no_effect(self) -> str | None:
        import torch

        if not torch.cuda.is_initialized():
            return "The training uses no GPU."
        return self._kept or None

    def code(self) -> str:
        from tb_dlprof_plugin.advice.code_snippets import TF32

        return TF32

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        if script.calls("torch.set_float32_matmul_precision"):
            return None
        return script.script.after_imports(*self.code().splitlines())


def _switch_on(hooks: TrialHooks) -> None:
    import torch

    hooks.on_undo(_restoring())
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


_OPERATIONS = (("cuda", "matmul"), ("mkldnn", "matmul"), ("cuda", "conv"), ("cuda", "rnn"))


def _restoring() -> Callable[[], None]:
    """What sets the precisions to what they are now.

    Since torch 2.9 reading an older switch raises where it and the precisions of the operations do not agree. They do
    not after `set_float32_matmul_precision("high")` and `backends.cuda.matmul.allow_tf32 = False`.
    """
    import torch

    matmul = _matmul_precision()
    conv = probe(lambda: torch.backends.cudnn.allow_tf32)
    getter = getattr(torch._C, "_get_fp32_precision_getter", None)
    setter = getattr(torch._C, "_set_fp32_precision_setter", None)
    exact = {} if getter is None else {one: probe(functools.partial(getter, *one)) for one in _OPERATIONS}

    def restore() -> None:
        if matmul is not None:
            torch.set_float32_matmul_precision(matmul)
        if conv is not None:
            torch.backends.cudnn.allow_tf32 = conv
        for operation, precision in exact.items():
            if precision is not None and setter is not None:
                setter(*operation, precision)

    return restore


def _matmul_precision() -> str | None:
    import torch

    return probe(torch.get_float32_matmul_precision)


REMEDIES: tuple[type[Remedy], ...] = (Tf32,)
