"""Which parameters of an optimizer get no gradient, and how large its state is."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.capture.wrappers import unwrap
from tb_dlprof_plugin.model.run_facts import RunFacts

_MOST_NAMES = 8


class Gradients:
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
    return [name for name, parameter in named if id(parameter) in wanted][:_MOST_NAMES]
