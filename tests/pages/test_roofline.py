"""The Roofline page: its answer in words, its sums, and what it says where nothing is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.pages.roofline import roofline_page
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"


def _recorded(run: str) -> ProfileView:
    return recorded_view(RECORDED / run)


def test_the_first_line_says_how_much_of_the_roof_is_reached(ref: RunRef) -> None:
    view = _recorded("resnet50/tf32")
    page = roofline_page(view, ref, view.selection())
    assert page.headline == (
        f"3.11 TFLOP a step; matrix kernels reach {page.percent_of_ceiling:.0f} % of what NVIDIA H200 can in the "
        "precision they ran in."
    )
    assert page.flops_per_iteration == 3_110_281_936_896
    assert page.source == "NVIDIA H200 Tensor Core GPU data sheet"
    assert [(roof.label, roof.flops_per_second, roof.reached) for roof in page.roofs] == [
        ("FP16 and BF16", 989.5e12, False),
        ("TF32", 494.5e12, True),
        ("FP32 without Tensor Cores", 67e12, False),
    ]


def test_a_run_in_fp32_has_the_roofs_that_tf32_and_mixed_precision_lead_to(ref: RunRef) -> None:
    view = _recorded("resnet50/fp32")
    page = roofline_page(view, ref, view.selection())
    assert [(roof.precision, roof.reached) for roof in page.roofs] == [("fp16", False), ("tf32", False), ("fp32", True)]


def test_a_run_in_bf16_has_its_roof_and_that_of_fp32(ref: RunRef) -> None:
    view = _recorded("resnet50/amp-bf16")
    page = roofline_page(view, ref, view.selection())
    assert [(roof.precision, roof.label, roof.reached) for roof in page.roofs] == [
        ("bf16", "FP16 and BF16", True),
        ("fp32", "FP32 without Tensor Cores", False),
    ]


def test_volta_has_one_roof_for_fp16_and_none_for_tf32(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.gpu(name="Tesla V100-SXM2-16GB")
    trace.step(0, 0, 100)
    trace.op("aten::mm", 10, 20, dims=[[64, 64], [64, 64]], types=["float", "float"])
    trace.launch("volta_sgemm_128x64_nn", 12, 40, 50)
    view = trace.view()
    page = roofline_page(view, ref, view.selection())
    assert [(roof.label, roof.reached) for roof in page.roofs] == [
        ("FP16", False),
        ("FP32 without Tensor Cores", True),
    ]


def test_an_op_above_its_roof_has_the_reason_that_its_kernels_show(ref: RunRef) -> None:
    view = _recorded("resnet50/fp32")
    page = roofline_page(view, ref, view.selection())
    reasons = {op.why_above_roof for op in page.ops if (op.percent_of_ceiling or 0) > 100}
    assert reasons == {"FFT kernels multiply less often than the FLOPs say"}
    assert {op.why_above_roof for op in page.ops if (op.percent_of_ceiling or 0) <= 100} == {""}


def test_an_op_above_its_roof_without_such_kernels_leaves_the_reason_open(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.gpu(name="NVIDIA H200")
    trace.step(0, 0, 1000)
    trace.op("aten::mm", 10, 20, dims=[[4096, 4096], [4096, 4096]], types=["float", "float"])
    trace.launch("ampere_sgemm_128x64_nn", 12, 40, 500)
    view = trace.view()
    page = roofline_page(view, ref, view.selection())
    [op] = page.ops
    assert (op.percent_of_ceiling or 0) > 100
    assert op.why_above_roof.startswith("the algorithm multiplies less often")
    assert page.headline.endswith(
        "matrix kernels are above the roof of NVIDIA H200: the ops' rows say why that can be."
    )


def test_rows_sum_to_the_page_and_lead_to_their_ops(ref: RunRef) -> None:
    view = _recorded("custom/amp-fp16")
    selection = view.selection(0, 2)
    page = roofline_page(view, ref, selection)
    assert sum(op.gpu_ns for op in page.ops) == page.matrix_ns
    assert sum(op.flops or 0 for op in page.ops) == page.flops
    assert page.total_rows == len(page.ops)
    assert [op.gpu_ns for op in page.ops] == sorted((op.gpu_ns for op in page.ops), reverse=True)
    assert work_detail(view, ref, selection, "op", page.ops[0].id).row.name == page.ops[0].name
    known = [op for op in page.ops if op.percent_of_ceiling is not None]
    assert page.percent_of_ceiling == pytest.approx(
        sum((op.percent_of_ceiling or 0) * op.gpu_ns for op in known) / sum(op.gpu_ns for op in known)
    )


def test_unknown_flops_are_unknown_and_said(gpu_view: ProfileView, ref: RunRef) -> None:
    page = roofline_page(gpu_view, ref, gpu_view.selection())
    backward = next(op for op in page.ops if op.direction == "backward" and op.op_type == "conv2d")
    assert (backward.flops, backward.flops_per_second, backward.percent_of_ceiling, backward.bound) == (
        None, None, None, "unknown",
    )  # fmt: skip
    assert page.unknown_percent == pytest.approx(100 * 900 / 2100)
    assert page.headline.endswith("43 % of their time has unknown FLOPs.")


def test_a_run_without_a_gpu_has_flops_and_no_roof(cpu_view: ProfileView, ref: RunRef) -> None:
    page = roofline_page(cpu_view, ref, cpu_view.selection())
    assert page.has_gpu is False
    assert (page.ops, page.roofs, page.matrix_ns, page.percent_of_ceiling) == ([], [], None, None)
    assert page.headline.endswith("a step; no GPU in this recording.")


def test_a_gpu_that_is_not_in_the_table_has_no_roof(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.gpu(name="NVIDIA Unheard")
    trace.step(0, 0, 100)
    trace.op("aten::mm", 10, 20, dims=[[64, 64], [64, 64]], types=["float", "float"])
    trace.launch("ampere_sgemm_128x64_nn", 12, 40, 50)
    view = trace.view()
    page = roofline_page(view, ref, view.selection())
    assert page.headline == "524 kFLOP a step; the peak rates of NVIDIA Unheard are unknown."
    assert (page.roofs, page.bytes_per_second, page.source) == ([], None, "")
    assert page.ops[0].flops_per_second == pytest.approx(2 * 64**3 / 50e-6)


def test_a_run_without_matrix_routines_says_so(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::relu", 10, 20, dims=[[64, 64]], types=["float"])
    view = trace.view()
    page = roofline_page(view, ref, view.selection())
    assert page.headline == "No matrix product, convolution or attention ran in the selected iterations."
    assert page.flops is None
