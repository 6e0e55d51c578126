"""A report as a table, or several as DLProf's Summary Report is, and its file formats."""

from __future__ import annotations

import csv
import html
import importlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tb_dlprof_plugin.model.visible import visible, visible_json
from tb_dlprof_plugin.reports.parquet import parquet_bytes

Cell = str | int | float | bool | list[str] | None

_SHOWN = 20
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula: OWASP's list of CSV injection, less its line ends and tabs,
which are escapes here. Excel takes the full-width ones in some languages."""
_UNITS = {"(ns)": "ns", "(bytes)": "bytes", "(%)": "percent", "%": "percent", "(GB/s)": "gb_per_s"}
_WORDS = {"#": "number_of", "no": "number_of", "i/o": "io"}


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """One table.

    Attributes:
        columns: the headings.
        rows: one cell per column; None is unknown, times are in nanoseconds, percentages 0 to 100.
        keys: names of columns in JSON, where they do not follow from the heading (`json_key`).
        notes: sentences on missing data, and why.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    keys: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_csv(self) -> str:
        """One line per row below the headings; lists are joined by "; ", unknown is an empty cell."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(csv_cells(row) for row in self.rows)
        return out.getvalue()

    def to_json(self) -> str:
        """A list of objects, one per row; names are the headings in snake_case with their unit, unknown is null."""
        keys = self.json_keys()
        return pretty([dict(zip(keys, row, strict=True)) for row in self.rows])

    def json_keys(self) -> list[str]:
        """The names of the columns in JSON and Parquet."""
        return [self.keys.get(column) or json_key(column) for column in self.columns]

    def to_parquet(self) -> bytes:
        """A Parquet file: 64-bit numbers, unknown is null, units in the metadata of the columns.

        Raises:
            ModuleNotFoundError: pyarrow is not installed; the message says how to get it.
        """
        return parquet_bytes(self.json_keys(), self.rows, self.notes)

    def to_dicts(self) -> list[dict[str, Cell]]:
        """One mapping from heading to cell for each row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with the headings as columns; unknown is missing, and the other integers stay
        integers.

        Raises:
            ModuleNotFoundError: pandas is not installed; the message says how to get it.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            raise ModuleNotFoundError(
                "to_pandas() needs pandas, which is not installed: pip install pandas", name="pandas"
            ) from None
        return pandas.DataFrame(self.rows, columns=list(self.columns)).convert_dtypes()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.rows):,} rows of {visible(', '.join(self.columns))}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows."""
        head = "".join(f"<th>{html.escape(visible(column))}</th>" for column in self.columns)
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in self.rows[:_SHOWN])
        said = [f"The first {_SHOWN} of {len(self.rows):,} rows."] if len(self.rows) > _SHOWN else []
        notes = "".join(f"<p>{html.escape(visible(note))}</p>" for note in (*said, *self.notes))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def json_key(heading: str) -> str:
    """A heading in snake_case with its unit: "Total CPU Time (ns)" is "total_cpu_time_ns", "No. Calls"
    "number_of_calls", "GPU Utilization %" "gpu_utilization_percent"."""
    words = []
    for word in heading.replace("(s)", "s").split():
        unit = _UNITS.get(word)
        plain = word.strip(".,()").lower()
        words.append(unit or _WORDS.get(plain) or re.sub(r"[^a-z0-9]+", "_", plain).strip("_"))
    # "# of Calls" is "number_of_calls".
    return "_".join(word for word in words if word).replace("number_of_of", "number_of")


def pretty(value: Any) -> str:
    """JSON, indented; names are exact, and what could steer a terminal is one of JSON's escapes."""
    return visible_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n"


def csv_cells(row: tuple[Cell, ...]) -> list[str]:
    """The cells as text."""
    return [csv_text(cell) for cell in row]


def csv_text(cell: object) -> str:
    """A cell as text.

    CSV has no escapes of its own: control characters are written as `visible` writes them, but for line ends, which CSV
    puts into quotes. JSON has the exact names.
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.2f}"
    if not isinstance(cell, (str, list)):
        return str(cell)
    text = "; ".join(str(one) for one in cell) if isinstance(cell, list) else cell
    text = "\n".join(map(visible, text.split("\n")))
    # Names come from the traced program (untrusted): a spreadsheet must not read one as a formula.
    return f"'{text}" if text.startswith(_FORMULA) else text


def _html_cell(cell: Cell) -> str:
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return f"<td>{cell:,}</td>" if isinstance(cell, int) else f"<td>{cell:,.2f}</td>"
    text = "" if cell is None else "; ".join(map(str, cell)) if isinstance(cell, list) else str(cell)
    return f'<td style="text-align: left">{html.escape(visible(text))}</td>'


def to_csv(report: Report) -> bytes:
    """`Report.to_csv` as UTF-8."""
    return report.to_csv().encode()


def to_json(report: Report) -> bytes:
    """`Report.to_json` as UTF-8."""
    return report.to_json().encode()


FORMATS: dict[str, Callable[[Report], bytes]] = {"csv": to_csv, "json": to_json, "parquet": Report.to_parquet}


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
