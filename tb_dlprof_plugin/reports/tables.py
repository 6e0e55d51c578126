"""A report of several tables, as DLProf's Summary Report is."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_dlprof_plugin.reports.table import Cell, Report, csv_cells, json_key, pretty


@dataclass(frozen=True, slots=True)
class NamedRows:
    """Rows with a name each; ``columns`` are the headings of their cells, none where a row has one value."""

    columns: tuple[str, ...]
    rows: dict[str, tuple[Cell, ...]]


@dataclass(frozen=True, slots=True, repr=False)
class TablesReport(Report):
    """Several tables; ``columns`` and ``rows`` hold them all with one value a row, for a spreadsheet or pandas."""

    tables: dict[str, NamedRows] = field(default_factory=dict)

    def to_csv(self) -> str:
        """One table below the other: its name, its headings where it has any, its rows, an empty line."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        for name, table in self.tables.items():
            out.write("\n" if out.tell() else "")
            writer.writerow([name])
            if table.columns:
                writer.writerow(["", *table.columns])
            writer.writerows(csv_cells((row, *cells)) for row, cells in table.rows.items())
        return out.getvalue()

    def to_json(self) -> str:
        """An object with one object per table, all names in snake_case with their unit; notes are a list of texts."""
        document: dict[str, object] = {}
        for name, table in self.tables.items():
            keys = [json_key(column) for column in table.columns]
            document[json_key(name)] = {
                json_key(row): dict(zip(keys, cells, strict=True)) if keys else cells[0]
                for row, cells in table.rows.items()
            }
        return pretty(document | {"notes": list(self.notes)})


def report_of(tables: dict[str, NamedRows], notes: Sequence[str]) -> TablesReport:
    """The report of these tables."""
    rows = [
        (name, row, column, cell)
        for name, table in tables.items()
        for row, cells in table.rows.items()
        for column, cell in zip(table.columns or ("",), cells, strict=True)
    ]
    return TablesReport(("Table", "Row Name", "Column Name", "Value"), list(rows), {}, tuple(notes), tables)
