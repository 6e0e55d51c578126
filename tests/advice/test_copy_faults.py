"""Which fault a copy between CPU and GPU has: the rules about copies share them out."""

from __future__ import annotations

import pytest
from advice.recordings import DTOH, HTOD, copy

from tb_dlprof_plugin.advice.rules.copies.copies import Fault, copies


@pytest.mark.parametrize(
    ("name", "size", "dur", "waits", "fault"),
    [
        (HTOD.format("Pinned"), 2**24, 310.0, False, Fault.NONE),
        (HTOD.format("Pinned"), 2**24, 310.0, True, Fault.BLOCKING),
        (HTOD.format("Pinned"), 2**24, 1_000.0, False, Fault.SLOW),
        (HTOD.format("Pageable"), 2**24, 1_000.0, True, Fault.PAGEABLE),
        (HTOD.format("Pageable"), 4096, 1.0, True, Fault.BLOCKING),
        (DTOH.format("Pageable"), 2**24, 1_000.0, True, Fault.SLOW),
        (DTOH.format("Pageable"), 4, 1.0, True, Fault.BLOCKING),
    ],
)
def test_a_copy_has_one_fault(new_trace, name: str, size: int, dur: float, waits: bool, fault: Fault) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 3000)
    copy(trace, 100, name, size=size, gpu=110, dur=dur, until=115 + dur if waits else None)
    view = trace.view()
    found = copies(view, view.selection())
    assert found.fault.tolist() == [fault]
    assert (found.wait >= 0).tolist() == [waits or "Pageable" in name]
