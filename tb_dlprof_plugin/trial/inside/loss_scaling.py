"""Scales losses as GradScaler does, from outside: the script sees losses and gradients without the scale.

GradScaler needs edits of the script: clipping, accumulation and logging of gradients see the scaled ones until they are
divided. Here each backward pass scales its loss and divides the gradients when it ends, with the kernel that
GradScaler uses (`torch._amp_foreach_non_finite_check_and_unscale_`). The scale and its rules are GradScaler's.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks

_INITIAL_SCALE, _GROWTH, _BACKOFF, _GROWTH_INTERVAL = 65536.0, 2.0, 0.5, 2000
"""Defaults of torch.amp.GradScaler."""


class LossScaling:
    """Installed once per process.

    Args:
        device_type: losses on other devices are left alone.
    """

    def __init__(self, device_type: str = "cuda") -> None:
        self._device_type = device_type
        self.skipped_steps = 0
        self._scaled = 0
        self._of_script = False
        self._unfit = ""
        self._scale: Any = None
        self._growth_tracker: Any = None
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        # By id of the optimizer: whether a gradient since its last step was not finite, on the device.
        self._found_inf: dict[int, Any] = {}

    @property
    def no_effect(self) -> str | None:
        """Why no loss was scaled; None if one was."""
        if self._scaled:
            return None
        if self._of_script:
            return "The script scales its losses itself."
        return self._unfit or "No backward pass of a single loss was seen."

    @property
    def scale(self) -> float | None:
        """The current one; None before the first loss. Waits for the GPU."""
        return None if self._scale is None else float(self._scale)

    def watch(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer that was made before `install`."""
        self._optimizers.add(optimizer)

    def install(self, hooks: TrialHooks) -> None:
        """Replace the backward pass, and hook into the steps of all optimizers."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        hooks.after_init(torch.optim.Optimizer, self._optimizers.add)
        hooks.replace(torch.autograd, "backward", self._scaling)
        hooks.replace(torch.amp.GradScaler, "scale", self._watching)
        for handle in (
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ):
            hooks.on_undo(handle.remove)

    def _watching(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            self._of_script = self._of_script or scaler.is_enabled()
            return original(scaler, outputs)

        return scale

    def _scaling(self, original: Any) -> Any:
        import torch

        def backward(
            tensors: Any,
            grad_tensors: Any = None,
            retain_graph: bool | None = None,
            create_graph: bool = False,
            *args: Any,
            **kwargs: Any,
        ) -> None:
            loss = tensors[0] if isinstance(tensors, tuple | list) and len(tensors) == 1 else tensors
            single = isinstance(loss, torch.Tensor) and loss.device.type == self._device_type and loss.numel() == 1
            given = grad_tensors[0] if isinstance(grad_tensors, tuple | list) and grad_tensors else grad_tensors
            if self._of_script or not single or given is not None or create_graph:
                if not self._of_script:
                    self._unfit = "A backward pass is not of a single loss, or its gradient is differentiated again."
                original(tensors, grad_tensors, retain_graph, create_graph, *args, **kwargs)
                return
            scale = self._scale_on(loss.device)
            gradients = self._gradients()
            if gradients:
                # Of a backward pass before: they are divided again below.
                torch._foreach_mul_(gradients, scale)
            original(loss * scale.to(loss.dtype), None, retain_graph, create_graph, *args, **kwargs)
            self._divide()
            self._scaled += 1

        return backward

    def _scale_on(self, device: Any) -> Any:
        import torch

        if self._scale is None:
            self._scale = torch.full((), _INITIAL_SCALE, dtype=torch.float32, device=device)
            self._growth_tracker = torch.zeros((), dtype=torch.int32, device=device)
        return self._scale

    def _gradients(self) -> list[Any]:
        found = {id(p): p.grad for one in self._optimizers for p in _parameters(one) if p.grad is not None}
        return list(found.values())

    def _divide(self) -> None:
        import torch

        inverse = self._scale.double().reciprocal().float()
        divided: set[int] = set()
        for optimizer in self._optimizers:
            found = self._found_inf.setdefault(id(optimizer), torch.zeros((), device=self._scale.device))
            by_dtype: dict[Any, list[Any]] = {}
            for parameter in _parameters(optimizer):
                if parameter.grad is not None and id(parameter) not in divided:
                    divided.add(id(parameter))
                    by_dtype.setdefault(parameter.grad.dtype, []).append(parameter.grad)
            for gradients in by_dtype.values():
                torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        closure = kwargs.get("closure") or (args[1] if len(args) > 1 else None)
        if closure is None:
            self._skip_overflow(optimizer)
            return None

        def checked(*inner: Any, **keywords: Any) -> Any:
            loss = closure(*inner, **keywords)
            self._skip_overflow(optimizer)
            return loss

        if "closure" in kwargs:
            return args, {**kwargs, "closure": checked}
        return (args[0], checked, *args[2:]), kwargs

    def _skip_overflow(self, optimizer: Any) -> None:
        found = self._found_inf.get(id(optimizer))
        # As in GradScaler.step, the CPU waits for the result.
        if found is not None and found.item():
            self.skipped_steps += 1
            for parameter in _parameters(optimizer):
                # An optimizer passes over parameters without a gradient.
                parameter.grad = None

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        import torch

        found = self._found_inf.pop(id(optimizer), None)
        if found is not None:
            torch._amp_update_scale_(self._scale, self._growth_tracker, found, _GROWTH, _BACKOFF, _GROWTH_INTERVAL)


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
