"""The Reports page shows what the reports hold, with units that a table can sort and filter by."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from tb_dlprof_plugin.pages.report_titles import DLPROF, TITLES
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.page import report_page
from tb_dlprof_plugin.reports.registry import REPORTS, make_report
from tb_dlprof_plugin.reports.table import csv_cells
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.respond import MAX_RESPONSE_BYTES, encode_page

UNITS = {"ns": "_ns", "percent": "_percent", "bytes": "_bytes"}


def test_every_report_has_a_title_and_a_question() -> None:
    assert list(TITLES) == list(REPORTS)
    assert set(DLPROF) < set(REPORTS)
    assert all(question.endswith("?") for _, question in TITLES.values())


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "summary"])
def test_a_page_has_the_cells_of_its_report(gpu_view: ProfileView, ref: RunRef, name: str) -> None:
    selection = gpu_view.selection(0, 1)
    page, report = report_page(gpu_view, ref, selection, name), make_report(name, gpu_view, ref, selection)
    assert (page.total_rows, page.notes, page.range.last) == (len(report.rows), list(report.notes), 1)
    assert [one.name for one in page.reports] == list(REPORTS)
    known = {"True": "yes", "False": "no"}
    for shown, row in zip(page.rows, report.rows, strict=True):
        for cell, value, text in zip(shown, row, csv_cells(row), strict=True):
            if isinstance(value, bool | list):
                assert (cell or "") == known.get(text, text)
            else:
                assert cell == value


@pytest.mark.parametrize("name", REPORTS)
def test_a_column_with_a_unit_holds_numbers_and_one_without_holds_text(gpu_view, cpu_view, ref, name: str) -> None:
    for view in (gpu_view, cpu_view):
        page = report_page(view, ref, view.selection(), name)
        assert re.fullmatch(r"[^{}]*\S[.]", page.headline)
        assert "None" not in page.headline
        for index, column in enumerate(page.columns):
            cells = [row[index] for row in page.rows if row[index] is not None]
            kinds = str if column.unit == "text" else int | float
            assert all(isinstance(cell, kinds) for cell in cells), column
            assert column.key.endswith(UNITS.get(column.unit, ""))
            assert not column.label.endswith(("(ns)", "(bytes)"))
            assert column.meaning.endswith(".")
            assert not column.verdict or set(cells) <= {"yes", "no"}


def test_headlines_are_about_the_row_with_most_time(gpu_view: ProfileView, cpu_view: ProfileView, ref: RunRef) -> None:
    def headlines(view: ProfileView) -> dict[str, str]:
        names = ("iteration", "op_type", "averages", "api", "copies", "kernel_groups")
        return {name: report_page(view, ref, view.selection(), name).headline for name in names}

    longest = (
        "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x64x8_stage3_warpsize2x2x1_g1_ffma_"
        "t1r3s3_execute_kernel__5x_cudnn"
    )
    assert headlines(gpu_view) == {
        "iteration": f"22 kernels, copies and sets ran; the longest is {longest}, 300 µs in iteration 5.",
        "op_type": "7 types of op ran; conv2d takes the most GPU time, 1.50 ms (65.6 %).",
        "averages": "29 names; cudaStreamSynchronize takes the most CPU time of its own, 1.21 ms (37.2 %); "
        f"{longest} the most GPU time, 1.50 ms (64.2 %).",
        "api": "3 different CUDA calls; the CPU spends most time in cudaStreamSynchronize, 1.21 ms (96.5 %).",
        "copies": "Copies and sets take 60.0 µs of GPU time; most takes Memcpy HtoD (Pageable -> Device) of 96.0 KiB, "
        "60.0 µs (100.0 %), at 4.92 GB/s.",
        "kernel_groups": "5 groups of kernels ran; Convolutions, implicit GEMM takes the most GPU time, "
        "1.50 ms (65.6 %).",
    }
    assert headlines(cpu_view) == {
        "iteration": "No kernel, copy or set was launched in the selected iterations.",
        "op_type": "2 types of op ran; linear takes the most CPU time, 100 µs (83.3 %).",
        "averages": "9 names; ProfilerStep* takes the most CPU time of its own, 86.0 µs (35.8 %).",
        "api": "No CUDA call was recorded in the selected iterations.",
        "copies": "Nothing was copied or set on a GPU in the selected iterations.",
        "kernel_groups": "No kernel was launched in the selected iterations.",
    }


def test_least_and_most_are_of_calls_or_of_iterations(gpu_view: ProfileView, ref: RunRef) -> None:
    def means(name: str, key: str) -> str:
        page = report_page(gpu_view, ref, gpu_view.selection(), name)
        return next(column.meaning for column in page.columns if column.key == key)

    assert means("detail", "min_cpu_time_ns") == "Least of the instances: time of the calls on the CPU."
    assert means("group_node", "min_cpu_time_ns").startswith("Least of the iterations: ")


def test_the_summary_has_its_figures_exactly_and_in_short(gpu_view: ProfileView, ref: RunRef) -> None:
    page = report_page(gpu_view, ref, gpu_view.selection(), "summary")
    assert [column.label for column in page.columns] == ["Table", "Row Name", "Column Name", "In Short", "Value"]
    figures = {(row[0], row[1], row[2]): (row[3], row[4]) for row in page.rows}
    assert figures["Summary Report", "Wall Clock Time (ns)", ""] == ("3.00 ms", "3000000")
    assert figures["Summary Report", "Tensor Core Kernel Utilization %", ""] == ("0.0 %", "0.00")
    assert figures["Summary Report", "I/O Duration %", ""] == (None, None)
    assert (
        figures["All Kernels", "All Kernels", "# Kernels"][0] == figures["All Kernels", "All Kernels", "# Kernels"][1]
    )
    assert figures["All Ops", "All Op", "GPU Time (ns)"] == ("2.29 ms", "2285000")


def test_a_report_that_is_too_large_is_shortened_and_says_how_many_rows_there_are(gpu_view, ref) -> None:
    page = report_page(gpu_view, ref, gpu_view.selection(), "iteration")
    many = msgspec.structs.replace(page, rows=page.rows * 400, total_rows=len(page.rows) * 400)
    data = encode_page(many)
    answer = json.loads(data)
    assert len(data) <= MAX_RESPONSE_BYTES
    assert 0 < len(answer["rows"]) < answer["total_rows"] == len(page.rows) * 400
    assert answer["rows"][: len(page.rows)] == json.loads(msgspec.json.encode(page.rows))


def test_there_is_no_page_of_a_report_that_is_not_there(gpu_view: ProfileView, ref: RunRef) -> None:
    with pytest.raises(KeyError):
        report_page(gpu_view, ref, gpu_view.selection(), "nothing")
