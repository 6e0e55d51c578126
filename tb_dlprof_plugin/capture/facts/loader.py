"""The settings of the training DataLoader."""

from __future__ import annotations

from typing import Any

from torch.utils.data import IterableDataset

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts


class IteratedLoader:
    """The settings of a DataLoader, read from its iterator."""

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


def dataloader_facts(loader: Any) -> DataLoaderFacts | None:
    """Settings of a ``torch.utils.data.DataLoader`` or an object like it; None if nothing was passed.

    Of a list or dict of loaders the first one counts.
    """
    if isinstance(loader, dict):
        loader = next(iter(loader.values()), None)
    elif isinstance(loader, list | tuple):
        loader = next(iter(loader), None)
    if loader is None:
        return None
    batch_size = _count(loader, "batch_size")
    if batch_size is None:
        # Set to None by a loader that was given a batch sampler.
        batch_size = _count(getattr(loader, "batch_sampler", None), "batch_size")
    return DataLoaderFacts(
        num_workers=_count(loader, "num_workers"),
        pin_memory=_flag(loader, "pin_memory"),
        prefetch_factor=_count(loader, "prefetch_factor"),
        persistent_workers=_flag(loader, "persistent_workers"),
        batch_size=batch_size,
        drop_last=_flag(loader, "drop_last"),
        dataset=probe(lambda: type(loader.dataset).__name__),
        batches=_length(loader),
    )


def _count(owner: Any, name: str) -> int | None:
    value = probe(lambda: getattr(owner, name))
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _length(loader: Any) -> int | None:
    """None for a loader over an iterable dataset: torch would ask the user's own ``__len__``, and warn of it later."""
    if probe(lambda: isinstance(loader.dataset, IterableDataset)):
        return None
    value = probe(lambda: len(loader))
    return value if isinstance(value, int) and value >= 0 else None


def _flag(owner: Any, name: str) -> bool | None:
    value = probe(lambda: getattr(owner, name))
    return value if isinstance(value, bool) else None
