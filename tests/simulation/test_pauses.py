"""Times in which the program's own code runs. Times in µs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tb_dlprof_plugin.simulation.pauses import times_outside

NewTrace = Callable[..., Any]


def test_own_code_is_what_no_op_covers_for_long(new_trace: NewTrace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 20_000)
    trace.op("aten::mm", 0, 100)
    trace.launch("k", 50, 60, 5)
    # Too short, and covered by another thread.
    trace.op("aten::mm", 1_000, 100)
    trace.op("aten::add", 1_100, 3_900, tid=2)
    trace.op("c10d::recv_", 7_000, 100)
    trace.op("aten::relu", 12_000, 100)
    trace.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 13_500, 2_000)
    trace.op("aten::stack", 14_000, 1_000)
    trace.op("aten::sub", 17_500, 100)
    start, stop = times_outside(trace.view())
    # Between recv_ and relu the process waits for another one.
    assert list(zip((start / 1000).tolist(), (stop / 1000).tolist(), strict=True)) == [
        (5_000, 7_000),
        (12_100, 17_500),
    ]
