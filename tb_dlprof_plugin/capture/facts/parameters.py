"""Which parameters get no gradient, which gradients no optimizer uses, and how large an optimizer's state is."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch

from tb_dlprof_plugin.capture.modules import walk
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.capture.wrappers import unwrap
from tb_dlprof_plugin.model.run_facts import RunFacts

_MOST_UNUSED_NAMES = 8
_MOST_MODULES = 64


class GradientWatch:
    """Which parameters have no gradient when an optimizer steps, and still none when the recording ends.

    An observation costs about 0.1 us per parameter tensor and reads no value.
    """

    def __init__(self) -> None:
        self._looked_at: int | None = None
        self._without: list[weakref.ref[torch.Tensor]] = []

    def look(self, optimizer: Any) -> None:
        """Observe the parameters of an optimizer that is about to step. If none has a gradient, it computes them
        itself."""
        parameters = [parameter for parameter in _parameters(optimizer) if parameter.requires_grad]
        without = [parameter for parameter in parameters if parameter.grad is None]
        if len(without) < len(parameters):
            self._looked_at = len(parameters)
            # A shard of FSDP may hold nothing of a parameter, and so no gradient of it.
            self._without = [weakref.ref(parameter) for parameter in without if _bytes(parameter)]

    def forget(self) -> None:
        """A new recording begins."""
        self._looked_at, self._without = None, []

    def fill(self, facts: RunFacts, model: Any = None) -> None:
        """Fill the fields of unused parameters; leaves them None where no step was seen."""
        if self._looked_at is None:
            return
        alive = [parameter for reference in self._without if (parameter := reference()) is not None]
        unused = [parameter for parameter in alive if parameter.grad is None]
        facts.trainable_parameters = self._looked_at
        facts.unused_parameters = len(unused)
        facts.unused_parameter_bytes = sum(_bytes(parameter) for parameter in unused)
        if unused and model is not None:
            facts.unused_parameter_names = probe(lambda: _names(model, unused)) or []


def state_bytes(optimizer: Any) -> int:
    """Bytes of the optimizer's state on the devices of its parameters; step counters on the CPU are left out."""
    total = 0
    for parameter, state in optimizer.state.items():
        if isinstance(parameter, torch.Tensor) and isinstance(state, dict):
            tensors = (value for value in state.values() if isinstance(value, torch.Tensor))
            total += sum(_bytes(value) for value in tensors if value.device == parameter.device)
    return total


def _parameters(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _bytes(tensor: torch.Tensor) -> int:
    """Of the part in this process: a DTensor gives the size of the whole."""
    local = getattr(tensor, "_local_tensor", tensor)
    return int(local.numel() * local.element_size())


def _names(model: Any, parameters: list[torch.Tensor]) -> list[str]:
    wanted = {id(parameter) for parameter in parameters}
    named = unwrap(model).named_parameters()
    return [name for name, parameter in named if id(parameter) in wanted][:_MOST_UNUSED_NAMES]


class SteppedParameters:
    """The parameters of all optimizers that step in a recorded cycle, by identity.

    An optimizer is looked at once in a cycle, which costs about 0.05 us per parameter tensor and reads no value.
    """

    def __init__(self) -> None:
        self._optimizers: set[int] = set()
        self._parameters: set[int] = set()

    def look(self, optimizer: Any) -> None:
        """Observe an optimizer that is about to step."""
        if id(optimizer) not in self._optimizers:
            self._optimizers.add(id(optimizer))
            self._parameters.update(id(one) for group in optimizer.param_groups for one in group["params"])

    def forget(self) -> None:
        """A new recording begins."""
        self._optimizers, self._parameters = set(), set()

    def fill(self, facts: RunFacts, model: Any) -> None:
        """Fill the fields of gradients without optimizer; leaves them None where none stepped, or none of the model's
        own parameters did: then the optimizer has copies of them."""
        if model is None or not self._optimizers:
            return
        model = unwrap(model)
        parameters = list(model.parameters())
        if not any(id(one) in self._parameters for one in parameters):
            return
        without = [one for one in parameters if self._without(one)]
        facts.unstepped_gradients = len(without)
        facts.unstepped_gradient_bytes = sum(one.grad.numel() * one.grad.element_size() for one in without)
        facts.unstepped_gradient_modules = self._modules(model)[:_MOST_MODULES] if without else []

    def _without(self, parameter: torch.Tensor) -> bool:
        return parameter.requires_grad and parameter.grad is not None and id(parameter) not in self._parameters

    def _modules(self, model: torch.nn.Module) -> list[str]:
        """Outermost modules all of whose gradients no optimizer uses."""
        found: list[str] = []
        for path, module in walk(model):
            if found and path.startswith(f"{found[-1]}."):
                continue
            own = [one for one in module.parameters() if one.grad is not None]
            if path and own and all(self._without(one) for one in own):
                found.append(path)
        return found
