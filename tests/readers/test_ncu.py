"""Counters of Nsight Compute: what is read of its text, and to which launches they belong."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_dlprof_plugin.analysis.measured_kernels import counters_of_launches, with_measured_verdicts
from tb_dlprof_plugin.model.profile import KernelKind, Kernels, LaunchConfigs, Launches, Verdict
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.ncu.counters_file import as_columns, read_counters, recognises
from tb_dlprof_plugin.readers.ncu.measured_launch import MeasuredLaunch, in_base_unit, measured_launch

BEFORE = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
RAW = f"""epoch 1, loss 0.3
==PROF== Connected to process 1234 (/usr/bin/python3)
{BEFORE}"Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","sm__inst_executed_pipe_tensor.sum","sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","","","","","","","","","Mbyte","byte","usecond","inst","%"
"0","1234","python3","host","void gemm<128, 2>(T1, ""x"")","1","7","(128, 1, 1)","(80, 1, 1)","0","8.0","2.50","1,000,000","12.50","4,096","37.50"
"1","1234","python3","host","relu(float *)","1","7","(256, 1, 1)","(1, 1, 1)","0","8.0","n/a","8192","3.00","0","1.0"
==PROF== Disconnected from process 1234
"""  # noqa: E501
DETAILS = f"""{BEFORE}"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"
"0","1","app","host","relu(float *)","1","7","(256, 1, 1)","(1, 1, 1)","0","8.9","Speed Of Light","Duration","us","2.85",""
"0","1","app","host","relu(float *)","1","7","(256, 1, 1)","(1, 1, 1)","0","8.9","Occupancy","Achieved Occupancy","%","14.26",""
"""  # noqa: E501


def read(tmp_path: Path, text: str) -> list[MeasuredLaunch]:
    path = tmp_path / "counters.txt"
    path.write_text(text)
    assert recognises(path)
    return read_counters(path)


def test_the_raw_page_has_a_row_for_each_launch(tmp_path: Path) -> None:
    assert read(tmp_path, RAW) == [
        MeasuredLaunch('void gemm<128, 2>(T1, "x")', (80, 1, 1), (128, 1, 1), 12_500, 4096, 375, 3_500_000, -1),
        MeasuredLaunch("relu(float *)", (1, 1, 1), (256, 1, 1), 3_000, 0, 10, -1, -1),
    ]


def test_the_page_of_details_has_a_row_for_each_metric(tmp_path: Path) -> None:
    assert read(tmp_path, DETAILS) == [MeasuredLaunch("relu(float *)", (1, 1, 1), (256, 1, 1), 2_850, -1, 143, -1, -1)]


def test_two_outputs_in_one_file_are_launches_of_their_own(tmp_path: Path) -> None:
    assert len(read(tmp_path, RAW + RAW)) == 4


@pytest.mark.parametrize(
    ("metrics", "tensor", "flops"),
    [
        ({}, -1, -1),
        ({"sm__inst_executed_pipe_tensor_op_hmma.sum": 8.0}, 8, -1),
        ({"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 0.2}, 1, -1),
        ({"sm__inst_executed_pipe_tensor.sum.peak_sustained": 8.0}, -1, -1),
        (
            {
                "sm__inst_executed_pipe_tensor.sum": 0.0,
                "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 5.0,
                "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 1.0,
                "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": 5.0,
            },
            0,
            11,
        ),
        ({"sm__inst_executed_pipe_tensor.sum": 2.0, "sm__ops_path_tensor_src_bf16_dst_fp32.sum": 4096.0}, 2, 4096),
    ],
)
def test_flops_are_known_only_where_all_pipes_were_measured(metrics: dict[str, float], tensor: int, flops: int) -> None:
    found = measured_launch("k", (1, 1, 1), (1, 1, 1), metrics)
    assert (found.tensor_instructions, found.flops) == (tensor, flops)


@pytest.mark.parametrize(
    ("unit", "expected"), [("Kbyte", 2e3), ("Gbyte", 2e9), ("nsecond", 2e-9), ("ms", 2e-3), ("Minst", 2e6), ("%", 2)]
)
def test_units_are_scaled(unit: str, expected: float) -> None:
    assert in_base_unit(2.0, unit) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", '{"traceEvents": []}', "==ERROR== ERR_NVGPUCTRPERM"])
def test_other_files_are_no_counters(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.csv").write_text(text)
    assert not recognises(tmp_path / "other.csv")


def test_an_export_without_launches_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="holds no launch that Nsight Compute measured; export"):
        read(tmp_path, RAW.partition('"0"')[0])


def test_a_report_without_nvidias_module_names_the_command(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ncu_report", None)
    (tmp_path / "x.ncu-rep").write_bytes(b"NVR\0")
    with pytest.raises(TraceError, match=r"pip install ncu-report; or export .*--csv --page raw"):
        read_counters(tmp_path / "x.ncu-rep")


def joined(measured: list[tuple[str, int, int]], launched: list[tuple[str, int]]) -> tuple[list[int], list[int]]:
    """Rows of counters and verdicts: ``measured`` are name, grid and tensor instructions, ``launched`` name, grid."""
    strings = [""]
    counters = as_columns(
        [MeasuredLaunch(name, (grid, 1, 1), (32, 1, 1), 10 + at, tensor, -1, -1, -1)
         for at, (name, grid, tensor) in enumerate(measured)],
        strings,
    )  # fmt: skip
    names = list(dict.fromkeys(name for name, _ in launched))
    first = len(strings)
    strings += names
    zeros = np.zeros(len(names), dtype=np.int64)
    own = {"name": np.arange(first, len(strings)), "kind": zeros + KernelKind.KERNEL}
    kernels = Kernels(**dict.fromkeys((field.name for field in fields(Kernels)), zeros) | own)
    count = len(launched)
    nothing = np.full(count, -1, dtype=np.int64)
    own = {
        "kernel": np.array([names.index(name) for name, _ in launched]), "start_ns": np.arange(count),
        "duration_ns": np.ones(count, dtype=np.int64), "config": np.arange(count),
    }  # fmt: skip
    launches = Launches(**dict.fromkeys((field.name for field in fields(Launches)), nothing) | own)
    own = {"grid": np.array([(size, 1, 1) for _, size in launched]), "block": np.array([(32, 1, 1)] * count)}
    configs = LaunchConfigs(**dict.fromkeys((field.name for field in fields(LaunchConfigs)), nothing) | own)
    row = counters_of_launches(counters, kernels, launches, configs, strings)
    verdicts = with_measured_verdicts(kernels, launches.kernel, row, counters, strings).tensor_core
    return row.tolist(), verdicts.tolist()


def test_launches_are_found_by_name_sizes_and_order() -> None:
    measured = [("void f<1>(int)", 4, 0), ("void f<1>(int)", 4, 8), ("void f<1>(int)", 5, 8), ("g()", 1, 0)]
    launched = [("void f<1>(int)", 4)] * 4 + [("void f<1>(int)", 5), ("g()", 1), ("h()", 1)]
    assert joined(measured, launched) == ([0, 1, 0, 1, 2, 3, -1], [Verdict.YES, Verdict.NO, Verdict.UNKNOWN])


def test_where_the_order_cannot_be_known_the_median_stands_for_all() -> None:
    assert joined([("f", 1, 0), ("f", 1, 0), ("f", 1, 0)], [("f", 1)] * 4)[0] == [1, 1, 1, 1]


def test_a_function_name_alone_is_found_where_one_kernel_has_it() -> None:
    assert joined([("gemm", 1, 8)], [("void at::gemm<float, 2>(Params)", 1)])[0] == [0]
    assert joined([("gemm", 1, 8)], [("void gemm<1>(int)", 1), ("void gemm<2>(int)", 1)])[0] == [-1, -1]
