"""Our operator averages equal ``prof.key_averages()`` of the profile object that wrote the trace.

Compared with torch's rows without Python views and without those of the profiler's and driver's own overhead ("Command
Buffer Full"): torch nests those by clock into a thread that they are not of, and gives each the kernels of the call it
lies in once more. Rows of kernels and of annotations on the GPU's timeline have no counterpart among host events.

What torch counts otherwise is known, and bounded by what can be seen in the trace:

- CUDA calls that lie in no op (and all, where no ids were recorded) have no thread in torch, which nests them by clock
  into another: rows may differ by their time, and their own rows by their number.
- The GPU timeline's ``cuda_sync`` events are device time to torch.
- Device time is not compared where torch has no ids to join by, or the file no GPU activities.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from invariants.conftest import AVERAGED, Recording
from invariants.properties import NotRecorded, Properties

from tb_dlprof_plugin.metrics.averages import OperatorAverage, kernel_averages, operator_averages
from tb_dlprof_plugin.model.profile import CallKind
from tb_dlprof_plugin.model.tree import inherit

PROPERTIES = Properties()
NS_PER_CALL = 1.001
"""How far a time may be off for each call: torch keeps µs as floating point, the trace three decimals."""
MODULE_PREFIX = "tb_dlprof::module::"
OVERHEAD = {
    "Activity Buffer Request",
    "Buffer Flush",
    "Command Buffer Full",
    "Instrumentation",
    "Lazy Function Loading",
    "Resource",
    "Runtime Triggered Module Loading",
}

SYNC_EVENTS = {"Stream Wait Event", "Stream Sync", "Context Sync", "Event Sync"}
"""The GPU timeline's own waits, which are no work."""


@dataclass(frozen=True)
class Allowance:
    """What torch counts otherwise in one recording; times in ns."""

    misplaced_calls: Counter[str]
    misplaced_ns: int
    sync_ns: int
    compare_device: bool


@PROPERTIES.seen_in("cuda_training", "torch_2_8_cpu_training")
def averages_equal_those_of_torch(recording: Recording) -> None:
    if not (recording.profile.calls.duration_ns % 1000).any():
        raise NotRecorded("whole microseconds: torch up to 2.3 rounds them otherwise in its rows, and nests by them")
    averages = recording.averages
    rows = averages.get("rows_without_overhead", averages["rows"])
    torchs = [row for row in rows if row["device_type"] == "CPU"]
    ours = _by_name(operator_averages(recording.view))
    allowance = _allowance(recording)
    wrong = [line for row in torchs for line in _differences(row, ours.get(_name_of(row)), allowance)]
    assert not wrong, "\n".join(wrong)
    assert not set(ours) - {_name_of(row) for row in torchs} - OVERHEAD


@PROPERTIES.seen_in("cuda_training", "two_streams")
def kernels_copies_and_sets_equal_those_of_torch(recording: Recording) -> None:
    rows = recording.averages["rows"]
    torchs = {row["key"]: row for row in rows if row["device_type"] != "CPU" and not row["user_annotation"]}
    ours = {row.name: row for row in kernel_averages(recording.view)}
    if not ours:
        raise NotRecorded("nothing ran on a GPU")
    assert set(torchs) - set(ours) <= SYNC_EVENTS
    for name, row in ours.items():
        assert row.calls == torchs[name]["count"], name
        assert abs(row.device_ns - torchs[name]["self_device_us"] * 1e3) <= NS_PER_CALL * row.calls, name


@pytest.mark.parametrize("recording", AVERAGED, indirect=True)
def test_key_averages(recording: Recording) -> None:
    PROPERTIES.assert_hold(recording)


def _name_of(row: dict[str, Any]) -> str:
    name: str = row["key"]
    return name.removeprefix(MODULE_PREFIX)


def _by_name(rows: list[OperatorAverage]) -> dict[str, OperatorAverage]:
    twice = [name for name, count in Counter(row.name for row in rows).items() if count > 1]
    assert not twice, "several rows of one name"
    return {row.name: row for row in rows}


def _allowance(recording: Recording) -> Allowance:
    view, profile = recording.view, recording.profile
    calls = profile.calls
    if not profile.has_gpu:
        return Allowance(Counter(), 0, 0, compare_device=False)
    kind = profile.ops.kind[calls.op]
    is_op = (kind == CallKind.OP) | (kind == CallKind.MODULE)
    in_op = inherit(is_op, is_op, view.call_parent)
    has_ids = any("External id" in event.args for event in recording.raw.gpu())
    misplaced = np.flatnonzero((kind == CallKind.RUNTIME) & (~in_op if has_ids else True))
    return Allowance(
        misplaced_calls=Counter(profile.strings[i] for i in profile.ops.name[calls.op[misplaced]].tolist()),
        misplaced_ns=int(calls.duration_ns[misplaced].sum()),
        sync_ns=sum(event.duration_ns for event in recording.raw.events if event.cat == "cuda_sync"),
        compare_device=has_ids,
    )


def _differences(row: dict[str, Any], own: OperatorAverage | None, allowance: Allowance) -> list[str]:
    """A line for each figure of a row that differs."""
    name = row["key"]
    misplaced = allowance.misplaced_calls[name]
    if own is None:
        return [f"{name}: missing ({row['count']} calls)"]
    lines = []
    if abs(own.calls - row["count"]) > misplaced:
        lines.append(f"{name}: {own.calls} calls, torch counts {row['count']}")
    figures = [
        ("cpu total", own.cpu_total_ns, row["cpu_us"], allowance.misplaced_ns if misplaced else 0),
        ("cpu self", own.cpu_self_ns, row["self_cpu_us"], allowance.misplaced_ns),
    ]
    if allowance.compare_device:
        figures += [
            ("device total", own.device_total_ns or 0, row["device_us"], allowance.sync_ns),
            ("device self", own.device_self_ns or 0, row["self_device_us"], allowance.sync_ns),
        ]
    for what, ns, us, allowed_ns in figures:
        if abs(ns - us * 1e3) > NS_PER_CALL * row["count"] + allowed_ns:
            lines.append(f"{name}: {what} {ns / 1e3:.3f} us, torch has {us:.3f} us")
    return lines
