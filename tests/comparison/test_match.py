"""Ops of two runs side by side."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.comparison import compare
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef


def _page(a: ProfileView, b: ProfileView, ref: RunRef):
    return compare_page(CompareInput(a, ref, a.selection()), CompareInput(b, ref, b.selection()))


def test_a_run_compared_with_itself_matches_whole_and_differs_nowhere(gpu_view: ProfileView, ref: RunRef) -> None:
    page = _page(gpu_view, gpu_view, ref)
    # A kernel of 5 µs in three steps belongs to no op, and so to none of the other run.
    assert page.matched_gpu_time_percent.base == pytest.approx(100 * 2280 / 2285)
    assert (page.speedup, page.basis) == (1.0, "gpu")
    assert {(op.difference_ns, op.speedup, op.a_id == op.b_id) for op in page.ops} == {(0, 1.0, True)}
    assert {metric.ratio for metric in page.metrics} <= {1.0, None}
    assert page.noise is True


def test_ops_match_from_fp32_to_amp_although_what_they_call_differs(training, ref: RunRef) -> None:
    # GIVEN an AMP run with casts in its ops, other kernels and another length
    page = _page(training("fp32").view(), training("fp16", steps=2).view(), ref)
    found = {
        (op.name, op.direction): (op.a_ns, op.b_ns, op.a_precision, op.b_precision, op.a_using_tc, op.b_using_tc)
        for op in page.ops
    }
    assert page.matched_gpu_time_percent.base == pytest.approx(100 * 2280 / 2285, abs=1e-4)
    assert page.shares.candidate.unmatched == 0
    assert page.shares.candidate.casts == pytest.approx(100 * 40 / (40 + 400 + 5), abs=0.1)
    assert found == {
        ("conv1/conv2d", "backward"): (300_000, 60_000, "fp32", "fp16", "no", "yes"),
        ("conv1/conv2d", "forward"): (200_000, 50_000, "fp32", "fp16", "no", "yes"),
        ("fc/linear", "backward"): (100_000, 20_000, "fp32", "fp16", "no", "yes"),
        ("fc/linear", "forward"): (100_000, 30_000, "fp32", "fp16", "no", "yes"),
        ("to", ""): (20_000, 20_000, "fp32", "fp32", "no", "no"),
        ("nll_loss_forward", ""): (10_000, 10_000, "fp32", "fp32", "no", "no"),
        ("_foreach_add_", ""): (30_000, 30_000, "", "", "no", "no"),
    }
    differences = [abs(op.difference_ns or 0) for op in page.ops]
    assert differences == sorted(differences, reverse=True)
    assert page.ops[0].speedup == 5.0


def test_an_op_of_one_run_is_none_on_the_other_side_not_zero(new_trace, ref: RunRef) -> None:
    def frame_with(*names: str) -> ProfileView:
        trace = new_trace()
        trace.step(0, 0, 100)
        for number, name in enumerate(names):
            trace.op(name, 10 * number, 5)
        return trace.view()

    page = _page(frame_with("aten::mm", "aten::relu"), frame_with("aten::mm", "aten::gelu"), ref)
    assert {op.name: (op.a_ns, op.b_ns, op.difference_ns, op.speedup) for op in page.ops} == {
        "mm": (5_000, 5_000, 0, 1.0),
        "relu": (5_000, None, None, None),
        "gelu": (None, 5_000, None, None),
    }
    assert (page.shares.base.matched_of_model, page.matched_gpu_time_percent.base) == (50, None)
    missing = next(op for op in page.ops if op.name == "gelu")
    assert (missing.a_id, missing.a_kernels, missing.a_using_tc) == (None, None, "unknown")


def test_a_ratio_is_base_over_candidate_and_none_where_unknown(training, cpu_view: ProfileView, ref: RunRef) -> None:
    timed = RunFacts(unprofiled_step_ns=1_000_000)
    page = _page(
        training("fp32").view(facts=RunFacts(batch_size=64, unprofiled_step_ns=1_000_000)),
        training("fp16").view(facts=timed),
        ref,
    )
    metrics = {metric.key: metric for metric in page.metrics}
    # Kernel time a step: 740 µs and a third of 5; in fp16 140 and 40 for what is not matrix work, 20 of casts.
    assert metrics["kernel_time"].a == pytest.approx(2_225_000 / 3)
    assert metrics["kernel_time"].b == pytest.approx(605_000 / 3)
    assert metrics["kernel_time"].ratio == pytest.approx(2225 / 605)
    assert (metrics["step_time"].ratio, page.speedup) == (1.0, 1.0)
    rate = metrics["samples_per_second"]
    assert (rate.a, rate.b, rate.ratio) == (64_000, None, None)

    mixed = _page(training("fp32").view(facts=timed), cpu_view, ref)
    assert mixed.basis == "cpu"
    assert mixed.speedup == 10.0
    assert {m.key: (m.b, m.ratio) for m in mixed.metrics if m.key in ("gpu_busy", "kernel_time", "kernel_calls")} == {
        "gpu_busy": (None, None),
        "kernel_time": (None, None),
        "kernel_calls": (None, None),
    }


def test_runs_that_should_not_be_compared_are_warned_about(training, cpu_view: ProfileView, ref: RunRef) -> None:
    a = training().view(facts=RunFacts(model="LeNet", batch_size=64))
    b = training().view(facts=RunFacts(model="VGG16", batch_size=32))
    assert _page(a, b, ref).warnings == [
        "The models have different names: LeNet and VGG16.",
        "The batch sizes differ: 64 and 32; compare samples per second.",
    ]
    assert any("devices differ" in warning for warning in _page(a, cpu_view, ref).warnings)


def test_profiles_and_selections_are_taken_too(training) -> None:
    a, b = training(steps=3), training(steps=1)
    found = compare(a.profile(), b.view(), Selection(1, 2))
    assert {pair.difference_ns for pair in found.pairs} == {0}
    # The kernel without an op is in the last step alone.
    assert found.shares[0].matched_percent == pytest.approx(100 * 1520 / 1525, abs=1e-4)


def test_families_hold_kernel_time_per_step(training, ref: RunRef) -> None:
    page = _page(training("fp32", steps=1).view(), training("fp16", steps=1).view(), ref)
    families = {f.family: (f.a_ns, f.b_ns, f.a_tensor_core_ns, f.b_tensor_core_ns) for f in page.families}
    assert families["convolution"] == (500_000, 100_000, 0, 100_000)
    assert families["gemm"] == (200_000, 40_000, 0, 40_000)
