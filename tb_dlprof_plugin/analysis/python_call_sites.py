"""Finds the user's function behind each call that waits for the GPU or copies, from the Python frames around it.

Only such calls get a call site. They are few, and their op and module do not show where in the training loop they come
from; a call site for every call would make the profile of a long recording much larger.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_dlprof_plugin.model.call_tree import depths
from tb_dlprof_plugin.model.profile import CallPlaces, Ints
from tb_dlprof_plugin.model.string_table import StringTable
from tb_dlprof_plugin.model.timeline import HostKind, Timeline
from tb_dlprof_plugin.model.tree import inherit, parents
from tb_dlprof_plugin.names.cuda_calls import COPIES, SYNCHRONIZES, CudaCall, cuda_call_column

_GET_A_PLACE = (*SYNCHRONIZES, *COPIES, CudaCall.MEMSET)


class _Spans(NamedTuple):
    thread: Ints
    start_ns: Ints
    duration_ns: Ints


def call_places(timeline: Timeline) -> CallPlaces:
    """The innermost of the user's functions around each waiting or copying call. Appends to ``timeline.strings``."""
    host, frames, strings = timeline.host, timeline.frames, timeline.strings
    if not len(frames):
        return CallPlaces.none()
    runtime = np.flatnonzero(host.kind == HostKind.RUNTIME)
    meaning = cuda_call_column(strings, host.name[runtime].tolist())
    calls = runtime[np.isin(meaning[host.name[runtime]], _GET_A_PLACE)]
    count = len(frames)
    both = _Spans(
        np.concatenate((frames.thread, host.thread[calls])),
        np.concatenate((frames.start_ns, host.start_ns[calls])),
        np.concatenate((frames.duration_ns, host.duration_ns[calls])),
    )
    # A call as long as the frame around it comes after it.
    rows = np.arange(len(both.thread))
    order = np.lexsort((rows, -both.duration_ns, both.start_ns, both.thread))
    parent = parents(depths(_Spans(*(column[order] for column in both))))
    is_frame = order < count
    around = inherit(np.where(is_frame, order, -1), is_frame, parent)
    frame = np.full(len(rows), -1, dtype=np.int64)
    frame[order] = around
    frame = frame[count:]
    known = frame >= 0
    place = frames.place[frame[known]]
    table = StringTable.over(strings)
    text_of = {index: table.add(timeline.frame_places[index]) for index in np.unique(place).tolist()}
    return CallPlaces(calls[known], np.array([text_of[index] for index in place.tolist()], dtype=np.int64))
