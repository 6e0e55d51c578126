"""Makes the events of a thread nest: no call begins inside another one and ends after it.

A thread leaves its last call first, so such events were recorded or written wrongly. Counted as they are, a call has
less time than the calls in it, and shares are above 100 %.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tb_dlprof_plugin.model.call_tree import depths
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.timeline import HostEvents, HostKind, Timeline, TraceNote
from tb_dlprof_plugin.model.tree import parents
from tb_dlprof_plugin.names.ops import PROFILER_STEP


def without_crossings(timeline: Timeline) -> tuple[Timeline, Ints, Ints]:
    """The timeline with events that nest; the depth of each host event, and the row of its parent, -1 for none.

    Of two events that cross, the first ends where the second begins; but a step keeps its end, and what begins in it
    ends with it. A note counts the events that were shortened. Times of the profiler's own work may overlap each other:
    it records them from several threads as one.
    """
    host = timeline.host
    depth = depths(host)
    parent = parents(depth)
    if not _cross(host, parent):
        return timeline, depth, parent
    steps = {index for index, name in enumerate(timeline.strings) if name.startswith(PROFILER_STEP)}
    duration = np.array(_nested(host, steps), dtype=np.int64) - host.start_ns
    count = int((duration < host.duration_ns).sum())
    host = dataclasses.replace(host, duration_ns=duration)
    note = TraceNote(
        "crossing_events",
        "Events of one thread overlapped without one inside the other; they were shortened to where the next one "
        "begins, or to the end of their step.",
        count,
    )
    depth = depths(host)
    return dataclasses.replace(timeline, host=host, notes=[*timeline.notes, note]), depth, parents(depth)


def _cross(host: HostEvents, parent: Ints) -> bool:
    """Whether any event begins before the one in front of it under the same caller has ended."""
    order = np.argsort(parent, kind="stable")
    start, stop = host.start_ns[order], (host.start_ns + host.duration_ns)[order]
    siblings = (parent[order[1:]] == parent[order[:-1]]) & (host.thread[order[1:]] == host.thread[order[:-1]])
    own = (host.kind == HostKind.OVERHEAD)[order]
    return bool((siblings & (start[1:] < stop[:-1]) & ~(own[1:] & own[:-1])).any())


def _nested(host: HostEvents, steps: set[int]) -> list[int]:
    """The end of each event (ns)."""
    stops: list[int] = (host.start_ns + host.duration_ns).tolist()
    around: list[tuple[int, bool]] = []  # rows that have not ended, and whether they are steps
    thread = -1
    own = (host.kind == HostKind.OVERHEAD).tolist()
    rows = zip(host.thread.tolist(), host.start_ns.tolist(), host.name.tolist(), strict=True)
    for row, (its_thread, start, name) in enumerate(rows):
        if its_thread != thread:
            around, thread = [], its_thread
        is_step = name in steps
        while around and stops[around[-1][0]] <= start:
            around.pop()
        while around and stops[row] > stops[around[-1][0]]:
            outer, outer_is_step = around[-1]
            if outer_is_step and not is_step:
                stops[row] = stops[outer]
            else:
                if not (own[outer] and own[row]):
                    stops[outer] = start
                around.pop()
        around.append((row, is_step))
    return stops
