"""Tables, numbers, CSV and JSON on the terminal."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tb_dlprof_plugin.views.reports.table import csv_text
from tb_dlprof_plugin.views.text import duration

UNKNOWN = "unknown"
_PIPED_WIDTH = 240


def console() -> Console:
    """The terminal; names from traces are never read as markup."""
    # Piped output has no width to fit into: cells that wrap cannot be searched.
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)


def print_json(page: msgspec.Struct) -> None:
    """The page's data, indented."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(page), indent=2).decode() + "\n")


def print_csv(headings: Iterable[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows to standard output; unknown is an empty cell, and no spreadsheet reads a name as a formula."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(list(headings))
    # Numbers keep all their digits here; a report rounds them.
    writer.writerows([cell if isinstance(cell, float) else csv_text(cell) for cell in row] for row in rows)


def print_table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> None:
    """Columns are (heading, "left" or "right"); cells are plain text."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, side in columns:
        table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def time(value_ns: float | None) -> str:
    """A duration, or "unknown"."""
    return UNKNOWN if value_ns is None else duration(value_ns)


def percent(value: float | None) -> str:
    """A percentage, or "unknown"."""
    return UNKNOWN if value is None else f"{value:.1f} %"
