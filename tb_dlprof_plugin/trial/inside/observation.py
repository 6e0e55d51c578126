"""Losses, gradients and updates of a training's first steps, from outside, without waiting for the GPU in between."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.trial.protocol import Checks

_SAMPLE = 4_000_000
"""Elements of parameters whose change is measured: the copy must stay small next to the model."""
_IMPLEMENTATION = ("foreach", "fused", "capturable", "differentiable", "params", "param_names", "step")
"""Keys of parameter groups that do not change what is computed."""


class TrialObservation:
    """Until `stop`: reads what each step computed. `step` ends one.

    Attributes:
        passes: backward passes since the last step.
    """

    def __init__(self) -> None:
        self.passes = 0
        self._losses: list[Any] = []
        self._norm: Any = None
        self._update: Any = None
        self._before: dict[int, list[Any]] = {}
        self._rows: list[tuple[Any, Any, Any, bool, dict[str, float]]] = []
        self._group: dict[str, float] = {}
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        self._backward = torch.Tensor.backward
        self._scale = torch.amp.GradScaler.scale
        self._install()

    def step(self, skipped: bool = False) -> None:
        """A step has ended."""
        loss = None
        with contextlib.suppress(Exception):
            loss = torch.stack([one.float().reshape(()) for one in self._losses]).sum() if self._losses else None
        self._rows.append((loss, self._norm, self._update, skipped, self._group))
        self._losses, self._norm, self._update, self._group, self.passes = [], None, None, {}, 0

    @property
    def steps(self) -> int:
        """Observed so far."""
        return len(self._rows)

    def checks(self) -> Checks:
        """What was read; waits for the GPU."""
        rows = self._rows
        return Checks(
            loss=[_number(row[0]) for row in rows],
            gradient_norm=[_number(row[1]) for row in rows],
            update_norm=[_number(row[2]) for row in rows],
            skipped=[row[3] for row in rows],
            hyperparameters=[row[4] for row in rows],
        )

    def stop(self) -> None:
        """Restore everything."""
        for handle in self._handles:
            handle.remove()
        if torch.Tensor.backward is self._replacement:
            torch.Tensor.backward = self._backward  # type: ignore[method-assign]
        if torch.amp.GradScaler.scale is self._scale_replacement:
            torch.amp.GradScaler.scale = self._scale  # type: ignore[method-assign]

    def _install(self) -> None:
        original, scale = self._backward, self._scale

        def backward(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            probe(lambda: self._losses.append(getattr(tensor, "_unscaled_loss", tensor).detach().clone()))
            self.passes += 1
            return original(tensor, *args, **kwargs)

        def scaled(scaler: Any, outputs: Any) -> Any:
            made = scale(scaler, outputs)
            if isinstance(made, torch.Tensor) and isinstance(outputs, torch.Tensor) and made is not outputs:
                made._unscaled_loss = outputs.detach()  # type: ignore[attr-defined]
            return made

        self._replacement, self._scale_replacement = backward, scaled
        torch.Tensor.backward = backward  # type: ignore[method-assign,assignment]
        torch.amp.GradScaler.scale = scaled  # type: ignore[method-assign,assignment]

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        with contextlib.suppress(Exception), torch.no_grad():
            parameters = [one for group in optimizer.param_groups for one in group["params"]]
            gradients = [one.grad for one in parameters if one.grad is not None and not one.grad.is_sparse]
            if gradients:
                norm = _norm(gradients)
                scale = getattr(optimizer, "grad_scale", None)
                norm = norm / scale.to(norm.device) if isinstance(scale, torch.Tensor) else norm
                self._norm = norm if self._norm is None else torch.hypot(self._norm, norm)
            sample, left = [], _SAMPLE
            for one in parameters:
                if one.numel() <= left and one.grad is not None:
                    left -= one.numel()
                    sample.append((one, one.detach().clone()))
            self._before[id(optimizer)] = sample

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        with contextlib.suppress(Exception), torch.no_grad():
            sample = self._before.pop(id(optimizer), [])
            if sample:
                update = _norm([one.detach() - before for one, before in sample])
                self._update = update if self._update is None else torch.hypot(self._update, update)
            for number, group in enumerate(optimizer.param_groups):
                for name, value in group.items():
                    self._note(f"{type(optimizer).__name__}.{number}.{name}", name, value)

    def _note(self, key: str, name: str, value: Any) -> None:
        if name in _IMPLEMENTATION:
            return
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            value = value.detach().cpu().item()
        if isinstance(value, int | float):
            self._group[key] = float(value)
        elif isinstance(value, tuple):
            for index, one in enumerate(value):
                if isinstance(one, int | float):
                    self._group[f"{key}.{index}"] = float(one)


def _norm(tensors: list[Any]) -> Any:
    device = tensors[0].device
    return torch.stack([torch.linalg.vector_norm(one.float()).to(device) for one in tensors]).norm()


def _number(value: Any) -> float | None:
    return None if value is None else probe(lambda: float(value))
