"""Recorded runs against what HTA 0.5.0 and torch-tb-profiler 0.4.3 printed of them (``peer_programs``)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import compare_hta
import compare_torch_tb_profiler
import pytest
from big_trace import read
from comparison_rows import DIFFERS, EQUAL, EXPLAINED, Row

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.profile_view import ProfileView

TRACES = Path(__file__).resolve().parents[1] / "traces"
RECORDED = Path(__file__).resolve().parent / "recorded"


def hta_rows(name: str, theirs: Any = None) -> dict[str, list[Row]]:
    trace = TRACES / f"{name}.pt.trace.json.gz"
    theirs = theirs or json.loads((RECORDED / f"{name}.hta.json").read_text())
    return dict(compare_hta.compare(read(trace), ProfileView(analyze_trace(trace)), theirs))


def ttp_rows(theirs: Any = None) -> dict[str, list[Row]]:
    trace = TRACES / "cuda_training.pt.trace.json.gz"
    theirs = theirs or json.loads((RECORDED / "cuda_training.torch_tb_profiler.json").read_text())
    return dict(compare_torch_tb_profiler.compare(read(trace), ProfileView(analyze_trace(trace)), theirs))


def reasons(tables: dict[str, list[Row]]) -> set[str]:
    return {row.why for rows in tables.values() for row in rows if row.verdict == EXPLAINED}


@pytest.mark.parametrize("name", ["cuda_training", "nccl_rank0", "torch_compile"])
def test_hta_leaves_nothing_unexplained(name: str) -> None:
    tables = hta_rows(name)
    assert [row for rows in tables.values() for row in rows if row.verdict == DIFFERS] == []
    assert sum(row.verdict == EQUAL for rows in tables.values() for row in rows) > 8


def test_hta_counts_launches_by_name_and_whatever_names_a_stream() -> None:
    assert compare_hta.NAMED_CALLS in reasons(hta_rows("nccl_rank0"))
    assert compare_hta.STREAM_NAMED in reasons(hta_rows("torch_compile"))


def test_a_changed_figure_of_hta_differs() -> None:
    theirs = json.loads((RECORDED / "cuda_training.hta.json").read_text())
    for change in (
        lambda t: t["temporal"].update(idle_time=t["temporal"]["idle_time"] + 1),
        lambda t: t["launches"].update(count=t["launches"]["count"] + 1),
        lambda t: t["idle"][0].update(time=t["idle"][0]["time"] + 1),
        lambda t: t["queue"].update({"7": 999}),
    ):
        changed = copy.deepcopy(theirs)
        change(changed)
        rows = [row for table in hta_rows("cuda_training", changed).values() for row in table]
        assert DIFFERS in {row.verdict for row in rows}


def test_torch_tb_profiler_leaves_nothing_unexplained() -> None:
    tables = ttp_rows()
    assert [row for rows in tables.values() for row in rows if row.verdict == DIFFERS] == []
    assert {row.verdict for row in tables["kernels"]} == {EQUAL}
    host = [row for row in tables["operators"] if row.quantity.startswith(("calls", "host_total"))]
    assert len(host) > 100
    assert {row.why for row in host if row.verdict == EXPLAINED} <= {"its times are rounded floats"}


def test_torch_tb_profilers_own_errors_are_named() -> None:
    assert reasons(ttp_rows()) >= {
        compare_torch_tb_profiler.COPIES,
        compare_torch_tb_profiler.REPEATED,
        compare_torch_tb_profiler.UNKNOWN_CALLS,
        compare_torch_tb_profiler.UNLINKED,
    }


def test_a_changed_figure_of_torch_tb_profiler_differs() -> None:
    theirs = json.loads((RECORDED / "cuda_training.torch_tb_profiler.json").read_text())
    for table, column in (("steps", "Total"), ("kernels", "sum"), ("ops", "host_total"), ("ops", "calls")):
        changed = copy.deepcopy(theirs)
        changed[table][0][column] += 1
        rows = [row for part in ttp_rows(changed).values() for row in part]
        assert DIFFERS in {row.verdict for row in rows}, (table, column)
