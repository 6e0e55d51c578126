"""A report as a Parquet file: numbers as 64-bit columns with nulls for unknown, the unit in each column's metadata.

Written by pyarrow, the reference implementation of the format, an optional dependency: the extra ``parquet``.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
from collections.abc import Sequence
from typing import Any

MISSING = "Parquet files need pyarrow, which is not installed: pip install pyarrow, or choose csv or json"
_UNITS = {"_ns": "ns", "_bytes": "bytes", "_percent": "percent", "_gb_per_s": "GB/s", "_ms": "ms"}
_WHOLE_UNITS = ("ns", "bytes")
_MOST = 1 << 63


def has_pyarrow() -> bool:
    """Whether `parquet_bytes` can write."""
    return importlib.util.find_spec("pyarrow") is not None


def parquet_bytes(names: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str]) -> bytes:
    """The file of a table, with the names that its columns have in JSON.

    Integers are int64, numbers with decimals (and integers beyond 64
    bits) double, lists of texts lists, all else strings. A column whose values are all unknown has the type of its
    unit. The schema's metadata has the notes as a JSON list, "notes"; a column's has its "unit".

    Raises:
        ModuleNotFoundError: pyarrow is not installed; the message says how to get it.
    """
    if not has_pyarrow():
        raise ModuleNotFoundError(MISSING, name="pyarrow")
    arrow: Any = importlib.import_module("pyarrow")
    writer: Any = importlib.import_module("pyarrow.parquet")
    fields, columns = [], []
    for place, name in enumerate(names):
        values = [row[place] for row in rows]
        unit = unit_of(name)
        kind = _type(arrow, values, unit)
        fields.append(arrow.field(name, kind, metadata={"unit": unit} if unit else None))
        columns.append(arrow.array(_of_type(arrow, values, kind), type=kind))
    schema = arrow.schema(fields, metadata={"notes": json.dumps(notes)} if notes else None)
    out = io.BytesIO()
    writer.write_table(arrow.table(columns, schema=schema), out)
    return out.getvalue()


def unit_of(name: str) -> str:
    """The unit that the name of a column ends with: "ns", "bytes", "percent" ...; "" for none."""
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")


def _type(arrow: Any, values: list[Any], unit: str) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return arrow.int64() if unit in _WHOLE_UNITS else arrow.float64() if unit else arrow.string()
    kinds = {type(value) for value in known}
    if kinds == {bool}:
        return arrow.bool_()
    if kinds == {int} and all(-_MOST <= value < _MOST for value in known if isinstance(value, int)):
        return arrow.int64()
    if kinds <= {int, float}:
        return arrow.float64()
    return arrow.list_(arrow.string()) if kinds == {list} else arrow.string()


def _of_type(arrow: Any, values: list[Any], kind: Any) -> list[Any]:
    if kind == arrow.float64():
        return [None if value is None else float(value) for value in values if not isinstance(value, list)]
    if kind == arrow.string():
        return [None if value is None else str(value) for value in values]
    if kind == arrow.list_(arrow.string()):
        return [[str(one) for one in value] if isinstance(value, list) else None for value in values]
    return list(values)
