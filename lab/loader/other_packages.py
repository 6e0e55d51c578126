"""Loaders and data sets of other packages, and settings of torch's: whether batches are the same with the hook's watch.

    pip install torchdata datasets webdataset
    python -m lab.loader.other_packages

Each runs in a process of its own, with 0 and 2 workers; a package that is not there is said to be left out. Prints
whether all batches are equal to the bit, how many were measured where they were made, and how long an item took.
"""

from __future__ import annotations

import hashlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from tb_dlprof_plugin.capture.loader.watch import LOADERS
from tb_dlprof_plugin.model.profile import WORKER_UNKNOWN
from tb_dlprof_plugin.model.run_facts import RunFacts

from .subjects import Items

_ITEMS = 96


class _Random(Items):
    """Items of which each draws a number."""

    def __len__(self) -> int:
        return _ITEMS

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index) + torch.rand(())


class _Fixed(_Random):
    def __getitem__(self, index: int) -> Any:
        return Items.__getitem__(self, index)


class _Numbers(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter([torch.full((3,), float(index)) for index in range(40)])


def _seed(worker: int) -> None:
    torch.manual_seed(100 + worker)


def _stateful(data: Any, workers: int) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(data, batch_size=4, num_workers=workers, worker_init_fn=_seed if workers else None)


def _hugging_face(workers: int, iterable: bool) -> Any:
    import datasets

    data = datasets.Dataset.from_dict({"x": [[float(row)] * 16 for row in range(_ITEMS)], "y": list(range(_ITEMS))})
    data = data.with_format("torch")
    return DataLoader(data.to_iterable_dataset(num_shards=4) if iterable else data, batch_size=4, num_workers=workers)


def _web_dataset(workers: int) -> Any:
    import webdataset

    folder = tempfile.TemporaryDirectory(prefix="loader_web_dataset_")
    for shard in range(4):
        with webdataset.TarWriter(f"{folder.name}/{shard}.tar") as file:
            for row in range(24):
                file.write({"__key__": f"{shard}{row:04}", "x.npy": np.full(32, float(24 * shard + row), np.float32)})
    shards = webdataset.WebDataset(folder.name + "/{0..3}.tar", shardshuffle=False)
    loader = webdataset.WebLoader(shards.decode().to_tuple("x.npy").batched(4), batch_size=None, num_workers=workers)
    loader.kept = folder  # until the loader goes
    return loader


def _torch(workers: int, data: Any = None, **options: Any) -> Any:
    return DataLoader(_Random(sleep_ms=2) if data is None else data, batch_size=4, num_workers=workers, **options)


def _started(workers: int, method: str) -> Any:
    return _torch(workers, worker_init_fn=_seed, multiprocessing_context=method if workers else None)


KINDS: dict[str, Callable[[int], Any]] = {
    "torchdata StatefulDataLoader": lambda workers: _stateful(_Random(sleep_ms=2), workers),
    "torchdata StatefulDataLoader, iterable": lambda workers: _stateful(_Numbers(), workers),
    "datasets, format torch": lambda workers: _hugging_face(workers, False),
    "datasets, iterable": lambda workers: _hugging_face(workers, True),
    "webdataset WebLoader": _web_dataset,
    "persistent workers": lambda workers: _torch(workers, worker_init_fn=_seed, persistent_workers=workers > 0),
    "in_order=False": lambda workers: _torch(workers, _Fixed(sleep_ms=2), in_order=False),
    "forkserver": lambda workers: _started(workers, "forkserver"),
    "spawn": lambda workers: _started(workers, "spawn"),
}


def main() -> None:
    """Of the command line."""
    if len(sys.argv) > 1:
        print(line(sys.argv[1], int(sys.argv[2])))
        return
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}")
    for kind in KINDS:
        for workers in (0, 2):
            command = [sys.executable, "-m", "lab.loader.other_packages", kind, str(workers)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
            last = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()[-1:]
            print(f"{kind:40} {workers} workers: {last[0] if last else 'nothing was printed'}", flush=True)


def line(kind: str, workers: int) -> str:
    """What is said of one."""
    torch.set_num_threads(1)
    try:
        plain = _epochs(kind, workers)
    except ImportError as error:
        return f"left out: {error}"
    LOADERS.install("lab")
    watched = _epochs(kind, workers)
    facts = RunFacts()
    rows = LOADERS.fill(facts)
    LOADERS.remove("lab")
    same = "the same" if plain == watched else "NOT THE SAME"
    if rows is None or facts.loading is None:
        return f"{same}; no batch was seen"
    made = sum(worker != WORKER_UNKNOWN for worker in rows.columns["worker"])
    items = [ns for ns in rows.columns["median_sample_ns"] if ns >= 0]
    each = f"{statistics.median(items) / 1e6:.2f} ms an item" if items else "whole batches"
    return f"{same}; {made} of {len(rows.columns['worker'])} batches, {each} {facts.loading.missing}"


def _epochs(kind: str, workers: int) -> list[list[str]]:
    """The digests of the batches of two epochs."""
    torch.manual_seed(5)
    loader = KINDS[kind](workers)
    epochs = [[_digest(batch) for batch in loader] for _ in range(2)]
    return [sorted(one) for one in epochs] if kind == "in_order=False" else epochs


def _digest(batch: Any) -> str:
    found = hashlib.sha256()
    left = [batch]
    while left:
        one = left.pop()
        if isinstance(one, (list, tuple)):
            left.extend(one)
        elif isinstance(one, dict):
            left.extend(one.values())
        else:
            found.update(np.asarray(one).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    main()
