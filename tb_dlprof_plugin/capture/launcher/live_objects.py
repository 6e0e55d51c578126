"""What lives in the process: modules, optimizers, DataLoaders, profilers. Found through the garbage collector.

One look takes 50 to 150 ms in a usual training process; there are two, before anything is recorded. Nothing is kept.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter


@dataclass(slots=True)
class Alive:
    """In the order in which they were made, as far as the collector knows it."""

    modules: list[nn.Module] = field(default_factory=list)
    optimizers: list[Optimizer] = field(default_factory=list)
    loaders: list[DataLoader] = field(default_factory=list)
    iterators: list[Any] = field(default_factory=list)
    profilers: list[Any] = field(default_factory=list)


def look() -> Alive:
    """All of them. Asks no object anything but its type: asking some lazy ones for their class would load them."""
    alive = Alive()
    kinds: list[tuple[Any, list[Any]]] = [
        (nn.Module, alive.modules),
        (Optimizer, alive.optimizers),
        (DataLoader, alive.loaders),
        (_BaseDataLoaderIter, alive.iterators),
        (torch.profiler.profile, alive.profilers),
    ]
    known: dict[int, list[Any] | None] = {}
    for one in gc.get_objects():
        kind = type(one)
        try:
            into = known[id(kind)]
        except KeyError:
            into = known[id(kind)] = next((found for base, found in kinds if _is_subclass(kind, base)), None)
        if into is not None:
            into.append(one)
    # A module whose constructor has not run yet has no children to ask for.
    alive.modules = [module for module in alive.modules if "_modules" in module.__dict__]
    return alive


def training_loader(alive: Alive) -> Any:
    """The DataLoader that is being iterated over, or the only one; None where that cannot be told.

    Of one that only its loop holds nothing is left but the iterator, which has the same settings.
    """
    for iterator in sorted(alive.iterators, key=_yielded, reverse=True):
        for loader in alive.loaders:
            if iterator._dataset is loader.dataset and iterator._index_sampler is loader._index_sampler:
                return loader
        return _Iterated(iterator)
    return alive.loaders[0] if len(alive.loaders) == 1 else None


class _Iterated:
    """The settings of a DataLoader as its iterator knows them."""

    def __init__(self, iterator: Any) -> None:
        self.dataset = iterator._dataset
        self.batch_sampler = self._sampler = iterator._index_sampler
        self.num_workers = iterator._num_workers
        self.pin_memory = iterator._pin_memory
        self.prefetch_factor = getattr(iterator, "_prefetch_factor", None)
        self.persistent_workers = iterator._persistent_workers
        self.drop_last = iterator._drop_last

    def __len__(self) -> int:
        return len(self._sampler)


def _yielded(iterator: Any) -> int:
    count = getattr(iterator, "_num_yielded", 0)
    return count if isinstance(count, int) else 0


def _is_subclass(kind: Any, base: type) -> bool:
    # By the classes themselves: an abstract base class could run code of its own.
    return base in type.mro(kind) if type(kind) is not type else issubclass(kind, base)
