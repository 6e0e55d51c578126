"""The optimizer's update as one kernel, or as few kernels over all parameters."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class _Implementation(Remedy):
    """Sets one argument of torch's own optimizers."""

    argument = ""
    other = ""
    changes = Changes.ROUNDING
    may_change = "The same update; the kernels round in another order."
    group = "optimizer"

    def __init__(self) -> None:
        self._changed = 0
        self._kept: list[str] = []

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        for cls in {one for one in vars(torch.optim).values() if inspect.isclass(one)}:
            if self.argument in inspect.signature(cls.__init__).parameters:
                hooks.before_init(cls, self._change)

    def _change(self, arguments: dict[str, Any]) -> None:
        if arguments.get("differentiable"):
            self._kept.append("it is differentiable")
        elif arguments.get(self.argument):
            self._kept.append(f"{self.argument}=True is set already")
        elif (unfit := self._unfit(arguments)) is not None:
            self._kept.append(unfit)
        else:
            arguments[self.argument] = True
            arguments.pop(self.other, None)
            self._changed += 1

    def _unfit(self, arguments: dict[str, Any]) -> str | None:
        return None

    def no_effect(self) -> str | None:
        if self._changed:
            return None
        kept = self._kept
        return f"Optimizer: {kept[0]}." if kept else f"No optimizer of the script takes {self.argument}."

    def code(self) -> str:
        return f"optimizer = torch.optim.AdamW(model.parameters(), ..., {self.argument}=True)\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        calls = script.calls(*(f"torch.optim.{name}" for name in ("SGD", "Adam", "AdamW", "Adagrad")))
        if len(calls) != 1 or any(one.arg == self.other for one in calls[0].node.keywords):
            return None
        edit = calls[0].file.set_keyword(calls[0].node, self.argument, "True")
        return None if edit is None else [edit]


class FusedOptimizer(_Implementation):
    name = "fused_optimizer"
    title = "Fused optimizer"
    rules = ("optimizer_not_fused", "single_tensor_optimizer")
    argument, other = "fused", "foreach"

    def _unfit(self, arguments: dict[str, Any]) -> str | None:
        import torch

        # The constructor may get a generator, which can be read once.
        arguments["params"] = params = _materialised(arguments["params"])
        for tensor in _tensors(params):
            if not torch.is_floating_point(tensor):
                return "a parameter is not of floating point numbers"
            if tensor.device.type not in ("cuda", "cpu", "xpu", "mps"):
                return f"a parameter lies on the device {tensor.device.type}"
            if tensor.layout is not torch.strided:
                return "a parameter is sparse"
        return None


class ForeachOptimizer(_Implementation):
    name = "foreach_optimizer"
    title = "Optimizer that updates all parameters at once"
    rules = ("single_tensor_optimizer",)
    argument, other = "foreach", "fused"


def _materialised(params: Any) -> Any:
    import torch

    if isinstance(params, torch.Tensor):
        return params
    groups = list(params)
    for group in groups:
        if isinstance(group, dict) and not isinstance(group["params"], torch.Tensor):
            group["params"] = list(group["params"])
    return groups


def _tensors(params: Any) -> list[Any]:
    import torch

    found: list[Any] = []
    for one in params if isinstance(params, list) else []:
        if isinstance(one, dict):
            found += _tensors(one["params"])
        elif isinstance(one, torch.Tensor):
            found.append(one)
        elif isinstance(one, tuple) and len(one) == 2:
            found.append(one[1])
    return found


REMEDIES: tuple[type[Remedy], ...] = (FusedOptimizer, ForeachOptimizer)
