"""Causes that were planted in a loader, and whether they are named; and what the hook costs an item.

    python -m lab.loader.planted [--only NAME ...]
    python -m lab.loader.planted --cost

The first records a training for each cause and prints what is named. The second compares the CPU time of batches with
and without the hook, in turns in one process, per batch and as a share of a batch of items of 2 ms.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from tb_dlprof_plugin import profile, read_profiles
from tb_dlprof_plugin.advice.loader_hints import loader_hints
from tb_dlprof_plugin.capture.loader.meter import ALL_OF_FIRST, BatchMeter, measured_every
from tb_dlprof_plugin.metrics.loader.parts import slow_part
from tb_dlprof_plugin.profile_view import ProfileView

from .subjects import Compose, Items, compute

_ITEM_NS = 2_000_000


class Crop:
    """A transform that takes 0.3 ms."""

    def __call__(self, item: Any) -> Any:
        time.sleep(0.0003)
        return item


class Rotate:
    """One that takes 5 ms."""

    def __call__(self, item: Any) -> Any:
        time.sleep(0.005)
        return item


def normalise(item: Any) -> Any:
    """One that computes for 4 ms."""
    compute(4)
    return item


class Transformed(Items):
    """Items with transforms."""

    def __init__(self, *transforms: Any, **options: Any) -> None:
        super().__init__(**options)
        self.transform = Compose(list(transforms))

    def __getitem__(self, index: int) -> Any:
        return self.transform(super().__getitem__(index))


def pad(items: list[Any]) -> Any:
    """A ``collate_fn`` that takes 40 ms."""
    time.sleep(0.04)
    return torch.utils.data.default_collate(items)


def convert(items: list[Any]) -> Any:
    """One that computes for 30 ms."""
    compute(30)
    return torch.utils.data.default_collate(items)


@dataclass(frozen=True)
class Planted:
    """A cause: what it is to be named as, with a name where it has one; the data set, and arguments of the loader."""

    kind: str
    name: str
    data: Callable[[], Any]
    loader: dict[str, Any]


PLANTED = {
    "slow transform": Planted("transform", "Rotate", lambda: Transformed(Crop(), Rotate(), sleep_ms=1), {}),
    "slow function": Planted("transform", "normalise", lambda: Transformed(Crop(), normalise, sleep_ms=1), {}),
    "slow collate": Planted("collate", "pad", lambda: Items(sleep_ms=2), {"collate_fn": pad}),
    "collate that computes": Planted("collate", "convert", lambda: Items(sleep_ms=1), {"collate_fn": convert}),
    "one slow item in a hundred": Planted(
        "slow items", "", lambda: Items(sleep_ms=2, slow_in=100, slow_ms=250), {"batch_size": 8}
    ),
    "one in thirty": Planted("slow items", "", lambda: Items(sleep_ms=4, slow_in=30, slow_ms=150), {"batch_size": 8}),
    "many tensors": Planted("tensors", "", lambda: Items(sleep_ms=1, tensors=120), {}),
    "slow disk": Planted("items", "", lambda: Items(sleep_ms=12), {}),
}


def main() -> None:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(PLANTED))
    parser.add_argument("--record", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.record:
        record(PLANTED[given.record[0]], given.record[1])
    elif given.cost:
        for batch in (1, 8, 32):
            per_batch, share = cost(batch)
            print(f"batches of {batch:2}: {per_batch / 1e3:6.1f} us a batch, {share:.2f} % of items of 2 ms")
    else:
        named = sum([is_named(name) for name in given.only])
        print(f"{named} of {len(given.only)} named")


def record(planted: Planted, directory: str) -> None:
    """Writes a profile of a training that waits for two workers."""
    model = torch.nn.Linear(4, 4)
    options = {"batch_size": 4, "num_workers": 2, "shuffle": True} | planted.loader
    loader = torch.utils.data.DataLoader(planted.data(), **options)
    with profile(directory, model=model, schedule=(150, 2, 3, 1), wait=True, quiet=True, keep_trace=False) as session:
        for step, _ in enumerate(loader):
            model(torch.ones(4, 4)).sum().backward()
            time.sleep(0.002)
            session.step()
            if step == 156:
                break


def is_named(name: str) -> bool:
    """Whether the part that costs most is the one that was planted; prints what is said."""
    planted = PLANTED[name]
    with tempfile.TemporaryDirectory(prefix="loader_planted_") as folder:
        command = [sys.executable, "-m", "lab.loader.planted", "--record", name, folder]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[2])
        (found,) = read_profiles(folder)
        view = ProfileView(found.profile)
        part, hints = slow_part(view), loader_hints(view)
    named = part is not None and (part.kind, planted.name in ("", part.name)) == (planted.kind, True)
    print(
        f"{name:28} {'named' if named else 'MISSED'}: {part}\n" + "".join(f"    {hint}\n" for hint in hints), flush=True
    )
    return named


class _Computes(Dataset[Any]):
    """Items that compute for 0.2 ms by this thread's own clock, so that whatever else runs does not count."""

    def __getitem__(self, index: int) -> Any:
        compute(0.2)
        return torch.zeros(16)


def cost(batch: int, rounds: int = 40) -> tuple[float, float]:
    """CPU time in ns that measuring a batch takes, and the share in percent that the hook takes of batches of items of
    2 ms, where not all of the shorter ones are measured."""
    fetcher = _MapDatasetFetcher(_Computes(), True, torch.utils.data.default_collate, False)
    index = list(range(batch))
    original: Any = _MapDatasetFetcher.fetch

    def timed(with_hook: bool) -> float:
        meter = BatchMeter(lambda row: None, lambda content: None)
        begin = time.process_time_ns()
        for task in range(ALL_OF_FIRST):
            if with_hook:
                meter.fetch(original, fetcher, index)
                meter.was_put(task, 0, 0)
            else:
                original(fetcher, index)
        took = time.process_time_ns() - begin
        meter.detach()
        return took / ALL_OF_FIRST

    timed(True)
    added = statistics.median(timed(True) - timed(False) for _ in range(rounds))
    return added, 100 * added / measured_every(batch * _ITEM_NS) / (batch * _ITEM_NS)


if __name__ == "__main__":
    main()
