"""Which parameters of the model get gradients that no optimizer uses."""

from __future__ import annotations

from typing import Any

import torch

from tb_dlprof_plugin.capture.modules import walk
from tb_dlprof_plugin.capture.wrappers import unwrap
from tb_dlprof_plugin.model.run_facts import RunFacts

_MOST_NAMES = 64


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
        facts.unstepped_gradient_modules = self._modules(model)[:_MOST_NAMES] if without else []

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
