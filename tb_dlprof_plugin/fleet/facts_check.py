"""Holds facts of ranks, which may be anybody's bytes, to what their tables declare, and measures them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, get_args

import numpy as np

from tb_dlprof_plugin.fleet.rank_facts import LARGEST, Collectives, Gradients, KernelTimes, RankFacts, Steps
from tb_dlprof_plugin.model.column import Between, RowsOf
from tb_dlprof_plugin.model.process_groups import MEMBER_BYTES
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.store.allowance import ENTRY_BYTES
from tb_dlprof_plugin.store.layout import fields_of, kept_by_type
from tb_dlprof_plugin.store.validation import columns_of

Table: TypeAlias = Steps | Collectives | KernelTimes | Gradients
TABLES: dict[str, type[Table]] = {
    field.name: field.kind for field in fields_of(RankFacts) if field.is_message and field.kind in get_args(Table)
}
_MOST_DIMENSIONS = 64
"""Of a mesh; a large job has five."""
_RANK_BYTES = 10_000
"""Of the facts without what is in their tables and lists."""


def numbers_in(table: Table) -> dict[str, Ints]:
    """The columns by name."""
    return {name: getattr(table, name) for name in columns_of(type(table))}


def fits(table: Table) -> bool:
    """Whether all columns have one length."""
    return len({len(column) for column in numbers_in(table).values()}) == 1


def check(facts: Sequence[RankFacts]) -> None:
    """Checks several ranks at once.

    Raises:
        ValueError: a row is not there, or a number is out of range.
    """
    for one in facts:
        if not all(fits(getattr(one, name)) for name in TABLES):
            raise ValueError("columns differ in length")
        if len(one.mesh) > _MOST_DIMENSIONS:
            raise ValueError("its mesh has more dimensions than any")
        if not 0 < one.launch_share <= 1:
            raise ValueError("the share of launching is none")
        if not abs(one.base_ns) < LARGEST:
            raise ValueError("its time is out of range")
    for name, kind in TABLES.items():
        tables: list[Table] = [getattr(one, name) for one in facts]
        if not any(map(len, tables)):
            continue
        for column, meaning in _bounded(kind):
            columns = [getattr(table, column) for table in tables]
            if isinstance(meaning, RowsOf):
                rows = [len(getattr(one, meaning.table)) for one in facts]
                _check_range(f"{name}.{column}", columns, meaning.lowest, np.repeat(rows, list(map(len, columns))) - 1)
            else:
                _check_range(f"{name}.{column}", columns, meaning.low, meaning.high)
        _check_sums(tables)
    begins, ends = (np.concatenate([getattr(one.steps, name) for one in facts]) for name in ("start_ns", "end_ns"))
    if (ends < begins).any():
        raise ValueError("a step ends before it begins")


@kept_by_type
def _bounded(kind: type) -> list[tuple[str, RowsOf | Between]]:
    """The columns whose numbers have other bounds than those of sums."""
    return [
        (name, meaning)
        for name, meaning in columns_of(kind).items()
        if isinstance(meaning, RowsOf) or (isinstance(meaning, Between) and meaning.low > -LARGEST)
    ]


@kept_by_type
def _summed(kind: type) -> list[str]:
    return [name for name, meaning in columns_of(kind).items() if isinstance(meaning, Between) and meaning.total]


def _check_range(path: str, columns: Sequence[Ints], low: int, high: Ints | int) -> None:
    column = np.concatenate(columns)
    if column.min(initial=low) < low or (column > high).any():
        raise ValueError(f"{path} has a number that is not in its range")


def _check_sums(tables: Sequence[Table]) -> None:
    """No sum of a rank's column is too large; a bound of all tables together mostly shows it."""
    columns = [column for table in tables for column in _quantities(table)]
    if not columns:
        return
    all_numbers = np.concatenate(columns)
    most = max(len(column) for column in columns)
    if most * max(abs(int(all_numbers.max(initial=0))), abs(int(all_numbers.min(initial=0)))) <= LARGEST:
        return
    for column in columns:
        if float(np.abs(column.astype(np.float64)).sum()) > LARGEST:
            raise ValueError("a number is out of range")


def _quantities(table: Table) -> list[Ints]:
    """The columns that are summed up, without those that take no room."""
    columns = [getattr(table, name) for name in _summed(type(table))]
    return [column for column in columns if len(column) and column.strides[0]]


def sizes_of_parts(facts: RankFacts) -> dict[int, int]:
    """The bytes of each column, of the members of each group and of the rest, by `id` of the object: parts that several
    ranks share count once."""
    texts = (*facts.strings, *facts.notes, facts.host, facts.gpu)
    entries = len(texts) + len(facts.groups) + len(facts.mesh)
    sizes = {id(facts): _RANK_BYTES + ENTRY_BYTES * entries + sum(map(len, texts))}
    for group in facts.groups:
        sizes[id(group.members)] = MEMBER_BYTES * len(group.members)
    for name in TABLES:
        for column in numbers_in(getattr(facts, name)).values():
            # One number for all rows takes no room.
            sizes[id(column)] = column.nbytes if any(column.strides) else 0
    return sizes
