"""Builds the memory table: allocations and frees with their calls, and each free's allocation."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import PARTNER_UNKNOWN, Ints, Memory
from tb_dlprof_plugin.model.timeline import HostEvents, MemoryEvents, Timeline


def build_memory(timeline: Timeline, parent: Ints) -> Memory:
    """The memory table of a timeline.

    Args:
        timeline: the trace.
        parent: per host event the row of its parent, -1 for none.
    """
    events = timeline.memory
    return Memory(
        time_ns=events.time_ns,
        bytes=events.bytes,
        allocated=events.allocated,
        reserved=events.reserved,
        device=events.device,
        call=_innermost(timeline.host, events, parent),
        partner=_partners(events),
    )


def _innermost(host: HostEvents, events: MemoryEvents, parent: Ints) -> Ints:
    """Row of the innermost call on the event's own thread at its time, -1 for none."""
    if not len(host) or not len(events):
        return np.full(len(events), -1, dtype=np.int64)
    # Host rows are sorted by thread and start: one sorted key finds the last call to start before the event.
    first = min(int(host.start_ns.min()), int(events.time_ns.min()))
    span = max(int(host.start_ns.max()), int(events.time_ns.max())) - first + 1
    keys = host.thread * span + (host.start_ns - first)
    row = np.searchsorted(keys, events.thread * span + (events.time_ns - first), side="right") - 1
    row = np.where((row >= 0) & (host.thread[np.maximum(row, 0)] == events.thread), row, -1)
    return _first_that_lasts(host.start_ns + host.duration_ns, events.time_ns, row, parent)


def _first_that_lasts(stop: Ints, time: Ints, row: Ints, parent: Ints) -> Ints:
    """Per row the nearest call, itself or above, that ends no earlier than ``time``; -1 for none.

    What is further out ends later, so strides of halving length find it however deep the calls are nested.
    """
    strides = [np.where(parent >= 0, parent, np.arange(len(parent)))]
    while not np.array_equal(further := strides[-1][strides[-1]], strides[-1]):
        strides.append(further)
    known = row >= 0
    result = np.maximum(row, 0)
    for stride in reversed(strides):
        beyond = stride[result]
        result = np.where(stop[beyond] < time, beyond, result)
    result = np.where(stop[result] < time, parent[result], result)
    return np.where(known, result, -1)


def _partners(events: MemoryEvents) -> Ints:
    """Pairs each free with the last allocation before it at the same address of the same device.

    torch 1.8 and 1.9 write no addresses; without one it is `PARTNER_UNKNOWN`.
    """
    partner = np.where(events.address >= 0, -1, PARTNER_UNKNOWN)
    known = np.flatnonzero(events.address >= 0)
    order = known[np.lexsort((known, events.address[known], events.device[known]))]
    allocation, free = order[:-1], order[1:]
    pair = (
        (events.address[allocation] == events.address[free])
        & (events.device[allocation] == events.device[free])
        & (events.bytes[allocation] > 0)
        & (events.bytes[free] < 0)
    )
    partner[allocation[pair]] = free[pair]
    partner[free[pair]] = allocation[pair]
    return partner
