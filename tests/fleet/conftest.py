"""Ranks of small jobs as facts: each test says what differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.fleet.rank_facts import UNKNOWN, Collectives, Group, KernelTimes, Operation, RankFacts, Steps


def make_rank(
    rank: int,
    calls: Sequence[dict[str, Any]],
    *,
    groups: Sequence[Group] = (Group("0", "default_pg", (0, 1)),),
    steps: Sequence[int] = (1,),
    host: str = "",
    clock_ns: int = 0,
    drift: float = 0.0,
    world_size: int = 2,
) -> RankFacts:
    """A rank's facts. ``calls`` have true times (``start``, ``end``); its clock is ``clock_ns`` ahead and drifts."""
    defaults: dict[str, Any] = {
        "step": 0, "group": 0, "operation": Operation.ALL_REDUCE, "sequence": UNKNOWN, "bytes": 1000, "dtype": 1,
        "peer": UNKNOWN,
    }  # fmt: skip
    rows = [defaults | one for one in calls]

    def column(name: str) -> Any:
        return np.array([one[name] for one in rows], dtype=np.int64)

    def on_clock(name: str) -> Any:
        true = column(name)
        return true + np.rint(true * drift).astype(np.int64)

    start, end = on_clock("start"), on_clock("end")
    nothing = np.full(len(rows), UNKNOWN, dtype=np.int64)
    table = Collectives(
        iteration=column("step"),
        group=column("group"),
        operation=column("operation"),
        sequence=column("sequence"),
        bytes=column("bytes"),
        dtype=column("dtype"),
        peer=column("peer"),
        start_ns=start,
        duration_ns=end - start,
        exposed_ns=end - start,
        work_ns=np.zeros(len(rows), dtype=np.int64),
        idle_ns=np.zeros(len(rows), dtype=np.int64),
        launched_ns=start - 10_000,
        module=nothing,
        stream=np.full(len(rows), 7, dtype=np.int64),
    )
    count, last = len(steps), int(end.max(initial=1_000_000))
    columns = {field.name: np.zeros(count, dtype=np.int64) for field in dataclasses.fields(Steps)}
    columns |= {"number": np.array(steps), "end_ns": np.full(count, last)}
    return RankFacts(
        rank=rank,
        world_size=world_size,
        host=host,
        gpu="NVIDIA H200",
        device=0,
        base_ns=1_700_000_000_000_000_000 + clock_ns,
        framework="pytorch",
        backend="nccl",
        steps=Steps(**columns),
        step_length=None,
        groups=tuple(groups),
        collectives=table,
        kernels=KernelTimes(*(np.zeros(0, dtype=np.int64) for _ in range(3))),
        strings=("", "Float", "Half"),
    )


@pytest.fixture(scope="session")
def new_rank() -> Callable[..., RankFacts]:
    return make_rank
