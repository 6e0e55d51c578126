"""The state of a training, to begin again with: parameters, buffers, gradients, optimizers and random generators."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from tb_dlprof_plugin.trial.inside.called_models import like

_ROOM = 2.0
"""Times its own size that the GPU must have free for a copy of the state; else it is kept on the CPU."""


class TrainingState:
    """Reads all of it when it is made. What the script keeps in variables of its own, such as a counter, is not in it.

    Args:
        models: their parameters, buffers and gradients.
        optimizers: their states and parameter groups; parameters of theirs that no model has.
        others: with ``state_dict`` and ``load_state_dict``, such as GradScalers and learning rate schedulers.
    """

    def __init__(
        self,
        models: Iterable[torch.nn.Module],
        optimizers: Sequence[torch.optim.Optimizer],
        others: Sequence[Any] = (),
    ) -> None:
        tensors = {id(one): one for model in models for one in (*model.parameters(), *model.buffers())}
        for optimizer in optimizers:
            tensors |= {id(one): one for group in optimizer.param_groups for one in group["params"]}
        self._on_cpu = _is_short_of_memory(tensors.values())
        self._tensors = [(one, self._kept(one)) for one in tensors.values()]
        self._gradients = [(one, None if one.grad is None else self._kept(one.grad)) for one in tensors.values()]
        self._optimizers = [
            (
                one,
                [{name: self._kept(value) for name, value in group.items() if name != "params"}
                 for group in one.param_groups],
                {key: {name: self._kept(value) for name, value in state.items()} for key, state in one.state.items()},
            )
            for one in optimizers
        ]  # fmt: skip
        self._others = [(one, copy.deepcopy(one.state_dict())) for one in others]
        self._random = random.getstate()
        self._torch = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        numpy = sys.modules.get("numpy")
        self._numpy = None if numpy is None else numpy.random.get_state()

    def restore(self) -> None:
        """Set all back, each tensor where it lies: what holds its address, such as a CUDA graph, stays valid."""
        with torch.no_grad():
            for tensor, before in self._tensors:
                tensor.copy_(before)
            for parameter, gradient in self._gradients:
                if gradient is None:
                    parameter.grad = None
                elif parameter.grad is None:
                    parameter.grad = like(parameter, gradient)
                else:
                    parameter.grad.copy_(gradient)
            for optimizer, groups, states in self._optimizers:
                for group, before in zip(optimizer.param_groups, groups, strict=True):
                    _put_all({"params": group["params"], **before}, group, None)
                for key in [one for one in optimizer.state if one not in states]:
                    del optimizer.state[key]
                for key, before in states.items():
                    _put_all(before, optimizer.state[key], key)
        for one, of_one in self._others:
            one.load_state_dict(copy.deepcopy(of_one))
        self.restore_random()

    def restore_random(self) -> None:
        """Set the random generators back."""
        random.setstate(self._random)
        torch.set_rng_state(self._torch)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)

    def _kept(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return copy.deepcopy(value)
        return value.detach().to("cpu", copy=True) if self._on_cpu else value.detach().clone()


def _put_all(before: dict[str, Any], owner: dict[str, Any], parameter: torch.Tensor | None) -> None:
    for name in [one for one in owner if one not in before]:
        del owner[name]
    for name, value in before.items():
        now = owner.get(name)
        if name == "params" or now is value:
            continue
        if not isinstance(value, torch.Tensor):
            owner[name] = copy.deepcopy(value)
        elif isinstance(now, torch.Tensor) and now.shape == value.shape and now.dtype == value.dtype:
            now.copy_(value)
        elif parameter is not None and value.shape == parameter.shape:
            owner[name] = like(parameter, value)
        else:
            owner[name] = value.clone()


def _is_short_of_memory(tensors: Iterable[torch.Tensor]) -> bool:
    of_gpu = [one for one in tensors if one.is_cuda]
    if not of_gpu:
        return False
    # Parameters, gradients, and up to two values of the optimizer for each.
    needed = 4 * sum(one.numel() * one.element_size() for one in of_gpu)
    return bool(torch.cuda.mem_get_info(of_gpu[0].device)[0] < _ROOM * needed)
