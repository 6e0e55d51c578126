"""The Tensor Cores page: reasons, what they could save, kernels; and DLProf's report of it."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest

from tb_dlprof_plugin.model.direction import DLPROF_DIRECTIONS
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.ops import op_rows
from tb_dlprof_plugin.pages.tensor_cores import TensorCoresPage, tensor_cores_page
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.planning import forecast
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.table import Report
from tb_dlprof_plugin.reports.tensor import COLUMNS, tensor_report
from tb_dlprof_plugin.store.run_ref import RunRef

OFF = RunFacts(matmul_allow_tf32=False, cudnn_allow_tf32=False)


def page_of(view: ProfileView, ref: RunRef) -> TensorCoresPage:
    return tensor_cores_page(view, ref, view.selection())


def test_the_reasons_add_up_to_the_time_off_the_tensor_cores(training, ref: RunRef) -> None:
    page = page_of(training("fp32").view(facts=OFF), ref)
    for op in page.ops:
        assert sum(r.time_ns for r in op.reasons) + op.layout_ns + op.helpers_ns == op.non_tc_ns + op.unknown_ns
    assert sum(total.time_ns for total in page.by_reason) == (page.not_using_ns or 0) + (page.unknown_ns or 0)
    assert sum(total.percent or 0 for total in page.by_reason) == pytest.approx(100)
    assert sum(kernel.total_ns for kernel in page.kernels) == page.eligible_ns
    assert page.headline.endswith("none does. Main reason: FP32, TF32 off (700 µs of kernel time a step).")


def test_ops_stand_by_what_they_could_save_by_the_forecast_or_by_the_factors_of_the_advice(
    training, ref: RunRef
) -> None:
    view = training("fp32").view(facts=OFF)
    page = page_of(view, ref)
    # Convolution backward 900 µs: its FLOPs are unknown, and TF32 is expected to be 2.5 times as fast. Linear 300 twice
    # and convolution forward 600, which has three channels and gets hardly faster: by the forecast.
    saved = {
        view.groups.ids[op.group]: max(0.0, op.measured_ns - op.predicted_ns) * len(view.profile.iterations)
        for op in forecast(view, "tf32").ops
        if op.precision
    }
    linear, other, first = sorted(saved.values(), reverse=True)
    assert 150_000 < other <= linear < 300_000
    assert first < 60_000
    assert [(op.gpu_ns, op.saved_ns) for op in page.ops] == [
        (900_000, 540_000), (300_000, pytest.approx(linear, abs=1)), (300_000, pytest.approx(other, abs=1)),
        (600_000, pytest.approx(first, abs=1)),
    ]  # fmt: skip
    reason = page.ops[0].reasons[0]
    assert (reason.saved_low_ns, reason.saved_ns, reason.saved_high_ns) == (300_000, 540_000, 771_429)
    (total,) = page.by_reason
    assert (total.id, total.ops, total.remark) == ("fp32_tf32_off", 4, False)
    assert total.saved_ns == pytest.approx(540_000 + linear + other + first, abs=3)
    # Of most of the time, a backward pass of unknown size, the forecast cannot tell: the step gets no saving.
    assert forecast(view, "tf32").direction == "within noise"
    assert page.saving is None


def test_without_a_forecast_the_factors_tell_what_tf32_saves(training, ref: RunRef) -> None:
    # GIVEN a GPU whose peak rates are not known
    view = training("fp32").view(facts=OFF)
    view.profile.system.gpus[0].name = "NVIDIA something"
    page = page_of(view, ref)
    assert {(op.gpu_ns, op.saved_ns) for op in page.ops} == {(900_000, 540_000), (600_000, 360_000), (300_000, 180_000)}
    assert page.saving is not None
    assert 0 <= page.saving.low_ns <= page.saving.expected_ns <= page.saving.high_ns
    assert "with TF32" in page.saving.derivation


def test_what_has_no_known_factor_saves_at_most_what_it_takes_above_its_least_time(training, ref: RunRef) -> None:
    # GIVEN TF32 on and kernels that do not use it all the same
    page = page_of(training("fp32").view(facts=RunFacts(matmul_allow_tf32=True, cudnn_allow_tf32=True)), ref)
    assert {op.saved_ns for op in page.ops} == {None}
    assert {total.id for total in page.by_reason} == {"alignment"}
    assert page.saving is None
    # WHEN its FLOPs are known, THEN the bound is the time less that of its bytes at 4.8 TB/s, in half precision
    forward = next(op for op in page.ops if op.op_type == "conv2d" and op.direction == "forward")
    image, weight, output = 8 * 3 * 32 * 32, 16 * 3 * 3 * 3, 8 * 16 * 30 * 30
    least = 3 * 2 * (image + weight + output) / 4800
    assert forward.at_most_ns == pytest.approx(600_000 - least, abs=1)
    assert (forward.could_save, forward.could_save_ns) == ("at most", forward.at_most_ns)
    # AND one whose FLOPs are unknown, the backward convolution, stands last though it takes most
    last = page.ops[-1]
    assert (last.op_type, last.direction, last.gpu_ns) == ("conv2d", "backward", 900_000)
    assert (last.at_most_ns, last.could_save, last.could_save_ns) == (None, "unknown", None)
    # AND counts with all its time in the sum, which is a bound all the same
    (total,) = page.by_reason
    assert (total.saved_ns, total.at_most_ns) == (None, 900_000 + sum(op.at_most_ns or 0 for op in page.ops))


def test_without_the_gpus_rates_there_is_no_bound(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.gpu(name="NVIDIA Unheard")
    trace.op("aten::mm", 0, 10, dims=[[64, 84], [84, 10]], types=["c10::Half"] * 2)
    trace.launch("ampere_sgemm_128x64_nn", 2, 20, 10)
    page = page_of(trace.view(), ref)
    (op,), (total,) = page.ops, page.by_reason
    assert (op.reasons[0].id, op.reasons[0].at_most_ns, op.could_save) == ("alignment", None, "unknown")
    assert (total.saved_ns, total.at_most_ns) == (None, None)


def test_changing_layouts_could_save_its_own_time_and_stands_before_what_saves_nothing(new_trace, ref: RunRef) -> None:
    # GIVEN a product on Tensor Cores, then a convolution on them with a layout change around it, on an unknown GPU
    trace = new_trace()
    trace.gpu(name="NVIDIA Unheard")
    fp16 = "nvjet_sm90_hsh_128x64_64x8_2x1_v_bz_TNN"
    trace.op("aten::mm", 0, 10, dims=[[64, 64], [64, 64]], types=["c10::Half"] * 2)
    trace.launch(fp16, 2, 20, 100)
    trace.op("aten::cudnn_convolution", 15, 10, dims=[[8, 64, 9, 9], [64, 64, 3, 3]], types=["c10::Half"] * 2)
    trace.launch("void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float>(int)", 17, 120, 7)
    trace.launch(fp16, 18, 127, 20)
    page = page_of(trace.view(), ref)
    assert [(op.could_save, op.could_save_ns, op.layout_ns) for op in page.ops] == [
        ("at most", 7_000, 7_000), ("nothing", 0, 0),
    ]  # fmt: skip
    assert [(total.id, total.at_most_ns) for total in page.by_reason] == [("layout", 7_000)]


def test_an_estimate_is_never_more_than_the_gpu_allows(new_trace, ref: RunRef) -> None:
    # GIVEN a large FP32 product that takes twice its least time in half precision
    size = 4096
    least = 2 * size**3 / 989.5e3
    trace = new_trace()
    trace.gpu()
    trace.op("aten::mm", 0, 10, dims=[[size, size], [size, size]], types=["float", "float"])
    trace.launch("ampere_sgemm_128x64_nn", 2, 20, round(2 * least / 1000))
    (op,) = page_of(trace.view(facts=OFF), ref).ops
    (reason,) = op.reasons
    # WHEN the factor of TF32 would save more, THEN what lies above the least time is all that is said
    assert reason.id == "fp32_tf32_off"
    assert op.gpu_ns * (1 - 1 / 2.5) > op.gpu_ns - least
    assert op.saved_ns == reason.saved_high_ns == pytest.approx(op.gpu_ns - least, abs=1)
    assert (op.at_most_ns, op.could_save) == (None, "estimate")


def test_an_op_on_tensor_cores_has_no_reason_and_nothing_to_save(training, ref: RunRef) -> None:
    page = page_of(training("fp16").view(), ref)
    assert {(op.reason, len(op.reasons), op.saved_ns) for op in page.ops} == {("", 0, 0)}
    assert page.by_reason == []
    assert page.headline.endswith("every eligible op uses them.")


def test_what_an_op_could_run_in_depends_on_the_gpu(training, ref: RunRef) -> None:
    def possible(precision: str, capability: tuple[int, int]) -> set[tuple[str, ...]]:
        page = page_of(training(precision, capability=capability).view(), ref)
        return {tuple(op.possible_precisions) for op in page.ops}

    assert possible("fp32", (9, 0)) == {("tf32", "fp16", "bf16")}
    assert possible("fp32", (7, 0)) == {("fp16",)}
    assert possible("fp16", (9, 0)) == {("fp16",)}


def test_a_gpu_without_tensor_cores_says_so_for_all_matrix_work(training, ref: RunRef) -> None:
    page = page_of(training("fp32", capability=(6, 1)).view(), ref)
    assert (page.ops, page.by_reason, page.saving) == ([], [], None)
    assert {(work.op_type, work.id) for work in page.ineligible} == {
        ("conv2d", "gpu_has_none"), ("linear", "gpu_has_none"),
    }  # fmt: skip
    assert sum(work.time_ns for work in page.ineligible) == 2_100_000


def test_the_ops_page_gives_the_same_reason(new_trace, training, ref: RunRef) -> None:
    view = training("fp32").view(facts=OFF)
    for op in page_of(view, ref).ops:
        told = work_detail(view, ref, view.selection(), "op", op.id).eligibility_reason
        assert told.endswith(f"Time off them: {op.reason}")
    on = training("fp16").view()
    op = page_of(on, ref).ops[0]
    assert work_detail(on, ref, on.selection(), "op", op.id).eligibility_reason.endswith(
        "which the Tensor Cores of this GPU can do."
    )
    # Of what is not eligible, too: a depthwise convolution.
    trace = new_trace()
    trace.gpu()
    trace.op("aten::cudnn_convolution", 0, 10, dims=[[8, 64, 9, 9], [64, 1, 3, 3]], types=["c10::Half"] * 2)
    trace.launch("ampere_sgemm_128x64_nn", 2, 20, 10)
    view = trace.view()
    (row,) = op_rows(view, view.selection())
    (work,) = page_of(view, ref).ineligible
    assert work_detail(view, ref, view.selection(), "op", row.id).eligibility_reason == work.text


def test_a_kernel_of_unknown_kind_counts_neither_as_on_nor_as_off(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.gpu()
    trace.op("aten::mm", 0, 10, dims=[[64, 64], [64, 64]], types=["c10::Half"] * 2)
    trace.launch("made_up", 2, 20, 10)
    view = trace.view()
    (op,) = page_of(view, ref).ops
    assert (op.tc_kernels, op.non_tc_kernels, op.unknown_kernels) == ([], [], ["made_up"])
    assert op.reasons[0].id == "unknown"
    row = dict(zip(COLUMNS, tensor_report(view, ref, view.selection()).rows[0], strict=True))
    assert (row["Uses TC"], row["Non-TC GPU Time"], row["Unknown GPU Time"]) == (None, 0, 10_000)
    assert (row["Total Kernel Count"], row["TC Kernel Count"], row["Non-TC Kernel Count"]) == (1, 0, 0)


def test_the_report_has_dlprofs_columns_and_the_pages_figures(training, ref: RunRef) -> None:
    view = training("fp32").view(facts=OFF)
    report = tensor_report(view, ref, view.selection())
    page = page_of(view, ref)
    rows = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    assert [row["Total GPU Time"] for row in rows] == [900_000, 300_000, 300_000, 600_000]
    by_id = {op.id: op for op in page.ops}
    for row in rows:
        op = by_id[row["Op ID"]]
        assert (row["Op Name"], row["Direction"], row["Op Type"]) == (
            op.name,
            DLPROF_DIRECTIONS[op.direction],
            op.op_type,
        )
        assert (row["TC GPU Time"], row["Non-TC GPU Time"], row["Reason"]) == (op.tc_ns, op.non_tc_ns, op.reason)
        assert row["Uses TC"] is False
        assert (row["Total Kernel Count"], row["Non-TC Kernel Count"]) == (1, 1)
        assert row["TC Utilization (%)"] == 0.0
        assert (row["Could Save"], row["Could Save At Most"]) == (op.saved_ns, op.at_most_ns)


def test_both_formats_hold_the_same_and_unknown_is_empty() -> None:
    report = Report(("A", "B", "C", "D"), [("x", None, ["k<1, 2>", "l"], 1.5), ("=1+1", True, [], 2)])
    assert json.loads(report.to_json()) == [
        {"a": "x", "b": None, "c": ["k<1, 2>", "l"], "d": 1.5}, {"a": "=1+1", "b": True, "c": [], "d": 2},
    ]  # fmt: skip
    assert list(csv.reader(io.StringIO(report.to_csv()))) == [
        ["A", "B", "C", "D"], ["x", "", "k<1, 2>; l", "1.50"], ["'=1+1", "True", "", "2"],
    ]  # fmt: skip


def test_the_page_is_json(training, ref: RunRef) -> None:
    page = page_of(training("fp32").view(facts=OFF), ref)
    assert json.loads(msgspec.json.encode(page))["by_reason"][0]["label"] == "FP32, TF32 off"
