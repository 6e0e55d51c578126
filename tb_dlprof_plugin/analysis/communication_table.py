"""Builds the table of communication calls: what process groups recorded, with the calls and kernels it belongs to."""

from __future__ import annotations

import dataclasses

import numpy as np

from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, Communications, Ints
from tb_dlprof_plugin.model.timeline import HostEvents, Timeline
from tb_dlprof_plugin.model.tree import nearest
from tb_dlprof_plugin.names.ops import NCCL_CALL

_ARGUMENTS = ("name", "group", "sequence", "elements_in", "elements_out", "dtype", "peer")


def build_communications(timeline: Timeline, launch_call: Ints, parent: Ints, communicates: Bools) -> Communications:
    """The table of a timeline.

    A kernel has one row, with its own arguments or else those of the call around its launch. A call whose kernel is not
    known, as where calls are sent off together, has a row without one.

    Args:
        timeline: the trace.
        launch_call: per device event the row of its host event, -1 for none.
        parent: per host event the row of its parent, -1 for none.
        communicates: per device event whether it is a communication kernel.
    """
    events = timeline.communications
    if not len(events):
        return Communications.none()
    host, device = timeline.host, timeline.device
    on_cpu = np.flatnonzero(events.thread >= 0)
    call = _rows_at(np.stack((host.thread, host.start_ns)), events.thread[on_cpu], events.start_ns[on_cpu])
    call = _of_name(host, call, timeline)
    on_gpu = np.flatnonzero(events.thread < 0)
    keys = np.stack((device.device, device.stream, device.start_ns))
    launch = _rows_at(keys, events.device[on_gpu], events.stream[on_gpu], events.start_ns[on_gpu])
    event_of_call = np.full(len(host) + 1, -1, dtype=np.int64)
    event_of_call[call] = on_cpu
    event_of_call[-1] = -1
    own = np.full(len(device) + 1, -1, dtype=np.int64)
    own[launch] = on_gpu
    own = own[:-1]
    around = nearest(event_of_call[:-1] >= 0, parent)
    holder = np.where(communicates, take_or(around, launch_call, -1), -1)
    rows = np.flatnonzero((own >= 0) | (holder >= 0))
    from_call = take_or(event_of_call, holder[rows], -1)
    event = np.where(own[rows] >= 0, own[rows], from_call)
    waiting = np.setdiff1d(call[call >= 0], holder[rows])
    table = {name: getattr(events, name)[np.append(event, event_of_call[waiting])] for name in _ARGUMENTS}
    # What one of both lacks the other may have.
    spare = np.append(from_call, np.full(len(waiting), -1, dtype=np.int64))
    for name in ("group", "sequence", "peer"):
        table[name] = np.where(table[name] >= 0, table[name], take_or(getattr(events, name), spare, -1))
    result = Communications(
        call=np.append(holder[rows], waiting),
        launch=np.append(rows, np.full(len(waiting), -1, dtype=np.int64)),
        **table,
    )
    order = np.lexsort((result.call, result.launch))
    return Communications(*(getattr(result, column.name)[order] for column in dataclasses.fields(Communications)))


def _of_name(host: HostEvents, call: Ints, timeline: Timeline) -> Ints:
    """The rows that are notes of a process group, or NCCL's own; -1 in place of another call that begins then."""
    known = call >= 0
    is_note = np.array(
        [
            timeline.strings[name] == "record_param_comms" or timeline.strings[name].startswith(NCCL_CALL)
            for name in host.name[call[known]].tolist()
        ],
        dtype=np.bool_,
    )
    result = call.copy()
    result[np.flatnonzero(known)[~is_note]] = -1
    return result


def _rows_at(keys: Ints, *wanted: Ints) -> Ints:
    """For each wanted key its column among ``keys`` (of equal ones the first), -1 for none."""
    rows = np.flatnonzero(np.isin(keys[-1], wanted[-1]))
    at: dict[tuple[int, ...], int] = {}
    for key, row in zip(map(tuple, keys[:, rows].T.tolist()), rows.tolist(), strict=True):
        at.setdefault(key, row)
    found = [at.get(key, -1) for key in zip(*(column.tolist() for column in wanted), strict=True)]
    return np.array(found, dtype=np.int64)
