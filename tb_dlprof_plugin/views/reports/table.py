"""A report as a table, and its two file formats."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import msgspec

Cell = str | int | float | bool | list[str] | None

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Report:
    """``rows`` have one cell per column; None is unknown, times are in nanoseconds."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


def to_json(report: Report) -> str:
    """A list of objects, one per row, with the columns' names as keys; unknown is null."""
    rows = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n"


def to_csv(report: Report) -> str:
    """One line per row below the columns' names; lists are joined by "; ", unknown is written out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(report.columns)
    writer.writerows([_text(cell) for cell in row] for row in report.rows)
    return out.getvalue()


def _text(cell: Cell) -> str:
    if cell is None:
        return "unknown"
    if isinstance(cell, float):
        return f"{cell:.2f}"
    if not isinstance(cell, (str, list)):
        return str(cell)
    text = "; ".join(cell) if isinstance(cell, list) else cell
    # Names come from strangers' traces: a spreadsheet must not read one as a formula.
    return f"'{text}" if text.startswith(_FORMULA) else text


FORMATS = {"csv": to_csv, "json": to_json}
