"""What the remedies of models share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

_FEWEST_BLOCKS = 2
_FEWEST_ALIKE = 4
"""Blocks of which compiling one saves most of the time that compiling the model takes."""


def device_type(model: nn.Module) -> str:
    """Of its parameters, such as "cuda"."""
    parameter = next(model.parameters(), None)
    return "cpu" if parameter is None else parameter.device.type


def repeated_blocks(model: nn.Module) -> list[nn.Module]:
    """Children of the outermost lists of modules of one class that have parameters, such as a transformer's layers."""
    from torch import nn

    found: list[nn.Module] = []

    def walk(module: nn.Module) -> None:
        for child in module.children():
            blocks = list(child.children()) if isinstance(child, nn.ModuleList | nn.Sequential) else []
            kinds = {type(block) for block in blocks}
            has_children = all(next(block.children(), None) is not None for block in blocks)
            if len(blocks) >= _FEWEST_BLOCKS and len(kinds) == 1 and has_children:
                found.extend(blocks)
            else:
                walk(child)

    walk(model)
    return found


def mostly_repeats(models: Iterable[nn.Module]) -> bool:
    """Whether blocks of one class with parameters of the same shapes have most of the parameters.

    Torch compiles a block again where a number differs that it computes with, such as the rate of a stochastic depth.
    """
    alike: dict[tuple[object, ...], int] = {}
    of_alike = total = 0
    for model in models:
        total += sum(one.numel() for one in model.parameters())
        for block in repeated_blocks(model):
            rates = (one for module in block.modules() for one in vars(module).values() if isinstance(one, float))
            kind = (type(block), *(tuple(one.shape) for one in block.parameters()), *rates)
            alike[kind] = alike.get(kind, 0) + 1
            of_alike += sum(one.numel() for one in block.parameters())
    return max(alike.values(), default=0) >= _FEWEST_ALIKE and of_alike > total / 2


def like(parameter: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A copy of a gradient or a moment of a parameter, that lies in memory as the parameter does."""
    import torch

    return torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)


def map_tensors(change: Any, value: Any) -> Any:
    """``value`` with ``change(tensor)`` for each tensor in tuples, lists and dicts; other objects stay as they are."""
    import torch

    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        made = {key: map_tensors(change, one) for key, one in value.items()}
        # An output class of a library, such as transformers' ModelOutput, keeps its attributes.
        return made if type(value) is dict else _in_place(value, made)
    if type(value) in (tuple, list):
        return type(value)(map_tensors(change, one) for one in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(change, one) for one in value))
    return value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """All that `map_tensors` reaches."""
    found: list[torch.Tensor] = []

    def add(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    map_tensors(add, value)
    return found


def _in_place(value: Any, made: dict[Any, Any]) -> Any:
    for key, one in made.items():
        value[key] = one
    return value
