"""Reports as Parquet: the types and units of columns, unknown as null, and a sentence where pyarrow is missing."""

from __future__ import annotations

import io
import json
import sys

import pytest

from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.parquet import unit_of
from tb_dlprof_plugin.reports.registry import REPORTS, make_report
from tb_dlprof_plugin.reports.table import Report
from tb_dlprof_plugin.store.run_ref import RunRef

parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS = ("Name", "GPU Time (ns)", "Utilization %", "Size (bytes)", "Calls", "Kernels", "On", "Idle Time (ns)", "Rate")
ROWS = [
    ("=a", 5, 50, None, 2, ["k1", "k2"], True, None, 1.5),
    (None, None, 0.25, 1 << 40, None, None, None, None, 1 << 70),
]


def _read(report: Report):
    return parquet.read_table(io.BytesIO(report.to_parquet()))


def test_numbers_are_64_bit_unknown_is_null_and_texts_stay_as_they_are() -> None:
    table = _read(Report(COLUMNS, ROWS))
    assert {field.name: str(field.type) for field in table.schema} == {
        "name": "string",
        "gpu_time_ns": "int64",
        "utilization_percent": "double",
        "size_bytes": "int64",
        "calls": "int64",
        "kernels": "list<element: string>",
        "on": "bool",
        "idle_time_ns": "int64",
        "rate": "double",
    }
    assert [list(row.values()) for row in table.to_pylist()] == [
        ["=a", 5, 50.0, None, 2, ["k1", "k2"], True, None, 1.5],
        [None, None, 0.25, 1 << 40, None, None, None, None, float(1 << 70)],
    ]


def test_a_column_says_its_unit_and_the_file_its_notes() -> None:
    schema = _read(Report(COLUMNS, ROWS, notes=("No shapes.", "é"))).schema
    units = {field.name: (field.metadata or {}).get(b"unit", b"").decode() for field in schema}
    assert units["gpu_time_ns"] == units["idle_time_ns"] == "ns"
    assert (units["utilization_percent"], units["size_bytes"], units["calls"]) == ("percent", "bytes", "")
    assert json.loads(schema.metadata[b"notes"]) == ["No shapes.", "é"]
    assert unit_of("throughput_gb_per_s") == "GB/s"


def test_values_that_do_not_agree_on_a_type_are_texts() -> None:
    table = _read(Report(("Property", "Value"), [("a", 1), ("b", "x"), ("c", None)]))
    assert table.column("value").to_pylist() == ["1", "x", None]


def test_a_table_without_rows_has_its_columns() -> None:
    table = _read(Report(("Name", "Time (ns)"), []))
    assert (table.num_rows, table.column_names) == (0, ["name", "time_ns"])


def test_the_summary_has_its_rows_though_its_json_is_one_object(training) -> None:
    view = ProfileView(training("fp32").profile())
    report = make_report("summary", view, RunRef("run", "", 0, 0), view.selection())
    assert _read(report).num_rows == len(report.rows) > 0


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "summary"])
def test_a_report_has_in_parquet_what_it_has_in_json(training, name: str) -> None:
    view = ProfileView(training("fp32").profile())
    report = make_report(name, view, RunRef("run", "", 0, 0), view.selection())
    wanted = json.loads(report.to_json())
    table = _read(report)
    types = {field.name: str(field.type) for field in table.schema}
    for shown, row in zip(table.to_pylist(), wanted, strict=True):
        for key, value in row.items():
            mixed = types[key] == "string" and value is not None
            assert shown[key] == (str(value) if mixed else value), key


def test_without_pyarrow_a_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pyarrow, or choose csv or json"):
        Report(("a",), []).to_parquet()
