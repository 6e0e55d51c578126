"""The reports: DLProf's columns under its own headings, and figures of a recording written by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.metrics.key_node import with_key_node
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.registry import REPORTS, make_report
from tb_dlprof_plugin.reports.table import Report, json_key
from tb_dlprof_plugin.store.run_ref import RunRef

ROOT = Path(__file__).resolve().parents[2]
GUIDE: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "dlprof_guide.json").read_text())
"""Columns, tables and options as the DLProf User Guide 1.8 has them."""
DOCUMENT = (ROOT / "docs" / "reports.md").read_text()
REF = RunRef("run", "trace", 0, 0)


def rows_of(name: str, view: ProfileView, first: int | None = None, last: int | None = None) -> list[dict[str, Any]]:
    report = make_report(name, view, REF, view.selection(first, last))
    return [dict(zip(report.columns, row, strict=True)) for row in report.rows]


def row_of(name: str, view: ProfileView, **cells: Any) -> dict[str, Any]:
    """The one row with these cells; underscores in their names stand for blanks."""
    wanted = {key.replace("_", " "): value for key, value in cells.items()}
    (row,) = [row for row in rows_of(name, view) if wanted.items() <= row.items()]
    return row


def section(name: str) -> str:
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/reports.md has no section {name}"
    return found[1]


class TestGuide:
    @pytest.mark.parametrize("name", GUIDE["reports"])
    def test_a_report_has_the_guides_columns_in_its_order_before_ours(self, gpu_view: ProfileView, name: str) -> None:
        report = make_report(name, gpu_view, REF, gpu_view.selection())
        wanted = GUIDE["reports"][name]
        assert list(report.columns[: len(wanted)]) == wanted
        assert len(set(report.columns)) == len(report.columns)
        assert all(len(row) == len(report.columns) for row in report.rows)

    @pytest.mark.parametrize("table", GUIDE["summary"])
    def test_the_summary_has_the_guides_tables_and_rows_in_its_order_before_ours(
        self, gpu_view: ProfileView, table: str
    ) -> None:
        report = make_report("summary", gpu_view, REF, gpu_view.selection(), profile_name="mine")
        rows = list(dict.fromkeys(row[1] for row in report.rows if row[0] == table))
        wanted = GUIDE["summary"][table]
        assert rows[: len(wanted)] == wanted
        columns = list(dict.fromkeys(row[2] for row in report.rows if row[0] == table))
        assert columns == GUIDE["summary_columns"].get(table, [""])

    def test_the_profile_name_is_hidden_where_none_was_given(self, gpu_view: ProfileView) -> None:
        assert "Profile Name" not in make_report("summary", gpu_view, REF, gpu_view.selection()).to_csv()

    @pytest.mark.parametrize("name", GUIDE["reports"])
    def test_the_document_has_each_column_with_its_key(self, gpu_view: ProfileView, name: str) -> None:
        report = make_report(name, gpu_view, REF, gpu_view.selection())
        for column in GUIDE["reports"][name]:
            key = report.keys.get(column) or json_key(column)
            assert f"| {column} | `{key}` |" in section(name), column

    def test_the_document_has_each_row_of_the_summary_with_its_key(self) -> None:
        for table, names in GUIDE["summary"].items():
            for name in names:
                assert f"| {table} | {name} | `{json_key(table)}.{json_key(name)}` |" in section("summary"), name

    @pytest.mark.parametrize("option", GUIDE["options"] + GUIDE["options_elsewhere_in_the_guide"])
    def test_the_document_says_what_became_of_each_option(self, option: str) -> None:
        assert f"`{option}`" in section("Command-line options of DLProf")


class TestKeys:
    @pytest.mark.parametrize(
        ("heading", "key"),
        [
            ("Wall Clock Time (ns)", "wall_clock_time_ns"),
            ("GPU Utilization %", "gpu_utilization_percent"),
            ("Tensor Core Kernel Utilization %", "tensor_core_kernel_utilization_percent"),
            ("Non-Tensor Core Kernel Duration %", "non_tensor_core_kernel_duration_percent"),
            ("I/O Duration %", "io_duration_percent"),
            ("Avg. CPU Overhead Time (ns)", "avg_cpu_overhead_time_ns"),
            ("TC Utilization (%)", "tc_utilization_percent"),
            ("No. Calls", "number_of_calls"),
            ("# of Calls", "number_of_calls"),
            ("# Ops", "number_of_ops"),
            ("GPU Name(s)", "gpu_names"),
            ("Copied or Set (bytes)", "copied_or_set_bytes"),
            ("Avg. Bandwidth (GB/s)", "avg_bandwidth_gb_per_s"),
        ],
    )
    def test_a_heading_becomes_snake_case_with_its_unit(self, heading: str, key: str) -> None:
        assert json_key(heading) == key

    @pytest.mark.parametrize("name", REPORTS)
    def test_no_two_columns_of_a_report_share_a_key_and_every_time_has_its_unit(
        self, gpu_view: ProfileView, name: str
    ) -> None:
        report = make_report(name, gpu_view, REF, gpu_view.selection())
        keys = [report.keys.get(column) or json_key(column) for column in report.columns]
        assert len(set(keys)) == len(keys)
        assert not [key for key in keys if "time" in key.split("_") and not key.endswith(("_ns", "_percent"))]


class TestDetail:
    def test_an_op_has_its_instances_times(self, gpu_view: ProfileView) -> None:
        """Three calls of 60 µs with one launch call of 2 µs, of a kernel of 200 µs."""
        row = row_of("detail", gpu_view, Op_Name="conv1/conv2d", Direction="fprop")
        assert (row["No. Calls"], row["No. Kernel Calls"]) == (3, 3)
        assert (row["TC Eligibility"], row["Using TC"]) == (True, False)
        for figure, each in (("CPU", 60_000), ("GPU", 200_000), ("CPU Overhead", 58_000), ("GPU Idle", 0)):
            assert row[f"Total {figure} Time (ns)"] == 3 * each
            assert {row[f"{which} {figure} Time (ns)"] for which in ("Avg.", "Min", "Max")} == {each}
        assert (row["Data Type"], row["Input Shapes"]) == ("fp32", ["[8, 3, 32, 32]", "[16, 3, 3, 3]"])
        # An image of 32 x 32 becomes 30 x 30: 2 * 8 * 16 * 30 * 30 * 3 * 3 * 3, in each of 3 calls.
        assert row["FLOPs"] == 3 * 2 * 8 * 16 * 30 * 30 * 27

    def test_several_backward_nodes_of_an_op_are_one_instance(self, gpu_view: ProfileView) -> None:
        """The node of 30 µs and that of 6 µs behind it."""
        row = row_of("detail", gpu_view, Op_Name="fc/linear", Direction="bprop")
        assert row["No. Calls"] == 3
        assert (row["Min CPU Time (ns)"], row["Max CPU Time (ns)"]) == (36_000, 36_000)

    def test_a_backward_op_has_the_shapes_of_the_op_that_it_runs(self, gpu_view: ProfileView) -> None:
        row = row_of("detail", gpu_view, Op_Name="conv1/conv2d", Direction="bprop")
        assert row["Input Shapes"] == ["[8, 16, 30, 30]", "[8, 3, 32, 32]", "[16, 3, 3, 3]"]

    def test_overhead_leaves_out_a_cuda_call_that_waits(self, gpu_view: ProfileView) -> None:
        """`aten::item` is 2 µs longer than the cudaStreamSynchronize in it."""
        row = row_of("detail", gpu_view, Op_Type="item")
        assert row["Total CPU Overhead Time (ns)"] == 3 * 2_000
        assert row["Total GPU Time (ns)"] == 0

    def test_work_outside_every_op_is_an_op_of_its_kernels_name(self, gpu_view: ProfileView) -> None:
        (row,) = [row for row in rows_of("detail", gpu_view) if row["Op Name"].startswith("unassociated_")]
        assert row["Op Name"] == f"unassociated_{row['Op Type']}"
        assert row["Op Type"].startswith("void at::native::vectorized_elementwise_kernel")
        assert (row["Total GPU Time (ns)"], row["Total CPU Time (ns)"]) == (5_000, 2_000)
        assert row["Total CPU Overhead Time (ns)"] == 0
        assert row["Direction"] == ""

    def test_a_cuda_call_outside_every_op_is_an_op_of_its_name(self, new_trace) -> None:
        trace = new_trace()
        trace.gpu()
        trace.step(1, 0, 100)
        trace.op("aten::relu", 10, 20)
        trace.launch("relu_kernel", 12, 40, 10)
        trace.runtime(50, 7, name="cudaDeviceSynchronize")
        trace.runtime(60, 5, name="cudaDeviceSynchronize")
        row = row_of("detail", trace.view(), Op_Name="unassociated_cudaDeviceSynchronize")
        assert (row["Op Type"], row["No. Calls"]) == ("cudaDeviceSynchronize", 2)
        assert (row["Total CPU Time (ns)"], row["Max CPU Time (ns)"], row["Total GPU Time (ns)"]) == (12_000, 7_000, 0)

    def test_idle_time_is_between_an_ops_kernels_while_the_gpu_runs_nothing(self, new_trace) -> None:
        """Kernels at 100 to 110 and at 140 to 150; in between another op's runs from 115 to 125."""
        trace = new_trace()
        trace.gpu()
        trace.step(1, 0, 300)
        trace.op("aten::norm", 0, 50)
        trace.launch("first", 5, 100, 10)
        trace.launch("second", 10, 140, 10)
        trace.op("aten::relu", 60, 20)
        trace.launch("relu_kernel", 65, 115, 10)
        view = trace.view()
        assert row_of("detail", view, Op_Type="norm")["Total GPU Idle Time (ns)"] == 5_000 + 15_000
        assert row_of("detail", view, Op_Type="relu")["Total GPU Idle Time (ns)"] == 0

    def test_orphans_are_in_no_step_and_in_the_first_interval_of_a_key_node(self, gpu_view: ProfileView) -> None:
        """One kernel of 50 µs was launched before the recording, by an unknown call."""
        cut = ProfileView(with_key_node(gpu_view.profile, "conv1/conv2d"))
        (row,) = [row for row in rows_of("detail", cut, 0, 0) if row["Op Name"].startswith("unassociated_")]
        assert row["Total GPU Time (ns)"] == 50_000
        assert row["Total CPU Time (ns)"] is None
        (row,) = [row for row in rows_of("detail", cut) if row["Op Name"].startswith("unassociated_")]
        assert (row["No. Calls"], row["Total GPU Time (ns)"]) == (2, 55_000)
        # Of the two instances one has a known launch.
        assert (row["Total CPU Time (ns)"], row["Avg. CPU Time (ns)"]) == (2_000, 2_000)

    def test_without_a_gpu_there_is_cpu_time_alone(self, cpu_view: ProfileView) -> None:
        row = row_of("detail", cpu_view, Op_Name="fc/linear", Direction="fprop")
        assert row["Total CPU Time (ns)"] == 60_000
        assert {row[f"Total {figure} Time (ns)"] for figure in ("GPU", "CPU Overhead", "GPU Idle")} == {None}
        report = make_report("detail", cpu_view, REF, cpu_view.selection())
        assert "GPU Time, CPU Overhead and GPU Idle Time are empty: nothing ran on a GPU." in report.notes


class TestOtherReports:
    def test_the_iteration_report_has_each_launch_in_order_of_start(self, gpu_view: ProfileView) -> None:
        rows = rows_of("iteration", gpu_view)
        starts = [row["GPU Start Time (ns)"] for row in rows]
        assert starts == sorted(starts)
        assert {row["Iteration"] for row in rows} == {5, 6, 7}
        first = next(row for row in rows if row["Op Name"] == "conv1/conv2d")
        assert (first["GPU Time (ns)"], first["API Call Time (ns)"], first["API Call"]) == (
            200_000,
            2_000,
            "cudaLaunchKernel",
        )
        assert [first[f"Grid {axis}"] for axis in "XYZ"] == [16, 1, 1]
        assert [first[f"Block {axis}"] for axis in "XYZ"] == [256, 1, 1]
        assert (first["Registers per Thread"], first["Shared Memory (bytes)"], first["Occupancy (%)"]) == (
            128,
            4096,
            25,
        )
        assert (first["Parameters"], first["Output Shapes"]) == (None, None)
        assert first["Long Kernel Name"].startswith("sm80_xmma_fprop")

    def test_a_call_that_launches_several_counts_once(self, new_trace) -> None:
        trace = new_trace()
        trace.gpu()
        trace.step(1, 0, 100)
        trace.runtime(10, 9, 77, name="cudaGraphLaunch")
        trace.kernel("a", 30, 10, 77)
        trace.kernel("b", 40, 10, 77)
        rows = rows_of("iteration", trace.view())
        assert [row["API Call Time (ns)"] for row in rows] == [9_000, None]
        assert {row["API Call Start (ns)"] - rows[0]["API Call Start (ns)"] for row in rows} == {0}
        assert [row["Total API Time (ns)"] for row in rows_of("kernel", trace.view())] == [9_000, None]

    def test_an_op_type_holds_forward_and_backward(self, gpu_view: ProfileView) -> None:
        row = row_of("op_type", gpu_view, Op_Name="conv2d")
        assert (row["No. Nodes"], row["No. Calls"]) == (2, 6)
        assert (row["Min GPU Time (ns)"], row["Max GPU Time (ns)"], row["Avg. GPU Time (ns)"]) == (
            200_000,
            300_000,
            250_000,
        )

    def test_flattened_time_counts_an_overlap_once(self, new_trace) -> None:
        trace = new_trace()
        trace.gpu()
        trace.step(1, 0, 100)
        trace.op("aten::relu", 0, 8)
        trace.launch("one", 5, 40, 20)
        trace.op("aten::relu", 8, 20)
        trace.launch("two", 10, 50, 20, stream=8)
        row = row_of("op_type", trace.view(), Op_Name="relu")
        assert (row["Total GPU Time (ns)"], row["Flattened GPU Time (ns)"]) == (40_000, 30_000)

    def test_an_op_s_gpu_time_is_the_union_of_what_one_call_launched(self, new_trace) -> None:
        trace = new_trace()
        trace.gpu()
        trace.step(1, 0, 100)
        trace.op("aten::relu", 0, 20)
        trace.launch("one", 5, 40, 20)
        trace.launch("two", 10, 50, 20, stream=8)
        trace.launch("inside", 12, 52, 4, stream=9)
        view = trace.view()
        row = row_of("op_type", view, Op_Name="relu")
        assert (row["Total GPU Time (ns)"], row["Flattened GPU Time (ns)"]) == (30_000, 30_000)
        assert row_of("detail", view, Op_Type="relu")["Total GPU Time (ns)"] == 30_000
        assert row_of("kernel", view, Kernel_Name="inside")["Total GPU Time (ns)"] == 4_000

    def test_a_module_has_its_times_per_iteration(self, gpu_view: ProfileView) -> None:
        row = row_of("group_node", gpu_view, Name="conv1")
        assert (row["No. Calls Aggregated"], row["No. TC Eligibility Ops"], row["No. Node Ops Using TC"]) == (6, 2, 0)
        assert [row[f"{which} GPU Time (ns)"] for which in ("Total", "Avg.", "Min", "Max")] == [
            1_500_000,
            500_000,
            500_000,
            500_000,
        ]
        # The range of 80 µs and the backward node of 50 µs, with a launch call of 2 µs in each.
        assert (row["Avg. CPU Time (ns)"], row["Avg. CPU Overhead Time (ns)"]) == (130_000, 126_000)

    def test_without_modules_the_group_report_says_how_to_record_them(self, new_trace) -> None:
        trace = new_trace()
        trace.step(1, 0, 100)
        trace.op("aten::relu", 10, 20)
        report = make_report("group_node", trace.view(), REF, trace.view().selection())
        assert report.rows == []
        assert "pass model=" in report.notes[0]

    def test_cuda_calls_are_listed_by_name(self, gpu_view: ProfileView) -> None:
        row = row_of("api", gpu_view, API_Call="cudaLaunchKernel")
        # Six kernels a step, and one outside every op.
        assert (row["No. Calls"], row["No. Launched"], row["Total Time (ns)"]) == (19, 19, 38_000)
        copy = row_of("api", gpu_view, API_Call="cudaMemcpyAsync")
        assert (copy["No. Calls"], copy["Avg. Time (ns)"]) == (3, 2_000)

    def test_a_driver_call_in_a_runtime_call_counts_once_in_the_share(self, new_trace) -> None:
        trace = new_trace()
        trace.gpu()
        trace.step(1, 0, 100)
        trace.op("aten::relu", 5, 40)
        trace.runtime(10, 20, 5)
        trace.runtime(12, 15, 6, name="cuLaunchKernel", cat="cuda_driver")
        trace.kernel("k", 50, 10, 6)
        rows = {row["API Call"]: row for row in rows_of("api", trace.view())}
        assert (rows["cudaLaunchKernel"]["Self Time (ns)"], rows["cudaLaunchKernel"]["Time (%)"]) == (5_000, 25.0)
        assert (rows["cuLaunchKernel"]["Self Time (ns)"], rows["cuLaunchKernel"]["No. Launched"]) == (15_000, 1)

    def test_copies_have_their_size_and_bandwidth(self, gpu_view: ProfileView) -> None:
        """98,304 bytes in 20 µs."""
        (row,) = rows_of("copies", gpu_view)
        assert (row["Copy"], row["Size (bytes)"], row["No. Copies"]) == (
            "Memcpy HtoD (Pageable -> Device)",
            98_304,
            3,
        )
        assert row["Total Size (bytes)"] == 3 * 98_304
        assert row["Avg. Bandwidth (GB/s)"] == pytest.approx(4.9152)

    def test_bandwidth_is_empty_where_the_size_was_not_recorded(self, new_trace) -> None:
        trace = new_trace()
        trace.gpu()
        trace.step(1, 0, 100)
        trace.op("aten::copy_", 5, 20)
        trace.launch("Memset (Device)", 10, 40, 8)
        report = make_report("copies", trace.view(), REF, trace.view().selection())
        row = dict(zip(report.columns, report.rows[0], strict=True))
        assert (row["Size (bytes)"], row["Avg. Bandwidth (GB/s)"], row["Total Time (ns)"]) == (None, None, 8_000)
        assert report.notes[0].startswith("Sizes and bandwidths are empty")

    def test_kernel_groups_tell_convolutions_from_copies(self, gpu_view: ProfileView) -> None:
        groups = {row["Group ID"]: row for row in rows_of("kernel_groups", gpu_view)}
        assert groups["convolution.implicit_gemm"]["Total GPU Time (ns)"] == 1_500_000
        assert groups["copy.host_to_device"]["Total GPU Time (ns)"] == 60_000

    def test_averages_of_all_iterations_are_those_of_the_whole_recording(self, gpu_view: ProfileView) -> None:
        """The orphan is in torch's table, too: seven elementwise kernels, one of them in no step."""
        name = next(row["Name"] for row in rows_of("averages", gpu_view) if "vectorized_elementwise" in row["Name"])
        assert row_of("averages", gpu_view, Name=name)["# of Calls"] == 5
        (row,) = [row for row in rows_of("averages", gpu_view, 0, 0) if row["Name"] == name]
        assert (row["# of Calls"], row["Self CUDA"]) == (1, 10_000)
        step = row_of("averages", gpu_view, Name="ProfilerStep*")
        assert (step["# of Calls"], step["CPU total"], step["CPU time avg"]) == (3, 3_000_000, 1_000_000)
        shares = [row["Self CUDA %"] for row in rows_of("averages", gpu_view) if row["CPU total"] == 0]
        assert sum(shares) == pytest.approx(100)

    def test_no_iterations_are_said_to_be_none(self, new_trace) -> None:
        trace = new_trace()
        trace.op("aten::relu", 10, 20)
        report = make_report("summary", trace.view(), REF, trace.view().selection())
        iterations = json.loads(report.to_json())["iterations"]
        assert (iterations["total_iterations"], iterations["aggregated_iterations"]) == (0, 1)
        assert (iterations["start_iteration"], iterations["stop_iteration"]) == (0, 0)
        assert "0 iterations were found: the whole recording counts as one." in report.notes


class TestTable:
    def test_pandas_keeps_integers_where_a_cell_is_unknown(self) -> None:
        pytest.importorskip("pandas")
        view = Report(("Name", "Time (ns)"), [("a", 2**53 - 1), ("b", None)]).to_pandas()
        assert list(view.columns) == ["Name", "Time (ns)"]
        assert view["Time (ns)"][0] == 2**53 - 1
        assert view["Time (ns)"].isna().tolist() == [False, True]

    def test_without_pandas_the_error_says_how_to_get_it(self, monkeypatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "pandas", None)
        with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
            Report(("A",), []).to_pandas()
