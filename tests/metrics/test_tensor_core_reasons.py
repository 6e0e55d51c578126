"""Kernel time off the Tensor Cores finds its op, its reason, and what only serves a product."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.metrics.ops import op_totals
from tb_dlprof_plugin.metrics.tensor_core_reasons import off_tensor_cores, run_settings
from tb_dlprof_plugin.metrics.tensor_cores import tensor_core_totals
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.names.tensor_core_reasons import Settings
from tb_dlprof_plugin.profile_view import ProfileView

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
MODELS = ("mlp", "lenet", "alexnet", "vgg16", "resnet50", "custom")
PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16")
HALF, FLOAT = ["c10::Half"] * 2, ["float"] * 2
NVJET, SGEMM, GEMV = "nvjet_sm90_hsh_128x64_TNN", "ampere_sgemm_128x64_nn", "void gemvNSP_kernel<float>(int)"
TO_NHWC = "void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float>(int)"
REDUCE = "void cublasLt::splitKreduce_kernel<32, 16, int, float>(int)"


def of_ops(
    new_trace: Any, *ops: tuple[str, Any, Any, list[tuple[str, float]]], capability=(9, 0), **facts: Any
) -> ProfileView:
    """A view of ops in a row: name, input shapes, types, and the kernels that each launches, with their times."""
    trace = new_trace()
    trace.gpu(*capability)
    clock = 1000.0
    for index, (name, dims, types, kernels) in enumerate(ops):
        trace.op(name, 100 * index, 90, dims=dims, types=types)
        for number, (kernel, duration) in enumerate(kernels):
            trace.launch(kernel, 100 * index + 5 * number + 1, clock, duration)
            clock += duration
    view: ProfileView = trace.view(facts=RunFacts(**facts))
    return view


def reasons(view: ProfileView) -> dict[str, int]:
    """Time of eligible ops by reason."""
    found: dict[str, int] = {}
    for item in off_tensor_cores(view, view.selection()).off:
        if item.eligible:
            found[item.reason.id] = found.get(item.reason.id, 0) + item.time_ns
    return found


def served(view: ProfileView) -> dict[bool, int]:
    return {item.layout: item.time_ns for item in off_tensor_cores(view, view.selection()).served}


SQUARE = [[64, 64], [64, 64]]


@pytest.mark.parametrize(
    ("op", "dims", "types", "kernel", "facts", "expected"),
    [
        ("aten::mm", SQUARE, FLOAT, SGEMM, {"matmul_allow_tf32": False}, "fp32_tf32_off"),
        ("aten::mm", SQUARE, FLOAT, SGEMM, {"cudnn_allow_tf32": False}, "unknown"),
        ("aten::mm", SQUARE, FLOAT, SGEMM, {"matmul_allow_tf32": True}, "library_choice"),
        ("aten::mm", [[64, 84], [84, 10]], HALF, SGEMM, {}, "alignment"),
        ("aten::mm", [[64, 64], [64, 1]], HALF, GEMV, {}, "too_small"),
        ("aten::mm", SQUARE, HALF, "made_up", {}, "unknown"),
        ("aten::mm", None, None, SGEMM, {}, "unknown"),
        ("aten::bmm", [[2, 64, 64], [2, 64, 64]], HALF, SGEMM, {}, "library_choice"),
    ],
)
def test_an_op_off_the_tensor_cores_has_its_reason(new_trace, op, dims, types, kernel, facts, expected) -> None:
    assert reasons(of_ops(new_trace, (op, dims, types, [(kernel, 10)]), **facts)) == {expected: 10_000}


def test_fp32_within_a_mixed_precision_run(new_trace) -> None:
    view = of_ops(
        new_trace, ("aten::mm", SQUARE, HALF, [(NVJET, 30)]), ("aten::mm", SQUARE, FLOAT, [(SGEMM, 20)]),
        matmul_allow_tf32=False,
    )  # fmt: skip
    assert run_settings(view).half
    assert reasons(view) == {"amp_off_for_op": 20_000}


def test_several_reasons_of_one_op_each_have_their_time(new_trace) -> None:
    view = of_ops(
        new_trace,
        ("aten::mm", [[64, 84], [84, 10]], HALF, [(SGEMM, 10)]),
        ("aten::mm", SQUARE, HALF, [(SGEMM, 30)]),
        ("aten::mm", SQUARE, HALF, [(NVJET, 5)]),
    )
    items = off_tensor_cores(view, view.selection()).off
    assert [(item.reason.id, item.time_ns, item.shapes) for item in items] == [
        ("library_choice", 30_000, ((64, 64), (64, 64))),
        ("alignment", 10_000, ((64, 84), (84, 10))),
    ]


def test_what_serves_a_product_on_tensor_cores_is_no_reason(new_trace) -> None:
    conv = ("aten::cudnn_convolution", [[8, 64, 9, 9], [64, 64, 3, 3]], HALF)
    view = of_ops(new_trace, (*conv, [(TO_NHWC, 7), (NVJET, 20), (REDUCE, 3)]))
    assert reasons(view) == {}
    assert served(view) == {True: 7_000, False: 3_000}


def test_pointwise_kernels_of_a_recurrent_layer_serve_its_products(new_trace) -> None:
    pointwise = "void LSTM_elementWise_fp<__half, __half, float>(int)"
    dims = [[20, 16, 64], [], [], [], [1, 16, 128]]
    view = of_ops(new_trace, ("aten::_cudnn_rnn", dims, HALF, [(NVJET, 20), (pointwise, 4)]))
    assert reasons(view) == {}
    assert served(view) == {False: 4_000}


def test_what_serves_a_product_off_the_tensor_cores_shares_its_reason(new_trace) -> None:
    view = of_ops(new_trace, ("aten::mm", [[64, 84], [84, 10]], HALF, [(REDUCE, 3), (SGEMM, 20)]))
    assert reasons(view) == {"alignment": 23_000}
    assert served(view) == {}


def test_a_switch_that_was_not_recorded_is_seen_in_the_kernels(new_trace) -> None:
    tf32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_32x3_tn_align4>(Params)"
    view = of_ops(new_trace, ("aten::mm", SQUARE, FLOAT, [(tf32, 5)]), ("aten::mm", SQUARE, FLOAT, [(SGEMM, 9)]))
    assert run_settings(view) == Settings((9, 0), matmul_tf32=True, cudnn_tf32=None, half=False)
    assert reasons(view) == {"library_choice": 9_000}


def test_a_kernel_in_tf32_says_more_of_the_switch_than_what_was_recorded(new_trace) -> None:
    tf32 = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_32x3_tn_align4>(Params)"
    facts = {"matmul_allow_tf32": False, "cudnn_allow_tf32": False}
    view = of_ops(new_trace, ("aten::mm", SQUARE, FLOAT, [(tf32, 5)]), **facts)
    assert run_settings(view) == Settings((9, 0), matmul_tf32=True, cudnn_tf32=False, half=False)


def test_the_settings_of_a_run_are_computed_once_for_all_selections(new_trace) -> None:
    view = of_ops(new_trace, ("aten::mm", SQUARE, FLOAT, [(SGEMM, 9)]))
    settings = run_settings(view)
    for _ in range(100):  # More answers than a view keeps of single selections.
        view.kept((len(view.answers), object()), lambda: 0)
    assert run_settings(view) is settings


def test_of_a_product_in_generated_code_the_types_are_unknown(new_trace) -> None:
    view = of_ops(new_trace, ("CompiledFunction", SQUARE, FLOAT, [(SGEMM, 10)]), matmul_allow_tf32=False)
    (item,) = off_tensor_cores(view, view.selection()).off
    assert (item.reason.id, item.eligible, item.time_ns) == ("unknown", True, 10_000)
    assert "CompiledFunction launched the kernel" in item.reason.text


@pytest.mark.parametrize(
    ("op", "dims", "types", "capability", "expected"),
    [
        ("aten::mm", SQUARE, FLOAT, (6, 1), "gpu_has_none"),
        ("aten::mm", SQUARE, ["double"] * 2, (8, 6), "dtype"),
        ("aten::cudnn_convolution", [[8, 64, 9, 9], [64, 1, 3, 3]], HALF, (9, 0), "no_tensor_core_kernel"),
        ("aten::mv", [[64, 64], [64]], HALF, (9, 0), "no_tensor_core_kernel"),
    ],
)
def test_matrix_work_that_is_not_eligible_says_why(new_trace, op, dims, types, capability, expected) -> None:
    view = of_ops(new_trace, (op, dims, types, [(SGEMM, 10)]), capability=capability)
    (item,) = off_tensor_cores(view, view.selection()).off
    assert (item.reason.id, item.eligible, item.time_ns) == (expected, False, 10_000)
    assert op_totals(view, view.selection()).eligible_ns.sum() == 0


def test_an_op_that_multiplies_nothing_has_no_reason(new_trace) -> None:
    view = of_ops(new_trace, ("aten::relu", [[64]], ["float"], [("void at::native::elementwise_kernel<4>(int)", 5)]))
    assert off_tensor_cores(view, view.selection()).off == []


def test_a_cpu_run_has_none(cpu_view: ProfileView) -> None:
    found = off_tensor_cores(cpu_view, cpu_view.selection())
    assert (found.off, found.served) == ([], [])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", MODELS)
def test_every_recorded_op_off_the_tensor_cores_has_a_reason(model: str, precision: str) -> None:
    view = recorded_view(RECORDED / model / precision)
    selection = view.selection()
    found, totals = off_tensor_cores(view, selection), op_totals(view, selection)

    explained = sum(item.time_ns for item in found.off if item.eligible) + sum(item.time_ns for item in found.served)
    sums = tensor_core_totals(view, selection)
    assert explained == sums.not_using_ns + sums.unknown_ns

    without = {
        group for group in range(len(view.groups)) if totals.eligible_ns[group] and not totals.tensor_core_ns[group]
    }
    assert without <= {item.group for item in found.off if item.eligible}
    # The hook recorded shapes, types and switches: only a kernel of unknown kind leaves a reason unknown.
    assert all(item.verdict == Verdict.UNKNOWN for item in found.off if item.reason.id == "unknown")
    if precision == "fp32":
        assert {item.reason.id for item in found.off if item.eligible} == {"fp32_tf32_off"}


def test_recorded_alignment_reasons_name_the_channels() -> None:
    view = recorded_view(RECORDED / "vgg16" / "amp-fp16")
    (item,) = off_tensor_cores(view, view.selection()).off
    assert view.profile.strings[view.groups.module[item.group]] == "features.0"
    assert item.reason.text.startswith("Input channels = 3: no multiple of 8")
