"""Totals over a selection of a small recording, all by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tb_dlprof_plugin.metrics.bottleneck import host_needs_ns
from tb_dlprof_plugin.metrics.iterations import category_sums, percent, step_totals
from tb_dlprof_plugin.metrics.kernels import GpuCoverage, TimeSplit, coverage, time_split
from tb_dlprof_plugin.metrics.ops import group_precisions, input_precisions, op_totals
from tb_dlprof_plugin.metrics.tensor_cores import TensorCoreTotals, tensor_core_totals
from tb_dlprof_plugin.metrics.without_recorder import scaled, shortened
from tb_dlprof_plugin.model.profile import LightCalls, LightLaunches, LightWindow, Role
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView, Selection, stable_id


def _by_group(view: ProfileView, values) -> dict[tuple[str, str, str], object]:
    groups, strings = view.groups, view.profile.strings
    return {
        (strings[module], strings[kind], Role(role).name.lower()): value
        for module, kind, role, value in zip(groups.module, groups.op_type, groups.role, values, strict=True)
    }


def test_step_totals_of_all_and_of_one_step(gpu_view: ProfileView) -> None:
    whole, second = step_totals(gpu_view, gpu_view.selection()), step_totals(gpu_view, Selection(1, 1))
    assert (whole.wall_ns, whole.average_ns, whole.deviation_ns) == (3_000_000, 1_000_000, 0)
    assert (second.wall_ns, second.average_ns, second.deviation_ns) == (1_000_000, 1_000_000, None)
    assert second.category_ns == {
        "tensor_core": 0, "other_kernels": 740_000, "memory": 20_000, "dataloader": 100_000, "io": None,
        "cpu": 46_000, "other": 94_000,
    }  # fmt: skip
    assert (second.gpu_busy_ns, second.gpu_utilization) == (760_000, 76.0)


def test_the_mean_over_gpus_still_sums_to_the_wall_time(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 0.1)
    trace.kernel("ampere_sgemm_128x64_nn", 0, 0.011, device=0)
    trace.kernel("ampere_sgemm_128x64_nn", 0, 0.020, device=1)
    trace.kernel("Memset", 0.050, 0.003, device=1, cat="gpu_memset")
    view = trace.view()
    categories = category_sums(view, slice(None))
    assert categories["other_kernels"] == 15
    assert sum(value or 0 for value in categories.values()) == 100


@pytest.mark.parametrize(
    ("step_us", "expected", "recorder_us"),
    [
        # 1000 us were recorded: 760 on the GPU, 100 loading, 46 in calls, 94 in none. What the profiler added comes out
        # of calls and Python in proportion, and out of loading last.
        (930, {"dataloader": 100_000, "cpu": 23_000, "other": 47_000}, 70),
        (790, {"dataloader": 30_000, "cpu": 0, "other": 0}, 210),
        (1100, {"dataloader": 100_000, "cpu": 46_000, "other": 194_000}, 0),
    ],
)
def test_what_the_recorder_added_is_in_no_category(
    training, step_us: int, expected: dict[str, int], recorder_us: int
) -> None:
    view = training().view(facts=RunFacts(unprofiled_before_ns=[step_us * 1000] * 4))
    totals = step_totals(view, Selection(1, 1))
    assert totals.category_ns == {"tensor_core": 0, "other_kernels": 740_000, "memory": 20_000, "io": None} | expected
    assert (totals.wall_ns, totals.recorded_wall_ns, totals.recorder_ns) == (
        step_us * 1000, 1_000_000, recorder_us * 1000,
    )  # fmt: skip
    assert totals.gpu_utilization == pytest.approx(76_000 / step_us)
    assert totals.gpu_idle_ns == (step_us - 760) * 1000


def test_gpu_time_that_does_not_fit_into_the_step_fills_it(training) -> None:
    view = training().view(facts=RunFacts(unprofiled_before_ns=[380_000] * 4))
    totals = step_totals(view, view.selection())
    assert (totals.wall_ns, totals.gpu_busy_ns, totals.gpu_utilization) == (3 * 380_000, 3 * 380_000, 100.0)
    # Kernels and copies alike are cut in half.
    assert totals.category_ns["memory"] == pytest.approx(3 * 10_000, rel=0.01)
    assert totals.gpu_idle_percent == 0


def test_gpu_time_is_that_of_the_light_window_where_its_steps_match(gpu_view: ProfileView) -> None:
    # GIVEN a light window of two steps of 500 us, of which only the first matches: its first kernel runs for 200 us,
    # one of another stream in parallel for 50 us, then for 30 us one that is not in the full recording
    def column(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    light = LightWindow(
        boundary_ns=column(0, 500_000, 1_000_000),
        iteration=column(0, -1),
        calls=LightCalls(column(0, 0, 0, 0), column(10, 20, 30, 600_000), *(column(5, 5, 5, 5),) * 3),
        launches=LightLaunches(
            call=column(0, 1, 2, 3),
            start_ns=column(1_000, 51_000, 250_000, 700_000),
            duration_ns=column(200_000, 50_000, 30_000, 90_000),
            device=column(0, 0, 0, 0),
            stream=column(7, 8, 7, 7),
            launch=column(0, 1, -1, 0),
        ),
    )
    view = ProfileView(dataclasses.replace(gpu_view.profile, light_window=light))
    totals = step_totals(view, view.selection())
    # THEN a step is busy for 230 us of the 1000 that were timed
    assert totals.gpu_busy_ns == 3 * 230_000
    assert totals.gpu_utilization == pytest.approx(23.0)
    assert sum(value or 0 for value in totals.category_ns.values()) == totals.wall_ns == 3_000_000


def test_times_that_are_made_shorter_keep_their_proportions_and_their_sum() -> None:
    times = np.array([[10, 20, 30, 40], [0, 0, 5, 0]])
    assert shortened(times, ((0, 1), (2,), (3,)), np.array([15, 0])).tolist() == [[5, 10, 30, 40], [0, 0, 5, 0]]
    assert shortened(times[0], ((0, 1), (2,), (3,)), 45).tolist() == [0, 0, 15, 40]
    assert scaled(np.array([1, 1, 1, 0]), 10).tolist() == [3, 4, 3, 0]
    assert scaled(np.array([0, 0]), 10).tolist() == [0, 0]


def test_op_totals_count_calls_kernels_and_eligible_time(gpu_view: ProfileView) -> None:
    totals = op_totals(gpu_view, gpu_view.selection())
    assert _by_group(gpu_view, totals.calls) == {
        ("", "_foreach_add_", "optimizer"): 3,
        ("", "item", "other"): 3,
        ("", "nll_loss_forward", "other"): 3,
        ("", "to", "other"): 3,
        ("conv1", "conv2d", "backward"): 3,
        ("conv1", "conv2d", "forward"): 3,
        ("fc", "linear", "backward"): 3,
        ("fc", "linear", "forward"): 3,
    }
    eligible = {key: ns for key, ns in _by_group(gpu_view, totals.eligible_ns).items() if ns}
    assert eligible == {
        ("conv1", "conv2d", "backward"): 900_000,
        ("conv1", "conv2d", "forward"): 600_000,
        ("fc", "linear", "backward"): 300_000,
        ("fc", "linear", "forward"): 300_000,
    }
    parts = totals.tensor_core_ns + totals.eligible_non_tensor_core_ns + totals.eligible_unknown_ns
    assert (parts == totals.eligible_ns).all()


def test_casts_around_a_matrix_product_are_no_eligible_time(training) -> None:
    view = training("fp16", steps=1).view()
    totals = op_totals(view, view.selection())
    key = ("conv1", "conv2d", "forward")
    assert _by_group(view, totals.gpu_ns)[key] == 50_000
    assert _by_group(view, totals.eligible_ns)[key] == 40_000


def test_in_generated_code_the_products_are_eligible_and_what_lies_between_them_is_not(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.op("CompiledFunction", 0, 50, dims=[[8, 64]], types=["float"])
    trace.launch("nvjet_sm90_tst_128x64_64x8_2x1_v_bz_TNN", 2, 60, 30)
    trace.launch("triton_poi_fused_relu_0", 6, 90, 20)
    trace.op("aten::mm", 20, 10, dims=[[8, 64], [64, 8]], types=["c10::BFloat16"] * 2)
    trace.launch("nvjet_sm90_tst_128x64_64x8_2x1_v_bz_TNN", 22, 110, 5)
    view = trace.view()
    totals = op_totals(view, view.selection())
    key = ("", "CompiledFunction", "forward")
    assert set(_by_group(view, totals.gpu_ns)) == {key}
    assert _by_group(view, totals.gpu_ns)[key] == 55_000
    assert (_by_group(view, totals.eligible_ns)[key], _by_group(view, totals.tensor_core_ns)[key]) == (35_000,) * 2
    assert _by_group(view, totals.eligible)[key]


def test_generated_code_is_not_eligible_for_its_pointwise_kernels(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.op("CompiledFunction", 0, 50)
    trace.launch("triton_poi_fused_relu_0", 6, 90, 20)
    view = trace.view()
    totals = op_totals(view, view.selection())
    assert (totals.eligible.tolist(), totals.eligible_ns.tolist()) == ([False], [0])


@pytest.mark.parametrize(
    ("precision", "used", "inputs"), [("fp32", "", "fp32"), ("tf32", "tf32", "fp32"), ("fp16", "fp16", "fp16")]
)
def test_precision_is_that_of_tensor_core_kernels_and_of_matrix_inputs(training, precision, used, inputs) -> None:
    view = training(precision, steps=1).view()
    selection = view.selection()
    of_kernels = _by_group(view, group_precisions(view, selection))
    of_inputs = _by_group(view, input_precisions(view, selection))
    for key in (("conv1", "conv2d", "forward"), ("conv1", "conv2d", "backward"), ("fc", "linear", "backward")):
        assert (of_kernels[key], of_inputs[key]) == (used, inputs)
    assert (of_kernels["", "to", "other"], of_inputs["", "to", "other"]) == ("", "fp32")
    assert of_inputs["", "item", "other"] == ""


def test_tensor_core_utilization_is_the_share_of_eligible_kernel_time(training) -> None:
    off, on = training("fp32", steps=1).view(), training("fp16", steps=1).view()
    assert tensor_core_totals(off, off.selection()) == TensorCoreTotals(700_000, 0, 700_000, 0, 0, 0.0, None)
    assert tensor_core_totals(on, on.selection()) == TensorCoreTotals(140_000, 140_000, 0, 0, 0, 100.0, None)


def test_tensor_core_utilization_is_unknown_where_too_many_kernels_are(new_trace) -> None:
    def view_with_unknown(duration: float) -> ProfileView:
        trace = new_trace()
        trace.gpu()
        trace.op("aten::mm", 0, 10)
        trace.launch("nvjet_sm90_hsh_64x64_TNN", 2, 20, 100 - duration)
        trace.launch("made_up", 5, 200, duration)
        return trace.view()

    few, many = view_with_unknown(5), view_with_unknown(6)
    assert tensor_core_totals(few, few.selection()).utilization == 95.0
    assert tensor_core_totals(many, many.selection()).utilization is None


def test_without_eligible_kernels_utilization_is_none(cpu_view: ProfileView) -> None:
    assert tensor_core_totals(cpu_view, cpu_view.selection()).utilization is None


def test_time_split_and_coverage_of_a_recording(gpu_view: ProfileView) -> None:
    # The kernel of no op was launched in the last step all the same.
    assert time_split(gpu_view, gpu_view.selection()) == TimeSplit(0, 2_225_000, 0, 60_000)
    assert time_split(gpu_view, Selection(0, 0)) == TimeSplit(0, 740_000, 0, 20_000)
    assert coverage(gpu_view) == GpuCoverage(
        total_ns=2_335_000, linked_ns=2_280_000, orphan_ns=50_000, unattributed_ns=5_000, outside_ns=0
    )


def test_gpu_time_belongs_to_the_iteration_that_launched_it(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.step(1, 100, 100)
    trace.op("aten::mm", 90, 5)
    trace.launch("ampere_sgemm_128x64_nn", 91, 150, 20)
    view = trace.view()
    assert [time_split(view, Selection(i, i)).kernel_ns for i in (0, 1)] == [20_000, 0]


def test_waiting_calls_lower_the_floor_of_the_cpu(gpu_view: ProfileView) -> None:
    # GIVEN a synchronising call from 501 to 905 µs: after 50 µs it waits, 354 µs
    assert host_needs_ns(gpu_view).tolist() == [646_000] * len(gpu_view.profile.iterations)


@pytest.mark.parametrize(("first", "last"), [(-1, 1), (2, 1), (0, 3), (3, None)])
def test_a_selection_outside_the_recording_is_refused(gpu_view: ProfileView, first: int, last: int | None) -> None:
    with pytest.raises(ValueError, match="which has 0 to 2"):
        gpu_view.selection(first, last)


def test_the_default_selection_is_everything(gpu_view: ProfileView) -> None:
    assert gpu_view.selection() == Selection(0, 2)
    assert gpu_view.selection(first=1) == Selection(1, 2)
    assert gpu_view.selection(last=1).count == 2


def test_percent_of_nothing_or_of_the_unknown_is_none() -> None:
    assert (percent(1, 0), percent(None, 5), percent(1, None), percent(1, 4)) == (None, None, None, 25.0)


def test_ids_are_stable_and_depend_on_where_the_parts_end() -> None:
    assert stable_id("conv1", "conv2d") == stable_id("conv1", "conv2d")
    assert stable_id("a", "bc") != stable_id("ab", "c")


def test_the_same_op_has_the_same_id_in_another_recording(training, gpu_view: ProfileView) -> None:
    other = training("fp16", steps=1).view()
    assert set(other.groups.ids) == set(gpu_view.groups.ids)
