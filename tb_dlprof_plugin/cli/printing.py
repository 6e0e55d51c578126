"""Tables, numbers, CSV and JSON on the terminal."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from rich.table import Table
from rich.text import Text

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import OutputFormat, Printing
from tb_dlprof_plugin.cli.terminal import as_markdown, is_markdown, say, write_bytes, write_csv, write_json
from tb_dlprof_plugin.cli.visible_console import PIPED_WIDTH, console
from tb_dlprof_plugin.model.formatting import duration
from tb_dlprof_plugin.model.visible import markdown_text, visible

if TYPE_CHECKING:
    from tb_dlprof_plugin.reports.table import Report

UNKNOWN = "unknown"
_WHOLE = 1e6


def print_page(
    page: object,
    printing: Printing,
    text: Callable[[], None] = lambda: None,
    main: Callable[[], Report] | None = None,
) -> None:
    """Print a page in one of the formats.

    Args:
        page: its data, printed as JSON.
        printing: the format, and the table for CSV.
        text: prints the page for reading; nothing is printed without it.
        main: builds the main table, if it is not the page's first.
    """
    output, name = printing.output, printing.table
    check_printing(printing)
    if output is OutputFormat.json:
        print_json(page)
    elif output is OutputFormat.text:
        text()
    elif output is OutputFormat.markdown:
        with as_markdown():
            text()
    else:
        table = main() if main is not None and name is None else _table_of(page, name)
        if output is OutputFormat.csv:
            print_csv(table)
        else:
            # It holds its notes.
            write_bytes(table.to_parquet())


def check_printing(printing: Printing) -> None:
    """Ends the command with one sentence where it could not print so; before the work that this would be for."""
    if printing.table is not None and printing.output not in (OutputFormat.csv, OutputFormat.parquet):
        refuse("--table chooses what --format csv or parquet prints; add --format csv, or leave out --table")
    check_output(printing.output)


def check_output(output: OutputFormat | None) -> None:
    """Ends the command with one sentence where it could not print Parquet; before the work that this would be for."""
    if output is not OutputFormat.parquet:
        return
    from tb_dlprof_plugin.reports.parquet import MISSING, has_pyarrow

    if not has_pyarrow():
        refuse(MISSING)
    if sys.stdout.isatty():
        refuse("a Parquet file is no text for a terminal; send it to a file: add > NAME.parquet")


def _table_of(page: object, name: str | None) -> Report:
    """A table of a page or job, by default the first; ends the command if there is none of this name."""
    # They import all pages, which only CSV needs.
    from tb_dlprof_plugin.api.distributed import job_table
    from tb_dlprof_plugin.api.page_result import Page

    try:
        return Page(page).table(name) if isinstance(page, msgspec.Struct) else job_table(page, name)  # type: ignore[arg-type]
    except ValueError as error:
        refuse(error)


def print_json(value: object) -> None:
    """The data, indented."""
    from tb_dlprof_plugin.reports.table import pretty

    write_json(pretty(value))


def print_csv(table: Report) -> None:
    """Write the table to standard output and its notes to standard error.

    Unknown is an empty cell, and no spreadsheet reads a name as a formula.
    """
    from tb_dlprof_plugin.reports.table import csv_text

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    # Numbers keep their digits here; a report rounds them.
    writer.writerows(
        [_digits(cell) if isinstance(cell, float) else csv_text(cell) for cell in row] for row in table.rows
    )
    write_csv(out.getvalue())
    for note in table.notes:
        say(f"Note: {note}", err=True)


def _digits(value: float) -> float | int:
    """From a million on without decimals: those are the noise of the division that made a rate."""
    return round(value) if abs(value) >= _WHOLE and math.isfinite(value) else value


def print_table(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], piped_width: int = PIPED_WIDTH
) -> None:
    """Columns are (heading, "left" or "right"); cells are plain text. ``piped_width`` is in characters."""
    if is_markdown():
        sides = [":--" if side == "left" else "--:" for _, side in columns]
        head, *body = ([*map(markdown_text, row)] for row in ([heading for heading, _ in columns], *rows))
        lines = "".join(f"| {' | '.join(line)} |\n" for line in (head, sides, *body))
        write_csv(f"\n{lines}\n")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, side in columns:
        table.add_column(visible(heading), justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        # Before the widths are measured: an escape is longer than the character.
        table.add_row(*(Text(visible(cell)) for cell in row))
    console(piped_width).print(table)


def time(value_ns: float | None) -> str:
    """A duration, or "unknown"."""
    return UNKNOWN if value_ns is None else duration(value_ns)


def percent(value: float | None) -> str:
    """A percentage, or "unknown"."""
    return UNKNOWN if value is None else f"{value:.1f} %"
