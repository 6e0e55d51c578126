"""Data sets that sleep, compute, are large, of many tensors or skewed, each with a training that sleeps for a step."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

LENGTH = 100_000


@dataclass(frozen=True)
class Subject:
    """A training.

    Attributes:
        name: of the case.
        recorded: workers with which it is recorded.
        step_ms: of the training without loading.
        batch: samples of a batch.
        held_out: "" where rules were made with it; else the set that was not opened before they stood. "first" was
            opened on 2026-11-28, "new" not yet.
        options: of `Items`.
        loader: further arguments of the DataLoader.
    """

    name: str
    recorded: int
    step_ms: float
    batch: int = 4
    held_out: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    loader: dict[str, Any] = field(default_factory=dict)


class Items(Dataset[Any]):
    """Items that sleep for ``sleep_ms``, or compute for ``compute_ms``, and are ``tensors`` of ``size`` floats.

    One in ``slow_in`` sleeps ``slow_ms`` more, chosen by its index; sleeps spread log-normally by ``spread``.
    """

    def __init__(
        self,
        sleep_ms: float = 0.0,
        compute_ms: float = 0.0,
        tensors: int = 1,
        size: int = 64,
        slow_in: int = 0,
        slow_ms: float = 0.0,
        spread: float = 0.0,
    ) -> None:
        self.sleep_ms, self.compute_ms, self.tensors, self.size = sleep_ms, compute_ms, tensors, size
        self.slow_in, self.slow_ms, self.spread = slow_in, slow_ms, spread

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        chance = random.Random(index)
        sleep_ms = self.sleep_ms * (chance.lognormvariate(0.0, self.spread) if self.spread else 1.0)
        if self.slow_in and chance.random() * self.slow_in < 1.0:
            sleep_ms += self.slow_ms
        if sleep_ms:
            time.sleep(sleep_ms / 1e3)
        if self.compute_ms:
            compute(self.compute_ms)
        if self.tensors == 1:
            return torch.full((self.size,), float(index))
        return {f"field_{number}": torch.full((self.size,), float(index + number)) for number in range(self.tensors)}


class Compose:
    """As torchvision's."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, item: Any) -> Any:
        for transform in self.transforms:
            item = transform(item)
        return item


class Whole(Items):
    """The same, made a whole batch at a time."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        time.sleep(len(indices) * self.sleep_ms / 1e3)
        return [torch.full((self.size,), float(index)) for index in indices]


class Stream(IterableDataset[Any]):
    """The same without indices; each worker yields its share."""

    def __init__(self, **options: Any) -> None:
        self.items = Items(**options)

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, LENGTH, step):
            yield self.items[index]


def compute(ms: float) -> None:
    """Use a core for so long, whatever else runs: by this thread's own clock."""
    until = time.thread_time() + ms / 1e3
    while time.thread_time() < until:
        pass


def data_set(subject: Subject) -> Any:
    """Of a subject."""
    options = dict(subject.options)
    kind = {"items": Items, "whole": Whole, "stream": Stream}[options.pop("kind", "items")]
    return kind(**options)


def loader_of(subject: Subject, workers: int) -> Any:
    """With so many workers; the same order of samples each time."""
    data = data_set(subject)
    order: dict[str, Any] = {} if isinstance(data, IterableDataset) else {"sampler": Shuffled()}
    return torch.utils.data.DataLoader(data, batch_size=subject.batch, num_workers=workers, **order, **subject.loader)


class Shuffled(torch.utils.data.Sampler[int]):
    """Indices in a fixed random order."""

    def __init__(self) -> None:
        self.order = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(1)).tolist()

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def __len__(self) -> int:
        return LENGTH


def add_up(items: list[Any]) -> Any:
    """A ``collate_fn`` that takes 25 ms."""
    time.sleep(0.025)
    return torch.utils.data.default_collate(items)


SUBJECTS = (
    Subject("sleeps", 1, 10, options={"sleep_ms": 8}),
    Subject("sleeps, recorded without workers", 0, 10, options={"sleep_ms": 8}),
    Subject("sleeps, slow step", 2, 40, options={"sleep_ms": 15}),
    Subject("skewed items", 1, 8, options={"sleep_ms": 4, "slow_in": 20, "slow_ms": 100}),
    Subject("skewed items, recorded with 4", 4, 8, options={"sleep_ms": 4, "slow_in": 20, "slow_ms": 100}),
    Subject("unordered", 2, 8, options={"sleep_ms": 4, "slow_in": 20, "slow_ms": 100}, loader={"in_order": False}),
    Subject("computes", 1, 20, options={"compute_ms": 5}),
    Subject("computes and sleeps", 2, 15, options={"compute_ms": 2, "sleep_ms": 8}),
    Subject("many tensors", 2, 10, options={"sleep_ms": 3, "tensors": 60}),
    Subject("large", 1, 10, 8, options={"sleep_ms": 3, "size": 600_000}),
    Subject("stream", 1, 10, options={"kind": "stream", "sleep_ms": 8}),
    Subject("slow collate", 2, 10, options={"sleep_ms": 2}, loader={"collate_fn": add_up}),
    Subject("large, pinned", 2, 10, 8, options={"sleep_ms": 3, "size": 600_000}, loader={"pin_memory": True}),
    Subject("whole batches", 2, 12, 8, "first", {"kind": "whole", "sleep_ms": 5}),
    Subject("spread", 1, 6, 4, "first", {"sleep_ms": 6, "spread": 0.8}),
    Subject("spread, without workers", 0, 12, 8, "first", {"sleep_ms": 5, "spread": 0.5}),
    Subject("one in fifty", 2, 12, 8, "first", {"sleep_ms": 3, "slow_in": 50, "slow_ms": 200}),
    Subject("computes little", 1, 25, 8, "first", {"compute_ms": 2, "sleep_ms": 4}),
    Subject("many, pinned", 2, 8, 4, "first", {"sleep_ms": 5, "tensors": 40, "size": 5_000}, {"pin_memory": True}),
    Subject("dictionary", 1, 12, 4, "first", {"sleep_ms": 6, "tensors": 30, "size": 2_000}),
    Subject("twelve tensors, pinned", 1, 15, 8, "new", {"sleep_ms": 4, "spread": 0.4, "tensors": 12, "size": 20_000},
            {"pin_memory": True}),
    Subject("computes, many tensors", 3, 18, 4, "new", {"compute_ms": 3, "sleep_ms": 4, "tensors": 80}),
    Subject("large, without workers", 0, 14, 8, "new", {"sleep_ms": 4, "size": 300_000}),
)  # fmt: skip
