"""The outermost modules of a training: those whose parameters the optimizers change, up to the one that is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torch import nn
from torch.optim import Optimizer

from tb_dlprof_plugin.capture.wrappers import unwrap

_MOST = 16
"""More outermost modules than this are not parts of one training step."""


class RootModules(nn.Module):
    """Holds several outermost modules under the names of their classes; never called."""

    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        for module in modules:
            name = name_of(module)
            taken = sum(1 for known in self._modules if known == name or known.startswith(f"{name}_"))
            self._modules[f"{name}_{taken + 1}" if taken else name] = module


def name_of(model: nn.Module) -> str:
    """The name of its class, as in the facts."""
    return type(unwrap(model)).__name__


def choose_roots(
    modules: list[nn.Module], optimizers: Iterable[Optimizer], called: nn.Module | None
) -> list[nn.Module]:
    """The outermost modules, that with the most parameters first.

    Args:
        modules: all that live.
        optimizers: whose parameters count; without any, all parameters do.
        called: the first module that was called from outside any other, if known.
    """
    parents = _parents(modules)
    owners = _owners(modules, {id(p) for optimizer in optimizers for p in _parameters(optimizer)})
    if not owners:
        # No optimizer, or one that holds copies of the parameters, as with master weights.
        owners = _owners(modules, None)
    by_top: dict[int, tuple[nn.Module, set[int]]] = {}
    for owner in owners:
        for top in _tops(owner, parents):
            by_top.setdefault(id(top), (top, set()))[1].add(id(owner))
    chosen: list[nn.Module] = []
    covered: set[int] = set()
    above_called = set() if called is None else {id(top) for top in _tops(called, parents)}
    for top, owned in sorted(by_top.values(), key=lambda one: (id(one[0]) in above_called, len(one[1])), reverse=True):
        if owned <= covered:
            continue
        covered |= owned
        chosen.append(_nearest(called, top, owned, parents) if id(top) in above_called and called is not None else top)
    return sorted(chosen[:_MOST], key=_size, reverse=True)


def as_one(roots: list[nn.Module]) -> nn.Module | None:
    """What the module ranges walk through; with one root the names are those of its own ``named_modules()``."""
    if len(roots) < 2:
        return roots[0] if roots else None
    # The name of the class is what the pages show as the model.
    kind = type(" + ".join(map(name_of, roots)), (RootModules,), {})
    held: nn.Module = kind(roots)
    return held


def _parents(modules: list[nn.Module]) -> dict[int, list[nn.Module]]:
    parents: dict[int, list[nn.Module]] = {}
    for module in modules:
        if isinstance(module, RootModules):
            continue
        for child in module._modules.values():
            if child is not None:
                parents.setdefault(id(child), []).append(module)
    return parents


def _owners(modules: list[nn.Module], wanted: set[int] | None) -> list[nn.Module]:
    owners = []
    for module in modules:
        held = [parameter for parameter in module.__dict__.get("_parameters", {}).values() if parameter is not None]
        if held if wanted is None else any(id(parameter) in wanted for parameter in held):
            owners.append(module)
    return owners


def _parameters(optimizer: Optimizer) -> Iterator[object]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _tops(module: nn.Module, parents: dict[int, list[nn.Module]]) -> list[nn.Module]:
    tops, seen, left = [], {id(module)}, [module]
    while left:
        one = left.pop()
        above = parents.get(id(one), [])
        if not above:
            tops.append(one)
        for parent in above:
            if id(parent) not in seen:
                seen.add(id(parent))
                left.append(parent)
    return tops


def _nearest(called: nn.Module, top: nn.Module, owned: set[int], parents: dict[int, list[nn.Module]]) -> nn.Module:
    """The called module, or the nearest one above it that holds all that the top does: a module that wraps the model
    for evaluation only is not part of the names."""
    path, one = [called], called
    while one is not top:
        above = [parent for parent in parents.get(id(one), []) if any(t is top for t in _tops(parent, parents))]
        if not above or len(path) > len(parents):
            return top
        one = above[0]
        path.append(one)
    return next((one for one in path if owned <= {id(module) for module in one.modules()}), top)


def _size(module: nn.Module) -> int:
    return sum(int(parameter.numel()) for parameter in module.parameters())
