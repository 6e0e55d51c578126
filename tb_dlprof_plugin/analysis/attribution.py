"""Finds the call that launched each GPU activity: by correlation id, then by External id. Never by clock: where a
launch itself has its op by the clock (`direct_launches`), the activity is marked as such.

A kernel without a launch call whose correlation id is below every recorded launch was queued before the window: an
orphan. Whatever else has no launch call, or whose launch lies in no op, is unattributed.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Attribution, Bools, Ints
from tb_dlprof_plugin.model.timeline import HostEvents, HostKind, Timeline


def attribute(timeline: Timeline, top_call: Ints, by_time: Bools) -> tuple[Ints, Ints]:
    """For each device event the row of its launching host event (-1: none) and its `Attribution`.

    Args:
        timeline: the trace.
        top_call: per host event the row of the outermost op around it, -1 for none.
        by_time: host events that got their op by the clock.
    """
    host, device = timeline.host, timeline.device
    call = launch_calls(timeline)
    launched = call >= 0
    in_op = take_or(top_call, call, -1) >= 0

    by_id = _look_up(host, (host.kind == HostKind.OP) & (host.external_id > 0), host.external_id, device.external_id)
    fallback = ~in_op & (by_id >= 0)
    call[fallback] = by_id[fallback]

    launches = host.correlation[(host.kind == HostKind.RUNTIME) & (host.correlation > 0)]
    first_launch = int(launches.min()) if len(launches) else -1
    orphan = (call < 0) & (device.correlation >= 0) & (device.correlation < first_launch)
    attribution = np.full(len(device), int(Attribution.UNATTRIBUTED), dtype=np.int64)
    attribution[in_op | fallback] = Attribution.LINKED
    attribution[in_op & launched & take_or(by_time, call, False)] = Attribution.BY_TIME
    attribution[orphan] = Attribution.ORPHAN
    return call, attribution


def launch_calls(timeline: Timeline) -> Ints:
    """For each device event the row of the runtime or driver call with its correlation id, -1 for none."""
    host = timeline.host
    runtime = (host.kind == HostKind.RUNTIME) & (host.correlation > 0)
    return _look_up(host, runtime, host.correlation, timeline.device.correlation)


def _look_up(host: HostEvents, rows: Bools, keys: Ints, wanted: Ints) -> Ints:
    """Host row whose key is the wanted one, the last to start where several have it; -1 where none has."""
    candidates = np.flatnonzero(rows)
    if not len(candidates):
        return np.full(len(wanted), -1, dtype=np.int64)
    candidates = candidates[np.lexsort((host.start_ns[candidates], keys[candidates]))]
    sorted_keys = keys[candidates]
    position = np.maximum(np.searchsorted(sorted_keys, wanted, side="right") - 1, 0)
    return np.where((sorted_keys[position] == wanted) & (wanted > 0), candidates[position], -1)
