"""Steps from the runs of a compiled program, which runs once a step on each GPU."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.timeline import Ints


def steps_of_runs(start_ns: Ints, stop_ns: Ints, thread: Ints, gpu: Ints) -> tuple[Ints, Ints]:
    """Start and end of each step: the n-th runs on all GPUs are one step, from the first start to the last end.

    XLA runs a program on each GPU from a thread of its own, or on all of them one after the other from one thread:
    there the GPUs tell the runs apart. GPUs with fewer runs than others do not count, because which runs are missing is
    not recorded.

    Args:
        start_ns: of the runs of one program, in any order.
        stop_ns: of the same runs.
        thread: on which each was started.
        gpu: on which it ran, -1 where that is not known.
    """
    known = gpu >= 0
    pairs = np.unique(np.stack((thread[known], gpu[known])), axis=1)
    several = len(pairs[0]) > len(np.unique(pairs[0]))
    rows = np.flatnonzero(known) if several else np.arange(len(start_ns))
    keys, key, counts = np.unique((gpu if several else thread)[rows], return_inverse=True, return_counts=True)
    if not len(keys):
        return start_ns[:0], stop_ns[:0]
    most = int(counts.max())
    rows, key = rows[counts[key] == most], key[counts[key] == most]
    rows = rows[np.lexsort((start_ns[rows], key))]
    start, stop = start_ns[rows].reshape(-1, most), stop_ns[rows].reshape(-1, most)
    return start.min(axis=0), np.maximum.accumulate(stop.max(axis=0))


def gpu_of_runs(
    start_ns: Ints, stop_ns: Ints, thread: Ints, launch_start_ns: Ints, launch_thread: Ints, launch_gpu: Ints
) -> Ints:
    """The GPU that the first launch inside of each run worked on; -1 where none is known.

    Args:
        start_ns: of the runs.
        stop_ns: of the runs.
        thread: of the runs.
        launch_start_ns: of the calls that launched work.
        launch_thread: of the same calls.
        launch_gpu: the GPU of what each launched.
    """
    result = np.full(len(start_ns), -1, dtype=np.int64)
    if not len(launch_start_ns):
        return result
    calls_of = dict(rows_of_each(launch_thread))
    for one, runs in rows_of_each(thread):
        if one not in calls_of:
            continue
        calls = calls_of[one]
        calls = calls[np.argsort(launch_start_ns[calls], kind="stable")]
        at = np.searchsorted(launch_start_ns[calls], start_ns[runs])
        first = calls[np.minimum(at, len(calls) - 1)]
        inside = (at < len(calls)) & (launch_start_ns[first] < stop_ns[runs])
        result[runs[inside]] = launch_gpu[first[inside]]
    return result
