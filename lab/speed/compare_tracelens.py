"""Our figures against the tables that TraceLens publishes with its test traces, each by TraceLens' own definition.

TraceLens (https://github.com/AMD-AGI/TraceLens) keeps under ``tests/traces`` traces and, in ``*_perf_report_csvs``
with them, the tables that it makes of them. What its tables mean, read from its code:

- A GPU activity belongs to the innermost operator around the runtime call that launched it. What has no such operator
  is in no table of operators.
- ``gpu_timeline``: times by the clock, from the first GPU activity to the end of the last. Sets count as computation,
  copies apart; communication is what NCCL or RCCL runs; "exposed" is what nothing more important overlaps.
- ``kernel_summary``: kernels only (no copies, no sets), by operator, name and stream.
- ``ops_summary``, ``ops_unique_args``: operators that launch something themselves; per call the time in which at least
  one of its activities ran, copies and sets included.
- ``unified_perf_summary``: the same by arguments, with the operators' CPU time.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from comparison_rows import Row

from tb_dlprof_plugin.model.intervals import Intervals, merge, union
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, KernelKind
from tb_dlprof_plugin.model.shapes import inputs_text
from tb_dlprof_plugin.model.tree import climb
from tb_dlprof_plugin.profile_view import ProfileView

COMMUNICATION = re.compile(r"nccl|rccl", re.IGNORECASE)
US, MS = 1e3, 1e6
Table = list[dict[str, str]]


class _Event(msgspec.Struct):
    ts: float = 0.0
    cat: str = ""


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]


def compare(data: bytes, tables: Path, view: ProfileView) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each table that lies in the folder; ``data`` is the trace's JSON."""
    spacing = clock_spacing(data)
    subjects = {
        "gpu_timeline": timeline_rows,
        "kernel_summary": kernel_rows,
        "ops_summary": operator_rows,
        "ops_unique_args": argument_rows,
        "unified_perf_summary": unified_rows,
    }
    for name, rows_of in subjects.items():
        path = tables / f"{name}.csv"
        if path.exists():
            with path.open(newline="") as stream:
                yield name, rows_of(list(csv.DictReader(stream)), view, spacing)


def clock_spacing(data: bytes) -> float:
    """Distance of neighbouring floats (us) at the times of the trace: TraceLens adds durations to them."""

    times = [e.ts for e in msgspec.json.decode(data, type=_Trace).traceEvents if e.cat in ("kernel", "Kernel")]
    return float(np.spacing(max(times, default=0.0)))


def timeline_rows(published: Table, view: ProfileView, spacing: float) -> list[Row]:
    """``gpu_timeline``: milliseconds by the clock."""
    profile = view.profile
    launches, strings = profile.launches, profile.strings
    kind = profile.kernels.kind[launches.kernel]
    named = np.array([bool(COMMUNICATION.search(text)) for text in strings], dtype=np.bool_)
    communicates = named[profile.kernels.name[launches.kernel]] & (kind != KernelKind.MEMCPY)
    copies = kind == KernelKind.MEMCPY
    compute, comm = _running(view, ~communicates & ~copies), _running(view, communicates)
    memory, busy = _running(view, copies), _running(view, np.ones(len(launches), dtype=np.bool_))
    total = int((launches.start_ns + launches.duration_ns).max() - launches.start_ns.min())
    ours = {
        "computation_time": _length(compute),
        "exposed_comm_time": _length(merge(compute, comm)) - _length(compute),
        "exposed_memcpy_time": _length(busy) - _length(merge(compute, comm)),
        "busy_time": _length(busy),
        "idle_time": total - _length(busy),
        "total_time": total,
        "total_comm_time": _length(comm),
        "total_memcpy_time": _length(memory),
    }
    # Each end of a merged interval is one rounded sum.
    rounding = spacing * len(busy[0]) / 1e3
    return [
        Row(row["type"], ours.get(row["type"], 0) / MS, float(row["time ms"]), rounding=rounding) for row in published
    ]


def kernel_rows(published: Table, view: ProfileView, spacing: float) -> list[Row]:
    """``kernel_summary``: kernels by operator, name and stream; microseconds."""
    profile = view.profile
    launches, strings, op = profile.launches, profile.strings, view.launch_op
    by_operator = bool(published) and "Parent cpu_op" in published[0]
    kernels = profile.kernels.kind[launches.kernel] == KernelKind.KERNEL
    chosen = np.flatnonzero(kernels & (op >= 0) if by_operator else kernels)
    names = profile.kernels.name[launches.kernel[chosen]].tolist()
    parents = profile.ops.name[op[chosen]].tolist() if by_operator else [0] * len(chosen)
    times: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for parent, name, stream, duration in zip(
        parents, names, launches.stream[chosen].tolist(), launches.duration_ns[chosen].tolist(), strict=True
    ):
        times[strings[parent] if by_operator else "", strings[name], str(stream)].append(duration)
    theirs = {(r.get("Parent cpu_op", ""), r["Kernel name"], r["Kernel stream"]): r for r in published}
    prefix = "Kernel duration (µs)_"
    rows = []
    for key in sorted(times.keys() | theirs.keys()):
        own, their = times.get(key, []), theirs.get(key, {})
        figures: dict[str, float | None] = {
            "sum": sum(own) / US,
            "count": len(own),
            "min": min(own) / US if own else None,
            "max": max(own) / US if own else None,
        }
        for what, value in figures.items():
            rows.append(
                Row(f"{what} of {key[1]} in {key[0]}", value if own else None, _number(their.get(prefix + what)))
            )
    return rows


def operator_rows(published: Table, view: ProfileView, spacing: float) -> list[Row]:
    """``ops_summary``: operators that launch something themselves; microseconds."""
    calls = _launching_calls(view)
    name = [view.profile.strings[i] for i in view.profile.ops.name[view.profile.calls.op[calls.rows]].tolist()]
    return _grouped(
        published,
        [(n,) for n in name],
        [(r["name"],) for r in published],
        {
            "Count": [1.0] * len(name),
            "total_direct_kernel_time_sum": calls.own_us,
            "total_subtree_kernel_time_sum": calls.subtree_us,
        },
        [spacing * number for number in calls.intervals],
    )


def argument_rows(published: Table, view: ProfileView, spacing: float) -> list[Row]:
    """``ops_unique_args``: the same, by input shapes and types."""
    calls = _launching_calls(view)
    return _grouped(
        published,
        [_arguments(view, row) for row in calls.rows.tolist()],
        [_published_arguments(row) for row in published],
        {
            "operation_count": [1.0] * len(calls.rows),
            "total_direct_kernel_time_sum": calls.own_us,
            "total_subtree_kernel_time_sum": calls.subtree_us,
        },
        [spacing * number for number in calls.intervals],
    )


def unified_rows(published: Table, view: ProfileView, spacing: float) -> list[Row]:
    """``unified_perf_summary``: operators by input shapes and types, with their CPU time; microseconds.

    TraceLens lists an operator here either as launcher or, where it models its performance, as the one around; each
    of its rows is looked up among all calls of that name and those arguments that launched something.
    """
    profile = view.profile
    busy = _SubtreeTimes(view)
    rows = np.flatnonzero((profile.ops.kind[profile.calls.op] == CallKind.OP) & busy.launches_something)
    wanted = {_published_arguments(row) for row in published}
    keys = {row: _arguments(view, row) for row in rows.tolist()}
    # An operator that calls itself again is one row.
    parent = view.call_parent.tolist()
    chosen = [row for row, key in keys.items() if key in wanted and not _inside_itself(row, key, keys, parent)]
    times = busy.of(np.array(chosen, dtype=np.int64))
    return _grouped(
        published,
        [keys[row] for row in chosen],
        [_published_arguments(row) for row in published],
        {
            "operation_count": [1.0] * len(chosen),
            "total_duration_us": (profile.calls.duration_ns[chosen] / US).tolist(),
            "Kernel Time (µs)_sum": times[0],
        },
        [spacing * number for number in times[1]],
    )


def _inside_itself(row: int, key: tuple[str, ...], keys: dict[int, tuple[str, str, str]], parent: list[int]) -> bool:
    above = parent[row]
    while above >= 0:
        if keys.get(above) == key:
            return True
        above = parent[above]
    return False


class _SubtreeTimes:
    """Time in which something ran that a call or any call in it launched."""

    def __init__(self, view: ProfileView) -> None:
        self.view = view
        launches = view.profile.launches
        self.rows_of: dict[int, list[int]] = defaultdict(list)
        parent = view.call_parent.tolist()
        for row, call in enumerate(launches.call.tolist()):
            while call >= 0:
                self.rows_of[call].append(row)
                call = parent[call]
        self.launches_something = np.zeros(len(view.profile.calls), dtype=np.bool_)
        self.launches_something[list(self.rows_of)] = True

    def of(self, calls: Ints) -> tuple[list[float], list[int]]:
        """Microseconds of each call, and of how many intervals they were made."""
        launches = self.view.profile.launches
        lengths, intervals = [], []
        for call in calls.tolist():
            rows = np.array(self.rows_of[call], dtype=np.int64)
            merged = union(launches.start_ns[rows], launches.start_ns[rows] + launches.duration_ns[rows])
            lengths.append(_length(merged) / US)
            intervals.append(len(rows))
        return lengths, intervals


class _LaunchingCalls:
    """Operator calls that launch something themselves: their rows, own and subtree times (us), intervals in these."""

    def __init__(self, rows: Ints, own_us: list[float], subtree_us: list[float], intervals: list[int]) -> None:
        self.rows, self.own_us, self.subtree_us, self.intervals = rows, own_us, subtree_us, intervals


def _launching_calls(view: ProfileView) -> _LaunchingCalls:
    profile = view.profile
    launches, calls = profile.launches, profile.calls
    kind = profile.ops.kind[calls.op]
    owner = climb(launches.call, kind != CallKind.OP, view.call_parent)
    owner = np.where((owner >= 0) & (kind[np.maximum(owner, 0)] == CallKind.OP), owner, -1)
    subtree = _SubtreeTimes(view)
    rows = np.unique(owner[owner >= 0])
    own = []
    for row in rows.tolist():
        mine = np.flatnonzero(owner == row)
        own.append(_length(union(launches.start_ns[mine], launches.start_ns[mine] + launches.duration_ns[mine])) / US)
    times, intervals = subtree.of(rows)
    return _LaunchingCalls(rows, own, times, intervals)


def _grouped(
    published: Table,
    keys: list[tuple[str, ...]],
    their_keys: list[tuple[str, ...]],
    columns: dict[str, list[float]],
    rounding: list[float],
) -> list[Row]:
    """Rows of sums by key; ``rounding`` is what TraceLens' floats may add to each call's time.

    Rows of TraceLens that differ only in what we do not store (strides, values of scalars) are added.
    """
    errors: dict[tuple[str, ...], float] = defaultdict(float)
    for key, error in zip(keys, rounding, strict=True):
        errors[key] += error
    ours: dict[tuple[str, ...], dict[str, float]] = {}
    for number, key in enumerate(keys):
        sums = ours.setdefault(key, dict.fromkeys(columns, 0.0))
        for what, values in columns.items():
            sums[what] += values[number]
    theirs: dict[tuple[str, ...], dict[str, float]] = {}
    for row, key in zip(published, their_keys, strict=True):
        sums = theirs.setdefault(key, dict.fromkeys(columns, 0.0))
        for what in columns:
            sums[what] += float(row[what])
    return [
        Row(
            f"{what} of {' '.join(key)}",
            ours[key][what] if key in ours else None,
            theirs[key][what] if key in theirs else None,
            rounding=errors[key] if "kernel time" in what.lower().replace("_", " ") else 0.0,
        )
        for key in sorted(ours.keys() | theirs.keys())
        for what in columns
    ]


def _arguments(view: ProfileView, call: int) -> tuple[str, str, str]:
    profile = view.profile
    op = int(profile.calls.op[call])
    dtypes = json.dumps([dtype.name for dtype in profile.dtypes_of(op)]) if profile.ops.dtypes[op] else ""
    shapes = (inputs_text(profile.shapes_of(op)) or "[]") if profile.ops.shapes[op] else ""
    return profile.strings[profile.ops.name[op]], shapes, dtypes


def _published_arguments(row: dict[str, str]) -> tuple[str, str, str]:
    def as_json(text: str) -> str:
        return json.dumps(ast.literal_eval(text)) if text else ""

    return row["name"], as_json(row["Input Dims"]), as_json(row["Input type"])


def _running(view: ProfileView, rows: Bools) -> Intervals:
    launches = view.profile.launches
    return union(launches.start_ns[rows], launches.start_ns[rows] + launches.duration_ns[rows])


def _length(intervals: Intervals) -> int:
    return int((intervals[1] - intervals[0]).sum())


def _number(text: str | None) -> float | None:
    return None if text in (None, "") else float(text)
