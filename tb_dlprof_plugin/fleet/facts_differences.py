"""Columns of a rank's facts as small differences, and back: what follows from other columns, or from the row before.

A call mostly starts when the work and the idle time since the call before are over.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from tb_dlprof_plugin.fleet.facts_check import numbers_in
from tb_dlprof_plugin.fleet.packed_columns import SAME_CALLS
from tb_dlprof_plugin.fleet.rank_facts import (
    NO_PATH,
    PATH_COLUMNS,
    PATHS,
    UNKNOWN,
    UNPROFILED,
    Collectives,
    Gradients,
    Steps,
)
from tb_dlprof_plugin.model.lookup import rows_of_each
from tb_dlprof_plugin.model.profile import Ints

DIFFERENCES = ("iteration", "sequence")
"""Columns of calls as differences to the row before."""
_PATH_UNIT_NS = 1000
_NO_PATH = NO_PATH // _PATH_UNIT_NS


def small_calls(calls: Collectives, steps: Steps) -> dict[str, Ints]:
    """The columns of the collectives as differences."""
    columns = numbers_in(calls)
    stop = calls.start_ns + calls.duration_ns
    since = _since(calls.iteration, steps.start_ns, stop)
    columns["start_ns"] = calls.start_ns - since - calls.work_ns - calls.idle_ns
    columns["exposed_ns"] = calls.duration_ns - calls.exposed_ns
    columns["launched_ns"] = np.where(calls.launched_ns == UNKNOWN, -1, calls.start_ns - calls.launched_ns)
    for name in DIFFERENCES:
        columns[name] = np.diff(columns[name], prepend=0)
    _small_paths(columns)
    return columns


def whole_calls(of_ranks: dict[str, list[Ints]], all_steps: Sequence[Steps]) -> list[Collectives]:
    """Of each rank the calls that `small_calls` made differences of; columns of `DIFFERENCES` are whole already."""
    counts = [len(own) for own in of_ranks["iteration"]]
    if any([len(own) for own in column] != counts for column in of_ranks.values()):
        raise ValueError("the columns of its collectives differ in length")
    steps = [len(one.number) for one in all_steps]
    columns = {name: np.concatenate(column) for name, column in of_ranks.items() if name not in SAME_CALLS}
    iteration = np.concatenate(of_ranks["iteration"])
    if len(iteration) and (iteration.min() < 0 or (iteration >= np.repeat(steps, counts)).any()):
        raise ValueError("a collective belongs to no step")
    _whole_paths(columns)
    begins = np.concatenate([one.start_ns for one in all_steps])
    numbered = iteration + np.repeat(np.cumsum(steps) - steps, counts)
    late = columns["start_ns"] + columns["work_ns"] + columns["idle_ns"]
    start = _starts(numbered, late, columns["duration_ns"], begins)
    columns["start_ns"] = start
    columns["exposed_ns"] = columns["duration_ns"] - columns["exposed_ns"]
    ahead = columns["launched_ns"]
    columns["launched_ns"] = np.where(ahead == -1, UNKNOWN, start - ahead)
    edges = np.cumsum([0, *counts]).tolist()
    same = {name: column for name, column in of_ranks.items() if name in SAME_CALLS}
    return [
        Collectives(
            **{name: column[rank] for name, column in same.items()},
            **{name: column[begin:stop] for name, column in columns.items()},
        )
        for rank, (begin, stop) in enumerate(itertools.pairwise(edges))
    ]


_USUAL: tuple[tuple[str, Callable[[dict[str, Ints]], Ints]], ...] = (
    (
        UNPROFILED + "gpu_after_host_ns",
        lambda of: of["gpu_after_host_ns"] - of["host_ns"] + of[UNPROFILED + "host_ns"],
    ),
    (UNPROFILED + "host_ns", lambda of: of["host_ns"] * 13 // 20),
    (UNPROFILED + "host_after_gpu_ns", lambda of: of["host_after_gpu_ns"]),
    (UNPROFILED + "gpu_ns", lambda of: of["gpu_ns"]),
    ("gpu_after_host_ns", lambda of: of["host_ns"]),
    ("gpu_ns", lambda of: of["work_ns"] // _PATH_UNIT_NS),
)
"""Paths with what they mostly are, by columns that come later."""


def _small_paths(columns: dict[str, Ints]) -> None:
    """Paths in microseconds, as differences to what they mostly are."""
    for name in PATH_COLUMNS:
        columns[name] = columns[name] // _PATH_UNIT_NS
    for name, usual in _USUAL:
        columns[name] = columns[name] - np.where(columns[name] == _NO_PATH, 0, usual(columns))


def _whole_paths(columns: dict[str, Ints]) -> None:
    """The columns that `_small_paths` made differences of; a format without paths has none of them."""
    if PATHS[0] not in columns:
        return
    for name, usual in reversed(_USUAL):
        columns[name] = columns[name] + np.where(columns[name] == _NO_PATH, 0, usual(columns))
    for name in PATH_COLUMNS:
        nothing = columns[name] == _NO_PATH
        if nothing.all():
            # As `Collectives` has it, without room.
            del columns[name]
            continue
        columns[name] = np.where(nothing, NO_PATH, columns[name] * _PATH_UNIT_NS)


def _since(iteration: Ints, begin: Ints, stop: Ints) -> Ints:
    """For each call the latest end of those before it in its iteration, else where the iteration begins."""
    result = np.empty_like(stop)
    for own, rows in rows_of_each(iteration):
        result[rows] = np.r_[begin[own], np.maximum.accumulate(stop[rows])[:-1]]
    return result


def _starts(iteration: Ints, late: Ints, duration: Ints, begins: Ints) -> Ints:
    """When calls start.

    A call moves the latest end of its iteration by what it starts later and lasts, or not at all; the first one, which
    may end before its iteration begins, by that in any case.

    Args:
        iteration: of each call; iterations of other ranks have other numbers.
        late: how much later than `_since` it starts.
        duration: of each call.
        begins: of each iteration.
    """
    if not len(late):
        return late
    order: Ints | slice = slice(None)
    if (np.diff(iteration) < 0).any():
        order = np.argsort(iteration, kind="stable")
    iteration, ends = iteration[order], (late + duration)[order]
    first = np.flatnonzero(np.concatenate(([True], iteration[1:] != iteration[:-1])))
    moved = np.maximum(ends, 0)
    moved[first] = ends[first]
    before = np.cumsum(moved) - moved
    base = begins[iteration[first]] - before[first]
    start = np.empty_like(late)
    start[order] = before + np.repeat(base, np.diff(np.append(first, len(late)))) + late[order]
    return start


def small_gradients(gradients: Gradients) -> dict[str, Ints]:
    """The columns, paths in microseconds."""
    columns = numbers_in(gradients)
    return {name: column // _PATH_UNIT_NS if name.endswith("_ns") else column for name, column in columns.items()}


def whole_gradients(columns: dict[str, Ints]) -> Gradients:
    """What `small_gradients` made."""
    for name in columns:
        if name.endswith("_ns"):
            columns[name] = np.where(columns[name] == _NO_PATH, NO_PATH, columns[name] * _PATH_UNIT_NS)
    return Gradients(**columns)
