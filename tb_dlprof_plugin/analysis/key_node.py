"""Cuts a profile into iterations at the times at which a key node stopped.

The intervals are DLProf's (User Guide 1.8, chapter 7): N instances of the key node give N + 1 of them,
``[0, Node[1].stop - 1], [Node[1].stop, Node[2].stop - 1], ..., [Node[N].stop, last]``, numbered from 0. They cover the
whole recording on the CPU. As with every other way to find iterations, times are measured from completion to
completion: an interval ends when the GPU has finished what the interval launched, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.analysis.categories import time_categories
from tb_dlprof_plugin.model.profile import Ints, Iterations, Note, Profile, Verdict

FOUND_BY = "key_node"
_NOTES_ON_STEPS = ("steps_from_optimizer", "steps_from_program", "no_steps", "unfinished_step", "steps_from_key_node")


def cut_at(profile: Profile, stop_ns: Ints, key_node: str) -> Profile:
    """The profile with N + 1 iterations in place of its own.

    Args:
        profile: with iterations of any source.
        stop_ns: when each of the N instances of the key node stopped, in order of time (ns).
        key_node: its name, for the notes.
    """
    first, last = _extent(profile)
    bounds = np.clip(stop_ns, first, last)
    host_start, host_stop = np.append(first, bounds), np.append(bounds, last)
    stop = np.maximum.accumulate(np.maximum(host_stop, _finished(profile, host_start)))
    start = np.append(first, stop[:-1])
    calls, ops, kernels, launches = profile.calls, profile.ops, profile.kernels, profile.launches
    if len(launches):
        kind, verdict = kernels.kind[launches.kernel], kernels.tensor_core[launches.kernel]
    else:
        kind, verdict = np.zeros(0, dtype=np.int64), np.full(0, int(Verdict.UNKNOWN), dtype=np.int64)
    notes = [note for note in profile.notes if note.code not in _NOTES_ON_STEPS]
    text = f"Iterations are cut where {key_node} stops: {len(bounds)} instances make {len(bounds) + 1} intervals."
    return replace(
        profile,
        iterations=Iterations(
            number=np.arange(len(host_start), dtype=np.int64),
            start_ns=start,
            stop_ns=stop,
            host_start_ns=host_start,
            host_stop_ns=host_stop,
            category_ns=time_categories(
                (calls, ops.kind[calls.op], ops.role[calls.op]),
                (launches, kind, verdict),
                (start, stop),
                profile.iterations.gpu_ids,
            ),
            gpu_ids=profile.iterations.gpu_ids,
            found_by=FOUND_BY,
            unrecorded_categories=profile.iterations.unrecorded_categories,
        ),
        notes=[Note("steps_from_key_node", text), *notes],
    )


def _extent(profile: Profile) -> tuple[int, int]:
    """When the first call or GPU activity begins and the last one ends."""
    tables = [table for table in (profile.calls, profile.launches) if len(table)]
    first = min(int(table.start_ns.min()) for table in tables)
    return first, max(int((table.start_ns + table.duration_ns).max()) for table in tables)


def _finished(profile: Profile, host_start: Ints) -> Ints:
    """When the GPU has finished what the CPU launched in each interval; 0 where that is nothing."""
    launches = profile.launches
    done = np.zeros(len(host_start), dtype=np.int64)
    known = launches.call >= 0
    launched_at = profile.calls.start_ns[launches.call[known]]
    index = np.searchsorted(host_start, launched_at, side="right") - 1
    np.maximum.at(done, np.maximum(index, 0), (launches.start_ns + launches.duration_ns)[known])
    return done
