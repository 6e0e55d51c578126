"""Forward products of large linear layers are computed in FP8, whose Tensor Cores are twice as fast as BF16's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.gpu import needs_fp8, needs_gpu
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.facts import TrialFacts
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_TORCH = (2, 5)
"""The first torch whose product of scaled matrices has the arguments that are used here."""
_MULTIPLE = 16
"""Sizes that the product in FP8 takes."""
_LEAST_FEATURES, _LEAST_ROWS = 4096, 4096
"""Below, finding the scales and rounding takes longer than the product in BF16: both read and write as much memory as
the matrices have, and the product's work grows with one side more. On an H200 a GPT of width 2048 got 12 % slower, and
layers of width 8192 took as long as in BF16, where nothing is compiled (`lab.trying.captured_and_fp8`)."""


class Fp8Products(Remedy):
    name = "fp8_products"
    title = "Products of linear layers in FP8"
    # Not put into a set before it was measured alone: it rounds more than any other.
    usual_percent = -1.0
    changes = Changes.ROUNDING
    may_change = (
        "Another training, unless the check says otherwise: in the forward pass inputs and weights of large linear "
        "layers are rounded to 4 bits of mantissa (FP8), with one scale for each matrix; gradients are in BF16."
    )
    in_running_process = True
    of_kernels = True

    def __init__(self, device_type: str = "cuda", least: int = _LEAST_FEATURES, least_rows: int = _LEAST_ROWS) -> None:
        self._device_type, self._least, self._least_rows = device_type, least, least_rows
        self._layers = self._calls = self._small = 0

    def why_not(self, facts: TrialFacts) -> str | None:
        if facts.torch_version and facts.torch_version < _TORCH:
            return "Products in FP8 need PyTorch 2.5."
        return needs_gpu(facts) or needs_fp8(facts)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        for module in model.modules():
            if self._fits(module):
                self._layers += 1
                hooks.wrap_method(module, "forward", self._in_fp8)

    def _fits(self, module: Any) -> bool:
        from torch import nn

        # A subclass, such as one that is quantized already, computes otherwise.
        if type(module) is not nn.Linear or module.weight.device.type != self._device_type:
            return False
        sizes = module.in_features, module.out_features
        return all(size >= self._least and size % _MULTIPLE == 0 for size in sizes)

    def _in_fp8(self, forward: Any) -> Any:
        import torch

        from tb_dlprof_plugin.trial.inside.fp8_product import fp8_linear

        def in_fp8(layer: Any, x: Any) -> Any:
            enough = x.numel() >= self._least_rows * layer.in_features
            if not enough or not x.is_floating_point() or not torch.is_grad_enabled():
                if not torch.compiler.is_compiling():
                    self._small += 1
                return forward(layer, x)
            if not torch.compiler.is_compiling():
                self._calls += 1
            return fp8_linear(x, layer.weight, layer.bias)

        return in_fp8

    def no_effect(self) -> str | None:
        # Calls within compiled code are not counted.
        if self._calls or (self._layers and not self._small):
            return None
        if self._layers:
            return f"Linear layers get fewer than {self._least_rows:,} rows at once, which gains nothing."
        return f"No linear layer on the GPU has {self._least:,} inputs and outputs, in multiples of {_MULTIPLE}."

    def code(self) -> str:
        import inspect
        import re

        from tb_dlprof_plugin.trial.inside import fp8_product

        parts = (fp8_product.quantized, fp8_product.Fp8Product, fp8_product.fp8_linear)
        functions = re.sub(r"  # type:.*", "", "\n\n".join(inspect.getsource(part) for part in parts))
        return (
            f"import torch\nfrom typing import Any\n\n\n{functions}\n\n"
            "for layer in model.modules():\n"
            "    if type(layer) is torch.nn.Linear and min(layer.weight.shape) >= 4096:\n"
            "        layer.forward = lambda x, layer=layer: fp8_linear(x, layer.weight, layer.bias)\n"
        )


REMEDIES: tuple[type[Remedy], ...] = (Fp8Products,)
