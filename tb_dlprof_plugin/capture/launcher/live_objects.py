"""Finds the live modules, optimizers, DataLoaders and profilers of the process, through the garbage collector.

A search takes 50 to 150 ms in a usual training process; there are two, before anything is recorded. No reference is
kept.
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

from tb_dlprof_plugin.capture.facts.loader import IteratedLoader


@dataclass(slots=True)
class LiveObjects:
    """In order of creation, as far as the garbage collector keeps it."""

    modules: list[nn.Module] = field(default_factory=list)
    optimizers: list[Optimizer] = field(default_factory=list)
    loaders: list[DataLoader] = field(default_factory=list)
    iterators: list[Any] = field(default_factory=list)
    profilers: list[Any] = field(default_factory=list)


def find_live_objects() -> LiveObjects:
    """Returns all of them. Reads only the type of each object: ``__class__`` would load some lazy ones."""
    objects = LiveObjects()
    kinds: list[tuple[Any, list[Any]]] = [
        (nn.Module, objects.modules),
        (Optimizer, objects.optimizers),
        (DataLoader, objects.loaders),
        (_BaseDataLoaderIter, objects.iterators),
        (torch.profiler.profile, objects.profilers),
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
    # A module whose constructor has not run yet has no children.
    objects.modules = [module for module in objects.modules if "_modules" in module.__dict__]
    return objects


def training_loader(objects: LiveObjects) -> Any:
    """The DataLoader that is being iterated over, or the only one; None if neither can be determined.

    If only the loop holds the DataLoader, just its iterator is left, which has the same settings.
    """
    for iterator in sorted(objects.iterators, key=_yielded, reverse=True):
        for loader in objects.loaders:
            if iterator._dataset is loader.dataset and iterator._index_sampler is loader._index_sampler:
                return loader
        return IteratedLoader(iterator)
    return objects.loaders[0] if len(objects.loaders) == 1 else None


def _yielded(iterator: Any) -> int:
    count = getattr(iterator, "_num_yielded", 0)
    return count if isinstance(count, int) else 0


def _is_subclass(kind: Any, base: type) -> bool:
    # By the classes themselves: an abstract base class could run code of its own.
    return base in type.mro(kind) if type(kind) is not type else issubclass(kind, base)
