"""The Reports page: any report by its name as columns and rows that a table can sort and filter."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tb_dlprof_plugin.model.formatting import byte_size, duration
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.common import SelectedRange, selected_range
from tb_dlprof_plugin.pages.report_titles import DLPROF, TITLES
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.reports.column_docs import meaning
from tb_dlprof_plugin.reports.headlines import report_headline
from tb_dlprof_plugin.reports.registry import REPORTS, make_report
from tb_dlprof_plugin.reports.table import Cell, Report, TablesReport, csv_cells, json_key
from tb_dlprof_plugin.store.run_ref import RunRef

ReportUnit = Literal["text", "ns", "percent", "bytes", "count"]
PageCell = str | int | float | None

_ENDINGS: tuple[tuple[str, ReportUnit], ...] = (("_ns", "ns"), ("_percent", "percent"), ("_bytes", "bytes"))
_IN_HEADING = {"ns": " (ns)", "bytes": " (bytes)"}
"""Units that the cells show; the % stays, to distinguish a share of the time from the time."""


class ReportEntry(msgspec.Struct, frozen=True):
    """One report of the picker: its title and the question that it answers."""

    name: str
    title: str
    question: str
    of_dlprof: bool


class ReportColumn(msgspec.Struct, frozen=True):
    """A column: ``key`` as in the JSON file, ``label`` is the heading of the CSV file without ns and bytes.

    ``verdict`` columns hold "yes", "no" or None for unknown; in others None is unknown.
    """

    key: str
    label: str
    unit: ReportUnit
    verdict: bool
    meaning: str


class ReportPage(msgspec.Struct, frozen=True):
    """One report; ``headline`` answers ``question``.

    ``rows`` have a cell for each of ``columns``, ``total_rows`` counts all.
    """

    ref: RunRef
    range: SelectedRange
    name: str
    title: str
    question: str
    headline: str
    reports: list[ReportEntry]
    columns: list[ReportColumn]
    rows: list[list[PageCell]]
    total_rows: int
    notes: list[str]


def report_page(
    view: ProfileView, ref: RunRef, selection: Selection, name: Annotated[str, Option("A key of `REPORTS`.")]
) -> ReportPage:
    """The report over the selected iterations.

    Raises:
        KeyError: there is no report of this name; its argument names all.
    """
    if name not in REPORTS:
        raise KeyError(", ".join(REPORTS))
    title, question = TITLES[name]
    made = make_report(name, view, ref, selection)
    report = _in_short(made)
    columns = [_column(name, report, index) for index in range(len(report.columns))]
    texts = [column.unit == "text" for column in columns]
    rows = [[_cell(cell, text) for cell, text in zip(row, texts, strict=True)] for row in report.rows]
    return ReportPage(
        ref=ref,
        range=selected_range(view, selection),
        name=name,
        title=title,
        question=question,
        headline=report_headline(name, made, view, ref, selection),
        reports=[ReportEntry(one, *TITLES[one], one in DLPROF) for one in REPORTS],
        columns=columns,
        rows=rows,
        total_rows=len(rows),
        notes=list(report.notes),
    )


def _in_short(report: Report) -> Report:
    """A report of several tables, whose values have all units in one column, with a column that people can read."""
    if not isinstance(report, TablesReport):
        return report
    columns, rows = report.columns, report.rows
    shown = [(table, row, column, _readable(str(column or row), value), value) for table, row, column, value in rows]
    return Report((*columns[:-1], "In Short", columns[-1]), list(shown), report.keys, report.notes)


def _readable(heading: str, value: Cell) -> str | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value if isinstance(value, str) else _text(value) or None
    unit = _unit(json_key(heading))
    if unit == "ns":
        return duration(value)
    if unit == "bytes":
        return byte_size(value)
    if unit == "percent":
        return f"{value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _column(name: str, report: Report, index: int) -> ReportColumn:
    heading = report.columns[index]
    key = report.keys.get(heading) or json_key(heading)
    values = [row[index] for row in report.rows if row[index] is not None]
    unit = _unit(key) or "count"
    numbers = bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if not numbers and (values or unit == "count"):
        unit = "text"
    label = heading.removesuffix(_IN_HEADING.get(unit, ""))
    verdict = bool(values) and all(isinstance(value, bool) for value in values)
    return ReportColumn(key, label, unit, verdict, meaning(name, key))


def _unit(key: str) -> ReportUnit | None:
    return next((unit for ending, unit in _ENDINGS if key.endswith(ending)), None)


def _text(cell: Cell) -> str:
    """As in the CSV file."""
    return csv_cells((cell,))[0]


def _cell(cell: Cell, text: bool) -> PageCell:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, list):
        return "; ".join(cell) or None
    if text and cell is not None:
        return cell if isinstance(cell, str) else _text(cell)
    return cell
