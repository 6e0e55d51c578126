"""Prints the rows of a page as a table, by the columns that their struct declares for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tb_dlprof_plugin.cli.printing import print_table
from tb_dlprof_plugin.cli.sums import AS_THEY_ARE, Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_rate, byte_size, duration, energy, flop_count, ratio
from tb_dlprof_plugin.pages.columns import TableColumn, Unit, columns_of

Row = TypeVar("Row", bound=msgspec.Struct)
_ABSENT = "–"
_LARGE = 1000
_TEXTS: dict[Unit, Callable[[float], str]] = {
    "ns": duration,
    "percent": lambda value: f"{value:.1f} %",
    "bytes": byte_size,
    "ratio": lambda value: f"{ratio(value)}×",
    "per_second": lambda value: f"{ratio(value)} /s",
    "flops": flop_count,
    "flops_per_second": lambda value: f"{flop_count(value)}/s",
    "bytes_per_second": byte_rate,
    "count_per_step": lambda value: f"{value:,.1f}",
    "joules": energy,
    "watts": lambda value: f"{value:.0f} W",
}


def print_rows(
    kind: type[Row],
    rows: Sequence[Row],
    *,
    sums: Sums = AS_THEY_ARE,
    limit: int | None = None,
    total: int | None = None,
    has_gpu: bool = True,
    without: Collection[str] = (),
    headings: Mapping[str, str] | None = None,
    cells: Mapping[str, Callable[[Row], str]] | None = None,
) -> None:
    """Print the first ``limit`` rows, and how many of ``total`` (by default of ``rows``) are left.

    Args:
        kind: their struct.
        rows: the rows.
        sums: how sums over the iterations are printed.
        limit: the most rows; None for all.
        total: the rows there are.
        has_gpu: without a GPU the columns of the CPU stand for those of the GPU.
        without: fields whose columns are left out.
        headings: other headings than the declared ones, by field.
        cells: other texts than those of the values, by field.
    """
    columns = [column for column in columns_of(kind) if _is_printed(column, has_gpu) and column.field not in without]
    texts = {column.field: _text_of(column, sums) for column in columns} | dict(cells or {})
    named = {column.field: column.declared.heading for column in columns} | dict(headings or {})
    print_table(
        [(named[column.field], "right" if column.unit else "left") for column in columns],
        [[texts[column.field](row) for column in columns] for row in rows[:limit]],
    )
    total = len(rows) if total is None else total
    if limit is not None and total > limit:
        say("", f"{total - limit} more; --limit {total} prints all.")


def _is_printed(column: TableColumn, has_gpu: bool) -> bool:
    declared = column.declared
    return declared.terminal if has_gpu else not declared.gpu and (declared.terminal or "cpu" in declared.tasks.split())


def _text_of(column: TableColumn, sums: Sums) -> Callable[[Any], str]:
    declared, unit = column.declared, column.unit

    def cell(row: Any) -> str:
        value = getattr(row, column.field)
        if declared.absent and (unit or not value) and str(getattr(row, declared.absent[0])) in declared.absent[1:]:
            return _ABSENT
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, list):
            value = ", ".join(value)
        if value is None or value == "":
            return declared.missing
        if unit is None:
            return str(value)
        if unit == "count":
            return sums.count(value) if declared.sums else count(value)
        text = _TEXTS[unit](column.scale * (sums.value(value) if declared.sums else value))
        return (f"+{text}" if value > 0 else text.replace("-", "−")) if declared.signed else text

    return cell


def count(value: float) -> str:
    """A count, or a mean with one decimal where it is small."""
    return f"{value:,.1f}" if abs(value) < _LARGE and value != round(value) else f"{value:,.0f}"
