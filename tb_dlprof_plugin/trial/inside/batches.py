"""What the DataLoaders of a running training give: the same batches again, or those of a loader with other settings.

A training that has begun holds iterators of its loaders. Their ``__next__`` is replaced on the class, so that steps
that are compared get equal inputs, and a second loader over the same dataset can take the place of the first.
"""

from __future__ import annotations

import contextlib
import math
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from tb_dlprof_plugin.trial.inside.called_models import map_tensors, tensors_of
from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.padding import padded_share

_MOST_BYTES = 1 << 30
"""Of batches that are kept."""
_SETTINGS = ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers", "batch_size")


class Batches:
    """Of one process. Batches come as they do without it, until a method asks for more.

    Attributes:
        seconds: that the training waited for batches so far; cpu_seconds: of these on the CPU.
        count: of batches so far.
        depth: how many batches the workers of the second loader have loaded ahead, after which its pace shows.
    """

    def __init__(self, hooks: TrialHooks) -> None:
        self.seconds, self.cpu_seconds, self.count, self.depth = 0.0, 0.0, 0, 0
        self._kept: list[Any] = []
        self._bytes = 0
        self._keeps = False
        self._next: int | None = None
        """Number of the kept batch that is given next; None while they come from a loader."""
        self._loaders: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        """By iterator, its loader."""
        self._second = False
        self._chosen: dict[int, Any] = {}
        """By id of a loader, the one that takes its place, or None."""
        self._iterators: dict[tuple[Any, ...], tuple[Any, Iterator[Any]]] = {}
        self._inside = False
        hooks.replace(_BaseDataLoaderIter, "__next__", self._make_next)
        hooks.replace(DataLoader, "__iter__", self._make_iter)

    def keep(self) -> None:
        """From here on keep copies of the batches that are given."""
        self._kept, self._bytes, self._keeps, self._next = [], 0, True, None

    def again(self) -> None:
        """From here on give the kept ones again, in their order; after the last one the loader goes on."""
        self._keeps, self._next = False, 0

    def as_they_come(self) -> None:
        """From here on give what the loader gives."""
        self._keeps, self._next = False, None

    def from_second_loaders(self, second: bool) -> None:
        """From here on loaders are made again with the arguments of the first, as the hooks on the constructor change
        them now, or no longer."""
        self._second, self._chosen, self.depth = second, {}, 0
        for loader in self.loaders() if second else ():
            self._chosen[id(loader)] = self._made_again(loader)

    def loaders(self) -> list[Any]:
        """Those that have given batches and still live."""
        return list({id(one): one for one in self._loaders.values()}.values())

    def padded_share(self) -> float:
        """Share of the places of sequences in the batches that were kept that is padding."""
        return padded_share(self._kept)

    def epochs_of_a_batch(self) -> float:
        """Of the loader with the fewest batches, the share of an epoch that one is; 0 where its workers stay after an
        epoch, and where its number of batches is not known."""
        counts = []
        for one in self.loaders():
            # A sampler need not have a length.
            with contextlib.suppress(TypeError, NotImplementedError):
                counts.append(math.inf if one.persistent_workers else max(len(one), 1))
        return 1 / min(counts, default=math.inf)

    def _make_iter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __iter__(loader: Any) -> Any:
            iterator = original(loader)
            if not self._inside:
                self._loaders[iterator] = loader
            return iterator

        return __iter__

    def _make_next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __next__(iterator: Any) -> Any:
            if self._inside:
                return original(iterator)
            began, on_cpu = time.perf_counter(), time.thread_time()
            self._inside = True
            try:
                batch = self._batch(original, iterator)
            finally:
                self._inside = False
            self.seconds += time.perf_counter() - began
            self.cpu_seconds += time.thread_time() - on_cpu
            self.count += 1
            return batch

        return __next__

    def _batch(self, original: Callable[..., Any], iterator: Any) -> Any:
        if self._next is not None and self._next < len(self._kept):
            self._next += 1
            return _copy(self._kept[self._next - 1])
        loader = self._loaders.get(iterator) if self._second else None
        batch = original(iterator) if loader is None else self._of_second(original, iterator, loader)
        if self._keeps and self._bytes < _MOST_BYTES:
            self._kept.append(_copy(batch))
            self._bytes += _bytes_of(batch)
        return batch

    def _of_second(self, original: Callable[..., Any], iterator: Any, loader: Any) -> Any:
        if id(loader) not in self._chosen:
            self._chosen[id(loader)] = self._made_again(loader)
        second = self._chosen[id(loader)]
        if second is None:
            return original(iterator)
        key = _key(loader, second)
        if key not in self._iterators:
            # Workers of other settings end.
            self._iterators = {one: made for one, made in self._iterators.items() if one[0] != id(loader)}
            self._iterators[key] = second, iter(second)
        made, batches = self._iterators[key]
        try:
            return next(batches)
        except StopIteration:
            self._iterators[key] = made, iter(made)
            return next(self._iterators[key][1])

    def _made_again(self, loader: Any) -> Any:
        """A loader as the remedies make it; None where they change nothing of this one."""
        if isinstance(loader.dataset, IterableDataset) or type(loader) is not DataLoader:
            return None
        own = type(loader.batch_sampler) is torch.utils.data.BatchSampler
        batching = (
            {"batch_size": loader.batch_size, "sampler": loader.sampler, "drop_last": loader.drop_last}
            if own or loader.batch_sampler is None
            else {"batch_sampler": loader.batch_sampler}
        )
        second: Any = DataLoader(
            loader.dataset,
            **batching,
            num_workers=loader.num_workers,
            collate_fn=loader.collate_fn,
            pin_memory=loader.pin_memory,
            timeout=loader.timeout,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context if loader.num_workers else None,
            generator=loader.generator,
            prefetch_factor=loader.prefetch_factor,
            persistent_workers=loader.persistent_workers,
        )
        if _key(loader, second)[1:] == _key(loader, loader)[1:]:
            return None
        self.depth = max(self.depth, second.num_workers * (second.prefetch_factor or 0))
        return second


def _key(loader: Any, second: Any) -> tuple[Any, ...]:
    return id(loader), *(getattr(second, name) for name in _SETTINGS)


def _copy(batch: Any) -> Any:
    """With tensors of its own: a script may change a batch in place."""
    return map_tensors(lambda tensor: tensor.clone(), batch)


def _bytes_of(batch: Any) -> int:
    return sum(one.numel() * one.element_size() for one in tensors_of(batch))
