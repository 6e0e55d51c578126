"""A page as an object: its headline, its tables by name, and all of its data."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.inspect import StructType, type_info

from tb_dlprof_plugin.api.rows import listed_record_of, record_of, rows_table
from tb_dlprof_plugin.model.visible import visible
from tb_dlprof_plugin.pages.common import SelectedRange
from tb_dlprof_plugin.pages.compare import ComparePage
from tb_dlprof_plugin.pages.launches import LaunchesPage
from tb_dlprof_plugin.pages.memory import MemoryCurve, MemoryPage
from tb_dlprof_plugin.pages.overview import Overview
from tb_dlprof_plugin.pages.sentences import TextPart
from tb_dlprof_plugin.pages.sweep import SweepPage
from tb_dlprof_plugin.pages.work_detail import WorkDetail
from tb_dlprof_plugin.reports.table import Report, pretty
from tb_dlprof_plugin.store.run_ref import RunRef

_FIRST: dict[type, str] = {
    Overview: "iterations",
    LaunchesPage: "iterations",
    WorkDetail: "kernels",
    SweepPage: "points",
}
"""The main table of a page, if it is none of the names in `_USUAL`."""
_USUAL = ("rows", "ops", "findings")
_BUILT: dict[tuple[type, str], Callable[[Any], Report]] = {
    (MemoryPage, "curve"): lambda page: _curve(page),
    (SweepPage, "points"): lambda page: _points(page),
}
"""Tables whose rows the page does not hold as records."""


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """A page of the browser, in Python.

    Attributes:
        data: everything on it, as `tb-dlprof COMMAND --format json` prints it; its type documents each figure.
    """

    data: Any

    @property
    def headline(self) -> str:
        """The page's headline; for an op its name."""
        return str(self.data.name if isinstance(self.data, WorkDetail) else self.data.headline)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables, the main one first."""
        return tables_of(type(self.data))

    def table(self, name: str | None = None) -> Report:
        """One of `tables`; by default the main one.

        Columns are named as the fields of `data`, with the unit at the end (``_ns``, ``_bytes``, ``_percent``). A
        record that is not a list is a table of one row, or of none where it was not recorded.

        Raises:
            ValueError: the page has no such table; one sentence that says which it has.
        """
        name = name or self.tables[0]
        if name not in self.tables:
            raise ValueError(f"this page has no table {name!r}; it has {', '.join(self.tables)}")
        if (made := _BUILT.get((type(self.data), name))) is not None:
            return made(self.data)
        held = getattr(self.data, name)
        kind = next(kind for field, kind in _fields(type(self.data)) if field == name)
        if (record := listed_record_of(kind)) is not None:
            return rows_table(record, held, _places(self.data, name), _counted(self.data, name, len(held)))
        record = record_of(kind)
        assert record is not None
        return rows_table(record, [] if held is None else [held])

    def to_pandas(self, name: str | None = None) -> Any:
        """`table` as a ``pandas.DataFrame``; unknown is missing.

        Raises:
            ValueError: the page has no such table.
            ModuleNotFoundError: pandas is not installed; the message says how to get it.
        """
        return self.table(name).to_pandas()

    def to_json(self) -> str:
        """All of `data`."""
        return pretty(self.data)

    def __repr__(self) -> str:
        return f"<{type(self.data).__name__}: {visible(self.headline)} Tables: {', '.join(self.tables)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<p>{html.escape(visible(self.headline))}</p>{self.table()._repr_html_()}"


def tables_of(page: type[msgspec.Struct]) -> tuple[str, ...]:
    """The names of the tables that pages of a type have, the main one first."""
    names = [
        name
        for name, kind in _fields(page)
        if listed_record_of(kind) not in (None, TextPart) or record_of(kind) not in (None, RunRef, SelectedRange)
    ]
    names += [name for kind, name in _BUILT if kind is page and name not in names]
    first = _FIRST.get(page) or next((name for name in _USUAL if name in names), names[0])
    return (first, *(name for name in names if name != first))


def _fields(page: type[msgspec.Struct]) -> list[tuple[str, Any]]:
    info = type_info(page)
    assert isinstance(info, StructType)
    return [(field.name, field.type) for field in info.fields]


def _places(data: Any, table: str) -> dict[str, list[str]]:
    """Names of the entries of lists and mappings in the rows of a table."""
    if isinstance(data, Overview):
        return {"category_ns": [bucket.key for bucket in data.buckets]}
    if isinstance(data, LaunchesPage):
        causes = [str(cause) for cause in data.causes]
        bars = [category.key for category in data.bar_categories]
        return {"idle_by_cause_ns": causes, "cause_ns": causes, "category_ns": bars}
    if isinstance(data, MemoryPage):
        return {"category_bytes": [category.key for category in data.categories]}
    if isinstance(data, ComparePage):
        buckets = [bucket.key for bucket in data.buckets]
        return {"a_buckets": buckets, "b_buckets": buckets}
    return {}


def _counted(data: Any, table: str, shown: int) -> Sequence[str]:
    """Notes that the page has only the first rows, or means of iterations."""
    total = getattr(data, f"total_{'rows' if table in _USUAL else table}", None)
    first = f"The first {shown:,} of {total:,}." if isinstance(total, int) and total > shown else ""
    of_bars = (isinstance(data, Overview | WorkDetail) and table == "iterations") or table == "bars"
    bars = str(getattr(data, "bars_note", "")) if of_bars else ""
    return tuple(filter(None, (first, bars)))


def _curve(page: MemoryPage) -> Report:
    """Memory over time: a row holds from its time to the next one's."""
    curve = page.curve or MemoryCurve([], [], [], [], 0, 0)
    rows: dict[str, list[int]] = {"time_ns": curve.time_ns, "allocated_bytes": curve.allocated}
    rows["reserved_bytes"] = curve.reserved
    rows |= {f"{category.key}_bytes": [] for category in page.categories}
    rows |= {f"{category.key}_bytes": of for category, of in zip(page.categories, curve.categories, strict=False)}
    nothing: list[int | None] = [None] * len(curve.time_ns)
    known = {name: values or nothing for name, values in rows.items()}
    return Report(tuple(known), list(zip(*known.values(), strict=True)), {name: name for name in known})


_SWEEP_UNITS = {
    "ns": "ns",
    "percent": "%",
    "bytes": "bytes",
    "flops": "FLOP",
    "flops_per_second": "FLOP/s",
    "joules": "J",
    "watts": "W",
}


def _points(page: SweepPage) -> Report:
    """One row per point: its line, its place, its run and the value, in the unit that the column names."""
    unit = _SWEEP_UNITS.get(page.unit)
    value = f"{page.measure_label} ({unit})" if unit else page.measure_label
    rows = [
        (curve.label, page.positions[mark.position], mark.ref.run, mark.value)
        for curve in page.curves
        for mark in curve.marks
    ]
    return Report(("Line", page.over_label, "Run", value), list(rows))
