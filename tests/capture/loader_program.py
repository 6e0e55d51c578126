"""Iterates over DataLoaders with and without the hook's watch, and prints what came and what was measured, as JSON.

python -m tests.capture.loader_program KIND WORKERS START_METHOD
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import sys
import tempfile
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from lab.loader.subjects import Compose
from tb_dlprof_plugin.capture.loader.watch import FOLDER, LOADERS
from tb_dlprof_plugin.model.run_facts import RunFacts

SIZE, BATCH = 96, 4


class Noise:
    def __call__(self, item: Any) -> Any:
        return item + torch.rand(3)


class Slow:
    def __call__(self, item: Any) -> Any:
        time.sleep(0.002)
        return item


def double(item: Any) -> Any:
    return 2 * item


class Items(Dataset[Any]):
    def __init__(self) -> None:
        self.transform = Compose([Noise(), Slow(), double])

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> Any:
        if index == 11:
            time.sleep(0.06)
        return {"x": self.transform(torch.full((3,), float(index))), "y": index}


class Whole(Items):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        info = torch.utils.data.get_worker_info()
        items = Items()
        return iter([items[index] for index in range(0 if info is None else info.id, 24, 1 if info is None else 2)])


class OwnLoader(DataLoader[Any]):
    def __iter__(self) -> Any:
        yield from super().__iter__()


def seen(worker_id: int) -> None:
    torch.manual_seed(100 + worker_id)


DATA = {
    "map": Items, "whole": Whole, "stream": Stream, "own": Items, "subset": lambda: Subset(Items(), range(40)),
    "list": lambda: [float(one) for one in range(40)],
}  # fmt: skip


def loader(kind: str, workers: int, method: str) -> Any:
    options: dict[str, Any] = {"multiprocessing_context": method, "worker_init_fn": seen} if workers else {}
    make = OwnLoader if kind == "own" else DataLoader
    return make(DATA[kind](), batch_size=BATCH, num_workers=workers, **options)


def digest(batches: Any) -> str:
    found = hashlib.sha256()
    for batch in batches:
        for one in batch.values() if isinstance(batch, dict) else [batch]:
            found.update(one.numpy().tobytes())
    return found.hexdigest()


def measured(kind: str, workers: int, method: str) -> dict[str, Any]:
    torch.manual_seed(5)
    plain = digest(loader(kind, workers, method))
    before = state()
    LOADERS.install("test")
    torch.manual_seed(5)
    data = loader(kind, workers, method)
    watched = digest(data)
    iterator = iter(data)
    with contextlib.suppress(StopIteration):
        for _ in range(5):
            next(iterator)
    facts = RunFacts()
    rows = LOADERS.fill(facts)
    assert facts.loading is not None
    assert rows is not None
    LOADERS.remove("test")
    # What was under way goes on without the hook.
    rest = sum(1 for _ in iterator)
    del iterator
    return {
        "same": plain == watched,
        "restored": state() == before,
        "rest": rest,
        "left": glob.glob(os.path.join(tempfile.gettempdir(), f"{FOLDER}*_{os.getpid()}*")),
        "folder": LOADERS._folder,
        "columns": rows.columns,
        "missing": facts.loading.missing,
        "method": facts.loading.start_method,
        "workers": facts.loading.workers,
        "transforms": {one.name: [one.calls, one.wall_ns] for one in facts.loading.transforms},
        "samples": facts.loading.transform_samples,
        "memory": facts.loading.worker_memory_bytes,
        "ready_ns": facts.loading.ready_ns,
        "first_batch_ns": facts.loading.first_batch_ns,
    }


def state() -> list[str]:
    """What the hook replaces."""
    from multiprocessing import queues

    from torch.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    return [
        repr(one)
        for one in (
            _BaseDataLoaderIter.__next__, vars(_BaseDataLoaderIter).get("_worker_init_fn"), _MapDatasetFetcher.fetch,
            _IterableDatasetFetcher.fetch, queues._ForkingPickler, Items.__getitem__, Noise.__call__, Slow.__call__,  # type: ignore[attr-defined]
        )
    ]  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
