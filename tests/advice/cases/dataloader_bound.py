"""Cases of `dataloader_bound`: it fires from 5 % of the step, where worker processes load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advice.case import Case, between
from advice.cases.slow_loading_part import loaded
from advice.recordings import ADD, epochs, loading

from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts, System

_EIGHT = System(cpu_count=8)


def _waiting(microseconds: float) -> Callable[[Any], None]:
    def events(trace: Any) -> None:
        trace.step(0, 0, 1000)
        trace.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, microseconds)
        trace.op("aten::mm", 500, 100)

    return events


def _behind_work(trace: Any) -> None:
    trace.step(0, 0, 1000)
    trace.op("aten::mm", 0, 10)
    trace.launch(ADD, 2, 10, 900)
    trace.loader(100, 400)


CASES = (
    Case("below the threshold", _waiting(49.9), "silent", "5.0 % of the step is spent waiting in the DataLoader"),
    Case(
        "at the threshold",
        _waiting(50),
        "fired",
        "0.05 ms of each 1.00 ms step",
        {"Share of the step": 5.0, "Waiting per step": 50_000, "Worker processes": None},
        None,
    ),
    *(
        Case(
            f"worker processes {facts}",
            loading("MultiProcessing", 600),
            "fired",
            readings={"Waiting per step": 600_000},
            saving_ns=(between(1, 850_000), between(1, 850_000), between(1, 850_000)),
            facts=RunFacts(dataloader=facts),
            system=_EIGHT,
        )
        for facts in (None, DataLoaderFacts(num_workers=2))
    ),
    Case(
        "batches that the hook measured",
        loaded(),
        "fired",
        # 31 of 31 ms a batch with one worker, 10.7 with enough.
        saving_ns=(between(18_000_000, 21_000_000), between(18_500_000, 21_000_000), between(19_000_000, 23_000_000)),
        says=["Use 3 workers", "num_workers=3", "The transform Resize takes"],
    ),
    Case("no worker processes", loading("SingleProcess", 600), "silent", "see synchronous_dataloader", system=_EIGHT),
    Case(
        "workers that start again",
        epochs,
        "silent",
        "see worker_restart",
        facts=RunFacts(dataloader=DataLoaderFacts(num_workers=2, persistent_workers=False)),
        system=_EIGHT,
    ),
    Case("the GPU works meanwhile", _behind_work, "silent"),
)
