"""Reads what ``ncu --csv`` prints: a row a launch (``--page raw``), or a row a metric (``--page details``, or without).

What the program and ncu printed around it is passed over.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.ncu.measured_launch import MeasuredLaunch, in_base_unit, measured_launch

_NAME, _METRIC, _UNIT, _VALUE = "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"
_FIRST = '"ID",'
_SIZES = re.compile(r"\(?\s*(\d{1,10}),\s*(\d{1,10}),\s*(\d{1,10})\s*\)?")
_NOT_COUNTED = (-1, -1, -1)
_GZIP = b"\x1f\x8b"
_HEAD_LINES = 10_000
_LONGEST_LINE = 1_000_000
"""A raw page with all metrics has 30 kB a row."""


def is_export(path: Path) -> bool:
    """Whether a file holds the header of such an export.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as packed:
        if packed.read(2) == _GZIP:
            return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return any(_is_header(line) for line in itertools.islice(_lines(file), _HEAD_LINES))


def read_export(path: Path) -> list[MeasuredLaunch]:
    """The launches in their order.

    Raises:
        TraceError: it holds none.
        OSError: it cannot be read.
    """
    launches: dict[str, tuple[dict[str, str], dict[str, float]]] = {}
    part = 0
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        header: list[str] = []
        units: dict[str, str] = {}
        for number, row in enumerate(_rows(file)):
            if _NAME in row and row[0] == "ID":
                # Output of several calls of ncu in one file: launches are counted from 0 again in each.
                header, units, part = row, {}, number
                continue
            if len(row) != len(header):
                continue
            fields = dict(zip(header, row, strict=True))
            if not fields["ID"]:
                units = fields
                continue
            key = f"{part} {fields.get('Process ID', '')} {fields['ID']}"
            launches.setdefault(key, (fields, {}))[1].update(_metrics(fields, units))
    if not launches:
        raise TraceError(f"{path} holds no launch that Nsight Compute measured; export the report again: {COMMAND}.")
    return [
        measured_launch(launch[_NAME], _sizes(launch.get("Grid Size")), _sizes(launch.get("Block Size")), metrics)
        for launch, metrics in launches.values()
    ]


COMMAND = "ncu --import REPORT.ncu-rep --csv --page raw > counters.csv"
"""Exports a report."""


def _is_header(line: str) -> bool:
    return line.startswith(_FIRST) and f'"{_NAME}"' in line


def _lines(file: Iterable[str]) -> Iterator[str]:
    for line in file:
        yield line[:_LONGEST_LINE].removeprefix("\ufeff")


def _rows(file: Iterable[str]) -> Iterator[list[str]]:
    csv.field_size_limit(_LONGEST_LINE)
    seen = False
    for line in _lines(file):
        seen = seen or _is_header(line)
        if seen and line.startswith('"'):
            try:
                yield from csv.reader([line])
            except csv.Error:
                continue


def _metrics(fields: dict[str, str], units: dict[str, str]) -> dict[str, float]:
    if _METRIC in fields:
        pairs = [(fields[_METRIC], fields.get(_VALUE, ""), fields.get(_UNIT, ""))]
    else:
        pairs = [(name, value, units.get(name, "")) for name, value in fields.items() if "__" in name]
    metrics = {}
    for name, value, unit in pairs:
        number = _number(value)
        if number is not None:
            metrics[_DETAILS.get(name, name)] = in_base_unit(number, unit)
    return metrics


_DETAILS = {
    "Duration": "gpu__time_duration.sum",
    "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
"""Metrics that the page of details gives names of their own."""


def _number(text: str) -> float | None:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _sizes(text: str | None) -> tuple[int, int, int]:
    match = _SIZES.fullmatch((text or "").strip())
    sizes = tuple(min(int(one), 2**31 - 1) for one in match.groups()) if match else _NOT_COUNTED
    return (sizes[0], sizes[1], sizes[2])
