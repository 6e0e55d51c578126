"""Cases of `slow_loading_part`: it fires where the step waits for batches and one part takes most of their time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from advice.case import Case, between
from support.loader_batches import MS, batches, facts, with_loader

_SLOW = np.arange(60) % 5 == 0


def loaded(
    count: int = 60, workers: int = 1, fields: dict[str, Any] | None = None, **columns: Any
) -> Callable[[Any], Any]:
    """Steps of 31 ms on a CPU, of which 21 are spent waiting for batches that were measured."""

    def make(trace: Any) -> Any:
        for step in range(3):
            trace.step(step, 31_000 * step, 31_000)
            kind = "MultiProcessing" if workers else "SingleProcess"
            trace.annotation(f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", 31_000 * step, 21_000)
            trace.op("aten::mm", 31_000 * step + 21_500, 9000)
        return with_loader(trace.view(), batches(count, **columns), facts(workers, **(fields or {})))

    return make


CASES = (
    Case(
        "a transform",
        loaded(),
        "fired",
        "The transform Resize takes 64 % of the time of a batch",
        {"Share of a batch": between(63, 65), "Worker processes": 1},
        (0, between(9_000_000, 11_000_000), between(18_000_000, 21_000_000)),
        says=["make it cheaper"],
    ),
    Case(
        "collate",
        loaded(collate_ns=40 * MS, wait_ns=61 * MS),
        "fired",
        "default_collate takes 57 % of the time of a batch",
    ),
    Case(
        "many tensors",
        # While a worker computes, the thread that serialises takes its time.
        loaded(tensors=100, items_cpu_ns=30 * MS, process_cpu_ns=51 * MS, put_ns=20 * MS, put_cpu_ns=20 * MS,
               unpickle_ns=9 * MS, wait_ns=41 * MS),
        "fired",
        "Handing over many tensors takes 48 % of the time of a batch",
        says=["pack them into few"],
    ),
    Case(
        "slow items",
        loaded(slow_samples=_SLOW, slow_samples_ns=100 * MS * _SLOW, items_ns=30 * MS + 100 * MS * _SLOW,
               slowest_sample=np.where(_SLOW, 17, -1)),
        "fired",
        "Few slow items take",
        says=["One item in 20 takes 14 times as long as the others", "the slowest is 17"],
    ),
    Case(
        "the simulation does not describe it",
        loaded(wait_ns=60 * MS),
        "fired",
        "The transform Resize takes 64 % of the time of a batch",
        saving_ns=None,
        says=["make it cheaper"],
    ),
    Case("nothing stands out", loaded(fields={"transforms": []}), "silent", "No part of loading stands out"),
    Case("no waiting", loaded(wait_ns=MS // 4), "silent", "The step waits for its batch in 2.4 % of its time."),
    Case("few batches", loaded(9), "not_applicable", "Only 9 batches were measured"),
    Case("workers unknown", loaded(worker=-2, items_ns=-1, fields={"missing": "Started before."}), "not_applicable",
         "Started before."),
)  # fmt: skip
