"""Holds a stored profile to what its tables declare, before anything is computed from it.

A profile comes from a file that anybody may have written. What is checked here is what all that read profiles rely on:
columns of one length, rows that are there, times that rise, calls inside their callers, totals below 2**62.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sized
from typing import Any, get_type_hints

import numpy as np

from tb_dlprof_plugin.model.column import LARGEST, NUMBER, Between, Flag, Meaning, RowsOf
from tb_dlprof_plugin.model.process_groups import MEMBER_BYTES
from tb_dlprof_plugin.model.profile import TIME_CATEGORIES, Calls, Ints, Iterations, Profile
from tb_dlprof_plugin.model.tree import parents
from tb_dlprof_plugin.store import dlprof_pb2 as pb
from tb_dlprof_plugin.store.allowance import ENTRY_BYTES, Allowance
from tb_dlprof_plugin.store.wire import is_column

_WIDTHS = {f"{table}.{sizes}": 3 for table in ("launch_configs", "kernel_counters") for sizes in ("grid", "block")}
"""Numbers a row, where it is not one."""
_WITHOUT_ROWS = {
    "iterations.gpu_ids", "iterations.unrecorded_categories", "calls.thread", "calls.thread_calls",
    "light_window.boundary_ns_delta",
}  # fmt: skip
"""Columns with a length of their own: lists next to a table, and calls by thread, which add up to the rows."""
_INPUTS_BY_SCHEMA = (("ops.shapes", "ops.dtypes"), ("ops.input_shapes", "ops.input_dtypes"))
"""Of schema 1, and from schema 2 on."""
_LISTS = {"input_shapes", "input_dtypes"}
"""Messages whose columns are lists of their own; `tb_dlprof_plugin.store.input_codec` holds them together."""
_MOST_GPUS = 1024
_BYTES_OF_ROW = 2
"""Fewer than any recorded profile has for a row of its tables: the least is 3.8."""


def tables_of(kind: type, path: str = "") -> Iterator[tuple[str, type]]:
    """The tables of a profile by their path, such as "light_window.calls", with their types."""
    for name, of in get_type_hints(kind).items():
        if dataclasses.is_dataclass(of) and isinstance(of, type) and columns_of(of):
            yield path + name, of
            yield from tables_of(of, f"{path}{name}.")


@functools.cache
def columns_of(table: type) -> dict[str, Meaning]:
    """What each column of a table declares.

    Raises:
        TypeError: a column declares nothing.
    """
    found: dict[str, Meaning] = {}
    for name, hint in get_type_hints(table, include_extras=True).items():
        declared = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Meaning)]
        if declared:
            found[name] = declared[0]
        elif "numpy" in str(hint):
            raise TypeError(f"{table.__name__}.{name} does not declare what its numbers are")
    return found


_TABLES = dict(tables_of(Profile))
TABLES = frozenset(_TABLES) | _LISTS
"""Paths of the messages whose repeated numbers are columns."""


def check_lengths(columns: Mapping[str, Sized], schema_version: int, allowance: Allowance) -> None:
    """Compares the lengths of the columns of each table before they are decoded.

    Args:
        columns: by their paths.
        schema_version: of the profile.
        allowance: of the blob: numbers of the inputs of ops become Python objects.

    Raises:
        ValueError: they differ, or there are more inputs than the blob may have.
    """
    inputs = sum(len(column) for path, column in columns.items() if path.split(".")[0] in _LISTS)
    allowance.take(ENTRY_BYTES * inputs)
    gpus = len(columns.get("iterations.gpu_ids", ()))
    if gpus > _MOST_GPUS:
        raise ValueError(f"it has {gpus} GPUs")
    widths = _WIDTHS | {"iterations.category_ns": max(1, gpus) * len(TIME_CATEGORIES)}
    all_rows = 0
    other_schema = _INPUTS_BY_SCHEMA[0 if schema_version > 1 else 1]
    for path, names in _fields().items():
        rows = None
        for name in names:
            if name in _WITHOUT_ROWS or name in other_schema:
                continue
            found, rest = divmod(len(columns.get(name, ())), widths.get(name, 1))
            if rest or (rows is not None and found != rows):
                raise ValueError(f"the columns of {_TABLES[path].__name__} differ in length")
            rows = found
        all_rows += rows or 0
    allowance.check_rows(all_rows, _BYTES_OF_ROW)

    def length(name: str) -> int:
        return len(columns.get(name, ()))

    if length("calls.thread") != length("calls.thread_calls"):
        raise ValueError("the columns of Calls differ in length")
    steps, boundaries = length("light_window.iteration_plus_one"), length("light_window.boundary_ns_delta")
    if (steps or boundaries) and boundaries != steps + 1:
        raise ValueError("the light window's steps and their boundaries differ in number")


@functools.cache
def _fields() -> dict[str, list[str]]:
    """The paths of the repeated numbers of each table's message."""
    result = {}
    for path in _TABLES:
        descriptor = pb.Profile.DESCRIPTOR
        for name in path.split("."):
            descriptor = descriptor.fields_by_name[name].message_type
        result[path] = [f"{path}.{kind.name}" for kind in descriptor.fields if is_column(kind)]
    return result


def running(deltas: Ints) -> Ints:
    """The numbers that have these differences.

    Raises:
        ValueError: they leave the range of `LARGEST`.
    """
    if np.abs(deltas.astype(np.float64)).sum() > LARGEST:
        raise ValueError("differences add up to more than a number holds")
    return np.cumsum(deltas)


def check_profile(profile: Profile) -> None:
    """Holds every column of a profile to its declaration, and tables to their order.

    Raises:
        ValueError: a number is out of its range, or rows are out of order.
    """
    for path, kind in _TABLES.items():
        table = _at(profile, path)
        for name, meaning in columns_of(kind).items():
            _check_column(profile, f"{path}.{name}", getattr(table, name), meaning)
    if profile.strings[:1] != [""] or not len(profile.iterations):
        raise ValueError("it has no iterations, or no names")
    if not -LARGEST <= profile.base_time_unix_ns <= LARGEST:
        raise ValueError("its time is out of range")
    _check_iterations(profile.iterations)
    _check_calls(profile.calls)
    for name in ("launches", "light_window.calls", "light_window.launches"):
        _check_rising(f"{name}.start_ns", _at(profile, name).start_ns)
    _check_rising("memory.time_ns", profile.memory.time_ns)
    _check_rising("call_places.call", profile.call_places.call)
    _check_rising("light_window.boundary_ns", profile.light_window.boundary_ns)


def size_of(profile: Profile) -> int:
    """About how many bytes of memory the columns, names and process groups of a profile take."""
    columns = (getattr(_at(profile, path), name) for path, kind in _TABLES.items() for name in columns_of(kind))
    members = sum(len(group.members) for group in profile.process_groups)
    entries = len(profile.strings) + len(profile.notes) + len(profile.input_shapes) + len(profile.process_groups)
    texts = sum(map(len, profile.strings))
    numbers = sum(int(column.nbytes) for column in columns)
    return numbers + ENTRY_BYTES * entries + MEMBER_BYTES * members + texts


def _at(profile: Profile, path: str) -> Any:
    return functools.reduce(getattr, path.split("."), profile)


def _check_column(profile: Profile, path: str, values: Ints, meaning: Meaning) -> None:
    if isinstance(meaning, Flag) or not values.size:
        return
    if isinstance(meaning, RowsOf):
        low, high = meaning.lowest, len(_at(profile, meaning.table)) - 1
    else:
        low, high = meaning.low, meaning.high
    lowest, highest = int(values.min()), int(values.max())
    if lowest < low or highest > high:
        wrong = lowest if lowest < low else highest
        what = f"a row of {meaning.table}" if isinstance(meaning, RowsOf) else "in its range"
        raise ValueError(f"{path} has {wrong}, which is not {what}")
    if isinstance(meaning, Between) and meaning.total and float(values.sum(dtype=np.float64)) > meaning.high:
        raise ValueError(f"{path} adds up to more than a number holds")


def _check_rising(path: str, values: Ints) -> None:
    if (values[1:] < values[:-1]).any():
        raise ValueError(f"{path} does not rise")


def _check_iterations(iterations: Iterations) -> None:
    for begin, end in (("start_ns", "stop_ns"), ("host_start_ns", "host_stop_ns")):
        if (getattr(iterations, end) < getattr(iterations, begin)).any():
            raise ValueError("an iteration ends before it begins")
    _check_rising("iterations.host_start_ns", iterations.host_start_ns)
    gpus = iterations.gpu_ids
    if len(set(gpus)) != len(gpus) or any(not 0 <= gpu <= NUMBER.high for gpu in gpus):
        raise ValueError("its GPUs are listed twice or out of range")


def _check_calls(calls: Calls) -> None:
    """In order of thread and start, each inside its caller."""
    same_thread = calls.thread[1:] == calls.thread[:-1]
    _check_rising("calls.thread", calls.thread)
    if (same_thread & (calls.start_ns[1:] < calls.start_ns[:-1])).any():
        raise ValueError("calls.start_ns does not rise")
    allowed = np.where(same_thread, calls.depth[:-1] + 1, 0)
    if len(calls) and (calls.depth[0] > 0 or (calls.depth[1:] > allowed).any()):
        raise ValueError("a call has no caller at the depth above its own")
    parent = parents(calls.depth)
    rows = np.flatnonzero(parent >= 0)
    stop_ns = calls.start_ns + calls.duration_ns
    if (stop_ns[rows] > stop_ns[parent[rows]]).any():
        raise ValueError("a call ends after its caller")
