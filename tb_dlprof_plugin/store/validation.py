"""Holds a stored profile to what its tables declare, before anything is computed from it.

A profile comes from a file that anybody may have written. What is checked here is what all that read profiles rely on:
columns of one length, rows that are there, times that rise, calls inside their callers, totals below 2**62.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.column import LARGEST, NUMBER, Between, Flag, Meaning, RowsOf
from tb_dlprof_plugin.model.process_groups import MEMBER_BYTES
from tb_dlprof_plugin.model.profile import Calls, Ints, Iterations, Profile
from tb_dlprof_plugin.model.tree import parents
from tb_dlprof_plugin.store.allowance import ENTRY_BYTES, Allowance
from tb_dlprof_plugin.store.layout import fields_of, kept_by_type
from tb_dlprof_plugin.store.message import Values, entries_of

_MOST_GPUS = 1024
_BYTES_OF_ROW = 2
"""Fewer than any recorded profile has for a row of its tables: the least is 3.8."""


def tables_of(kind: type, path: str = "") -> Iterator[tuple[str, type]]:
    """The tables of a profile by their path, such as "light_window.calls", with their types."""
    for field in fields_of(kind):
        if field.is_message and field.many is None and field.form is None and columns_of(field.kind):
            yield path + field.name, field.kind
            yield from tables_of(field.kind, f"{path}{field.name}.")


@kept_by_type
def columns_of(table: type) -> dict[str, Meaning]:
    """What each column of a table declares.

    Raises:
        TypeError: a column declares nothing.
    """
    columns = {field.name: field.meaning for field in fields_of(table) if field.is_column}
    for name, meaning in columns.items():
        if meaning is None:
            raise TypeError(f"{table.__name__}.{name} does not declare what its numbers are")
    return {name: meaning for name, meaning in columns.items() if meaning is not None}


_TABLES = dict(tables_of(Profile))


def check_lengths(kind: type, values: Values, allowance: Allowance) -> None:
    """Compares the lengths of the columns of each table before they are decoded.

    Args:
        kind: of the message, a profile of any schema.
        values: of the message.
        allowance: of the blob: numbers of the inputs of ops become Python objects.

    Raises:
        ValueError: they differ, or there are more rows than the blob may have.
    """
    all_rows = 0
    for field in fields_of(kind):
        inner = values.get(field.number)
        if not isinstance(inner, dict):
            continue
        if field.form is not None:  # which holds its columns together itself
            allowance.take(ENTRY_BYTES * sum(len(inner.get(one.number, ())) for one in fields_of(field.kind)))
        else:
            all_rows += _rows_in(field.kind, inner)
    allowance.check_rows(all_rows, _BYTES_OF_ROW)


def _rows_in(table: type, values: Values) -> int:
    """The rows of a table and of those inside of it.

    Raises:
        ValueError: its columns differ in length.
    """
    rows, inner_rows = set(), 0
    for field in fields_of(table):
        value = values.get(field.number, ())
        if isinstance(value, dict):
            inner_rows += _rows_in(field.kind, value)
        elif field.in_old_files is not None and field.number not in values:
            continue
        elif field.is_column and field.packing.runs:
            if len(value) != len(values.get(field.number + 1, ())):
                rows.add(-1)
        elif field.is_column and field.per_row is not None:
            each = entries_of(table, field.per_row.each, values) if field.per_row.each else 1
            if each > _MOST_GPUS:
                raise ValueError(f"it has {each} GPUs")
            found, rest = divmod(len(value), each * field.per_row.count)
            rows.add(-1 if rest else found)
        elif field.is_column:
            rows.add(max(0, len(value) - field.bounds_rows))
    if len(rows) > 1 or -1 in rows:
        raise ValueError(f"the columns of {table.__name__} differ in length")
    return inner_rows + sum(rows)


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
