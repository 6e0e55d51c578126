"""The hook measures DataLoaders from inside: batches are the same, everything is as before, and times are real."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils import fetch

from tb_dlprof_plugin import read_profiles
from tb_dlprof_plugin.capture import profile
from tb_dlprof_plugin.capture.loader.meter import ALL_OF_FIRST, BatchMeter, measured_every, size_of
from tb_dlprof_plugin.capture.loader.ring import ROWS, BatchTimes, Ring
from tb_dlprof_plugin.capture.loader.shared_memory import shared_memory
from tb_dlprof_plugin.capture.loader.transforms import TransformClock
from tb_dlprof_plugin.capture.loader.watch import LOADERS, STARTED_BEFORE, LoaderWatch
from tb_dlprof_plugin.model.profile import IN_PROCESS, WORKER_UNKNOWN
from tb_dlprof_plugin.model.run_facts import RunFacts

_ROOT = Path(__file__).parents[2]
_MS = 1_000_000


def _measured(*arguments: object) -> Any:
    command = [sys.executable, "-m", "tests.capture.loader_program", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_ROOT)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("kind", "workers", "method"),
    [
        ("map", 0, "none"), ("map", 2, "fork"), ("map", 2, "spawn"), ("map", 2, "forkserver"), ("whole", 2, "fork"),
        ("stream", 2, "fork"), ("stream", 0, "none"), ("own", 2, "fork"), ("subset", 2, "fork"), ("list", 2, "fork"),
        ("list", 0, "none"),
    ],
)  # fmt: skip
def test_batches_are_the_same_and_everything_is_restored(kind: str, workers: int, method: str) -> None:
    found = _measured(kind, workers, method)
    assert found["same"]
    assert found["restored"]
    assert (found["missing"], found["folder"], found["left"]) == ("", "", [])
    columns = found["columns"]
    assert set(columns["worker"]) == (set(range(workers)) if workers else {IN_PROCESS})
    if workers:
        assert found["method"] == method
        assert found["ready_ns"] > 0
        assert min(columns["put_ns"]) > 0
        assert max(columns["unpickle_ns"]) > 0
    if kind == "list":
        assert set(columns["median_sample_ns"]) == {-1}
        return
    if kind == "stream":
        return
    assert min(columns["items_ns"]) >= 4 * 2 * _MS
    assert columns["tensors"][0] == 2
    assert columns["bytes"][0] == 4 * 3 * 4 + 4 * 8
    assert columns["samples"][0] == 4
    assert found["transforms"]["Slow"][1] >= 2 * _MS * found["transforms"]["Slow"][0]
    assert set(found["transforms"]) == {"Noise", "Slow", "double"}
    assert found["transforms"]["Noise"][0] == found["samples"]
    if kind != "whole":
        slow = [at for at, count in enumerate(columns["slow_samples"]) if count and columns["slowest_sample"][at] == 11]
        assert slow
        assert all(columns["slow_samples_ns"][at] >= 60 * _MS for at in slow)


def test_transforms_are_found_whatever_the_dataset_calls_their_list() -> None:
    class Compose:
        def __init__(self, *transforms: Any) -> None:
            self.transforms = transforms

        def __call__(self, item: Any) -> Any:
            for one in self.transforms:
                item = one(item)
            return item

    class Flip:
        def __call__(self, item: Any) -> Any:
            return item[::-1]

    class Crop(Flip): ...

    class Images:
        def __init__(self) -> None:
            self.augment, self.other = Compose(Flip(), Compose(Crop())), Flip

    images = Images()
    clock = TransformClock(images)
    clock.start()
    images.augment([1, 2])
    clock.stop()
    images.augment([1, 2])
    assert {name: calls for name, (calls, *_) in clock.times.items()} == {"Flip": 1, "Crop": 1, "Compose": 2}
    assert "__call__" not in vars(Crop)


def test_a_recording_has_the_batches_and_why_workers_are_unknown(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 3)
    data = [torch.ones(3) for _ in range(200)]

    def record(batches: Any, where: str) -> Any:
        with profile(tmp_path / where, model=model, schedule=(3, 1, 2, 1), wait=True, quiet=True) as prof:
            for batch in batches() if callable(batches) else batches:
                model(batch).sum().backward()
                prof.step()
        (found,) = read_profiles(tmp_path / where)
        return found.profile

    seen = record(lambda: DataLoader(data, batch_size=8, num_workers=2), "seen")
    assert seen.facts.loading.missing == ""
    assert seen.facts.dataloader.num_workers == 2
    assert len(seen.loader_batches) >= 6
    assert seen.loader_batches.recorded.sum() == 2
    assert set(seen.loader_batches.worker.tolist()) == {0, 1}
    # Its iterator, and with it the workers, were there before.
    before = record(iter(DataLoader(data, batch_size=8, num_workers=2)), "before")
    assert before.facts.loading.missing == STARTED_BEFORE
    assert set(before.loader_batches.worker.tolist()) == {WORKER_UNKNOWN}
    assert (before.loader_batches.wait_ns > 0).all()
    assert (before.loader_batches.unpickle_ns[1:] > 0).any()


def test_the_loader_with_most_batches_while_the_profiler_ran_is_the_training_s() -> None:
    watch = LoaderWatch()
    watch.install("test")
    try:
        for _ in DataLoader([1.0] * 20, batch_size=2):
            pass
        with torch.profiler.profile():
            for _ in DataLoader([2.0] * 9, batch_size=3):
                pass
        facts = RunFacts()
        rows = watch.fill(facts)
        assert rows is not None
        assert rows.columns["samples"] == [3, 3, 3]
        assert rows.columns["recorded"] == [1, 1, 1]
    finally:
        watch.remove("test")


def test_of_a_loader_of_another_package_the_wait_is_known(tmp_path: Path) -> None:
    class Pipeline:
        def __init__(self) -> None:
            self.left = 12

        def __iter__(self) -> Pipeline:
            return self

        def __next__(self) -> torch.Tensor:
            if not self.left:
                raise StopIteration
            self.left -= 1
            time.sleep(0.005)
            return torch.ones(3)

    before = dict(vars(Pipeline))
    model, loader = torch.nn.Linear(3, 3), Pipeline()
    with profile(tmp_path, model=model, dataloader=loader, schedule=(2, 1, 2, 1), wait=True, quiet=True) as prof:
        for batch in loader:
            model(batch).sum().backward()
            prof.step()
    assert dict(vars(Pipeline)) == before
    (found,) = read_profiles(tmp_path)
    table = found.profile.loader_batches
    assert len(table) == 5
    assert (table.wait_ns >= 5 * _MS).all()
    assert "Pipeline is no iterator of torch's: of it the wait alone" in found.profile.facts.loading.missing


def test_an_iterator_that_outlives_a_watch_belongs_to_no_later_one() -> None:
    watch = LoaderWatch()
    watch.install("first")
    iterator = iter(DataLoader([1.0] * 20, batch_size=2))
    next(iterator)
    watch.remove("first")
    watch.install("second")
    try:
        del iterator
        assert watch.fill(RunFacts()) is None
    finally:
        watch.remove("second")


def test_an_error_of_the_data_set_is_the_user_s_own() -> None:
    class Broken(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            if index == 2:
                raise KeyError("no such item")
            return torch.ones(1)

    LOADERS.install("test")
    try:
        for workers in (0, 1):
            with pytest.raises(KeyError, match="no such item"):
                list(DataLoader(Broken(), num_workers=workers))
    finally:
        LOADERS.remove("test")
        # torch's frames and its exception hold each other, and with them the iterator and its worker.
        gc.collect()


def test_a_failing_measurement_costs_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise RuntimeError("broken")

    for name in ("_before", "_row"):
        monkeypatch.setattr(BatchMeter, name, fail)
    LOADERS.install("test")
    try:
        for workers in (0, 1):
            assert len(list(DataLoader([1.0] * 6, batch_size=2, num_workers=workers))) == 3
    finally:
        LOADERS.remove("test")


def test_a_ring_keeps_the_last_rows_of_each_worker(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path / "ring"), 2)
    worker = Ring(str(tmp_path / "ring"))
    assert worker.is_on
    worker.start_slot(1, 5)
    for task in range(ROWS + 10):
        worker.add(1, BatchTimes(task, *range(len(BatchTimes._fields) - 1)))
    worker.write_text(1, [3, {"Crop": [1, 2, 3]}])
    rows = ring.rows()
    assert {slot for slot, _ in rows} == {1}
    assert [row.task for _, row in rows][-1] == ROWS + 9
    assert len(rows) == ROWS - 1
    assert (ring.texts(), ring.ready_ns()) == ([[3, {"Crop": [1, 2, 3]}]], [5])
    ring.stop()
    assert not worker.is_on


def test_tensors_and_arrays_are_counted_wherever_they_are() -> None:
    batch = {"a": [torch.zeros(2, 3), (torch.zeros(4, dtype=torch.int64), "text")], "b": None, "c": 3}
    assert size_of(batch) == (24 + 32, 2)


def test_new_shared_memory_costs_its_pages_and_nothing_stays_open() -> None:
    before = set(os.listdir("/proc/self/fd"))
    large, small = shared_memory(32 << 20, 1), shared_memory(1 << 20, 1)
    assert large is not None
    assert small is not None
    # Half of the large one is measured, and stands for all of it.
    assert large[0] > 8 * small[0] > 0
    assert large[1] > 0
    assert shared_memory(0, 0) is None
    assert set(os.listdir("/proc/self/fd")) == before


def test_of_short_batches_some_are_measured_and_each_row_is_of_its_own_batch() -> None:
    class Sizes(torch.utils.data.Dataset[Any]):
        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.zeros(index + 1)

    rows: list[BatchTimes] = []
    meter = BatchMeter(rows.append, lambda content: None)
    fetcher = fetch._MapDatasetFetcher(Sizes(), True, torch.utils.data.default_collate, False)
    for task in range(200):
        assert meter.fetch(type(fetcher).fetch, fetcher, [task]).shape == (1, task + 1)
        meter.was_put(task, 0, 0)
    meter.detach()
    assert [row.task for row in rows[:ALL_OF_FIRST]] == list(range(ALL_OF_FIRST))
    assert ALL_OF_FIRST < len(rows) < 150
    assert [row.bytes for row in rows] == [4 * (row.task + 1) for row in rows]
    assert measured_every(1_000) > measured_every(2_000_000) > measured_every(20_000_000) == 1
