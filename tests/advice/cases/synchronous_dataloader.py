"""Cases of `synchronous_dataloader`: the training process loads its batches."""

from __future__ import annotations

from typing import Any

from advice.case import Case, between
from advice.cases.slow_loading_part import loaded
from advice.recordings import loading, loading_behind_work

from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts, System

_EIGHT = System(cpu_count=8)
_NONE = RunFacts(dataloader=DataLoaderFacts(num_workers=0))
_WITHIN = (between(1, 850_000), between(1, 850_000), between(1, 850_000))


def _on_the_cpu(trace: Any) -> None:
    for index in range(2):
        at = 100 * index
        trace.step(index, at, 100)
        trace.loader(at, 10)
        trace.op("aten::linear", at + 16, 50)


CASES = (
    Case(
        "batches that the hook measured",
        loaded(workers=0, worker=-1, items_ns=20_000_000, put_ns=0, put_cpu_ns=0, unpickle_ns=-1, handover_ns=-1),
        "fired",
        saving_ns=(between(19_000_000, 20_000_000), between(20_000_000, 21_000_000), between(21_000_000, 22_000_000)),
        says=["num_workers=2,"],
    ),
    Case(
        "num_workers=0",
        loading("SingleProcess", 600),
        "fired",
        "num_workers=0",
        {"Waiting per step": 600_000},
        _WITHIN,
        # 1.3 times 600 us of loading, for steps of about 200 to 300 us without it.
        ["num_workers=4,"],
        facts=_NONE,
        system=_EIGHT,
    ),
    Case("by the iterator's name", loading("SingleProcess", 600), "fired", saving_ns=_WITHIN, system=_EIGHT),
    Case(
        "a run on the CPU",
        _on_the_cpu,
        "fired",
        "num_workers=0",
        saving_ns=None,
        says=["num_workers=2"],
        facts=_NONE,
        system=System(cpu_count=2),
    ),
    Case(
        "worker processes",
        loading("MultiProcessing", 600),
        "silent",
        facts=RunFacts(dataloader=DataLoaderFacts(num_workers=2)),
        system=_EIGHT,
    ),
    Case(
        "the GPU works meanwhile",
        loading_behind_work,
        "silent",
        "0.40 ms of each 1.00 ms recorded step are spent loading in the training process: only 0.0 %",
        facts=_NONE,
    ),
)
