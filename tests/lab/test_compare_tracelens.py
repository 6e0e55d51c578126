"""Our figures by TraceLens' definitions, on a trace whose figures are known, against tables like TraceLens' own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compare_tracelens import clock_spacing, compare
from comparison_rows import DIFFERS, Row

from tb_dlprof_plugin.profile_view import ProfileView

IMAGE = "((8, 3, 32, 32),)"


@pytest.fixture
def trace(new_trace: Callable[..., Any]) -> Any:
    """Two calls of an op with a set, a kernel and a copy inside; a kernel of no op; a kernel launched before."""
    trace = new_trace()
    trace.kernel("early", -50, 20, 3)
    for at in (0, 100):
        trace.op("aten::conv2d", at, 40, dims=[[8, 3, 32, 32]], types=["float"])
        trace.op("aten::copy_", at + 1, 8, dims=[[8, 3, 32, 32]], types=["float"])
        trace.launch("Memcpy HtoD (Pageable -> Device)", at + 2, at + 10, 5)
        trace.op("aten::cudnn_convolution", at + 10, 25, dims=[[8, 3, 32, 32]], types=["float"])
        trace.launch("Memset (Device)", at + 12, at + 20, 2)
        trace.launch("conv_kernel", at + 16, at + 21, 30)
    trace.launch("ncclDevKernel_AllReduce_Sum", 200, 202, 10)
    trace.launch("no_op_kernel", 206, 208, 8)
    return trace


def tables(folder: Path, **texts: str) -> Path:
    """CSV files of these names."""
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def compared(trace: Any, folder: Path) -> dict[str, list[Row]]:
    return dict(compare(trace.write().read_bytes(), folder, ProfileView(trace.profile())))


def test_gpu_timeline_counts_sets_as_computation_and_shows_what_is_exposed(trace: Any, tmp_path: Path) -> None:
    # Sets and convolutions overlap by 1 us; the last 6 us of nccl overlap with no_op_kernel.
    folder = tables(
        tmp_path,
        gpu_timeline="type,time ms,percent\ncomputation_time,0.090,\nexposed_comm_time,0.006,\n"
        "exposed_memcpy_time,0.010,\nbusy_time,0.106,\nidle_time,0.160,\ntotal_time,0.266,\ntotal_comm_time,0.010,\ntotal_memcpy_time,0.010,\n",
    )
    rows = compared(trace, folder)["gpu_timeline"]
    assert [row for row in rows if row.verdict == DIFFERS] == []
    assert len(rows) == 8


def test_kernel_summary_drops_what_no_op_launched(trace: Any, tmp_path: Path) -> None:
    prefix = "Kernel duration (µs)_"
    folder = tables(
        tmp_path,
        kernel_summary=f"Parent cpu_op,Kernel name,Kernel stream,{prefix}sum,{prefix}count,{prefix}min,{prefix}max\n"
        "aten::cudnn_convolution,conv_kernel,7,60,2,30,30\n",
    )
    rows = compared(trace, folder)["kernel_summary"]
    assert [row.verdict for row in rows] == ["equal"] * 4


def test_a_wrong_sum_differs(trace: Any, tmp_path: Path) -> None:
    columns = "name,Count,total_direct_kernel_time_sum,total_subtree_kernel_time_sum\n"
    right = columns + "aten::copy_,2,10,10\naten::cudnn_convolution,2,62,62\n"
    assert {row.verdict for row in compared(trace, tables(tmp_path, ops_summary=right))["ops_summary"]} == {"equal"}
    wrong = right.replace("62,62", "62,61.9")
    (row,) = [r for r in compared(trace, tables(tmp_path, ops_summary=wrong))["ops_summary"] if r.verdict == DIFFERS]
    assert row.quantity == "total_subtree_kernel_time_sum of aten::cudnn_convolution"
    assert (row.ours, row.theirs) == (62.0, 61.9)


def test_tables_by_arguments(trace: Any, tmp_path: Path) -> None:
    arguments = f'"{IMAGE}","(\'float\',)"'
    folder = tables(
        tmp_path,
        ops_unique_args="name,Input Dims,Input type,operation_count,total_direct_kernel_time_sum,"
        f"total_subtree_kernel_time_sum\naten::copy_,{arguments},2,10,10\naten::cudnn_convolution,{arguments},2,62,62\n",
        unified_perf_summary="name,Input Dims,Input type,operation_count,total_duration_us,Kernel Time (µs)_sum\n"
        f"aten::copy_,{arguments},2,16,10\naten::conv2d,{arguments},2,80,72\n",
    )
    found = compared(trace, folder)
    assert set(found) == {"ops_unique_args", "unified_perf_summary"}
    assert {row.verdict for rows in found.values() for row in rows} == {"equal"}


def test_the_spacing_of_floats_is_that_of_the_traces_times() -> None:
    def at(ts: float) -> bytes:
        return f'{{"traceEvents": [{{"ph": "X", "cat": "kernel", "ts": {ts}}}]}}'.encode()

    assert clock_spacing(at(1712195495519689.0)) == 0.25
    assert clock_spacing(at(4402125829498.0)) == 2.0**-10
