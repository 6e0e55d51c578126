"""The optimizer's update as one kernel, or as few kernels over all parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
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
    in_running_process = True

    def __init__(self) -> None:
        self._changed = 0
        self._kept: list[str] = []

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        for cls in {one for one in vars(torch.optim).values() if inspect.isclass(one)}:
            if self.argument in inspect.signature(cls.__init__).parameters:
                hooks.before_init(cls, self._change)

    def on_optimizer(self, optimizer: Any, hooks: TrialHooks) -> None:
        """Its state is carried over: a fused update counts its steps on the device of the parameters."""
        import torch

        if type(optimizer).__module__.partition(".")[0] != "torch" or self.argument not in optimizer.defaults:
            return
        for group in optimizer.param_groups:
            arguments = {key: value for key, value in group.items() if value is not None}
            self._change(arguments)
            if arguments.get(self.argument) and not group.get(self.argument):
                before = {one: group.get(one) for one in (self.argument, self.other) if one in group}
                hooks.on_undo(partial(group.update, before))
                group.update({self.argument: True}, **({self.other: None} if self.other in group else {}))
        if self.argument == "fused" and any(group.get("fused") for group in optimizer.param_groups):
            hooks.set(optimizer, "_step_supports_amp_scaling", True)
            hooks.set(optimizer, "_need_device_dtype_check_for_fused", True)
            hooks.on_undo(partial(count_steps, optimizer, lambda parameter: torch.device("cpu")))
            count_steps(optimizer, lambda parameter: parameter.device)

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
    usual_percent = 6.0
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
    usual_percent = 5.0
    rules = ("single_tensor_optimizer",)
    argument, other = "foreach", "fused"


def count_steps(optimizer: Any, device_of: Callable[[Any], Any]) -> None:
    """On these devices, unless the optimizer is capturable and counts on that of the parameter in any case."""
    import torch

    for group in optimizer.param_groups:
        if group.get("capturable"):
            continue
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            if isinstance(state.get("step"), torch.Tensor):
                state["step"] = state["step"].to(device_of(parameter), torch.float32)


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
