"""The pages of one recording agree with each other and with the sums by hand."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages.advice import advice_page
from tb_dlprof_plugin.pages.common import SelectedRange, Slice
from tb_dlprof_plugin.pages.compare import compare_page
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.overview import Overview, overview
from tb_dlprof_plugin.pages.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.pages.work_rows import WorkIteration
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef

ALL, SECOND = Selection(0, 2), Selection(1, 1)


@pytest.fixture(scope="module", params=["fp32", "tf32", "fp16"])
def view(request: pytest.FixtureRequest, training) -> ProfileView:
    made: ProfileView = training(request.param).view(
        facts=RunFacts(batch_size=64, unprofiled_before_ns=[1_000_000] * 4)
    )
    return made


def _sum(slices: list[Slice]) -> int:
    return sum(part.value_ns or 0 for part in slices)


def _percents(slices: list[Slice]) -> float:
    return sum(part.percent or 0.0 for part in slices)


@pytest.mark.parametrize("selection", [ALL, SECOND])
def test_every_donut_sums_to_its_whole(view: ProfileView, ref: RunRef, selection: Selection) -> None:
    page = overview(view, ref, selection)
    wall = page.summary.wall_clock_ns
    assert wall == 1_000_000 * selection.count
    assert _sum(page.gpu_utilization) == _sum(page.resource_usage) == wall
    assert _sum(page.kernel_time) == _sum(kernels_page(view, ref, selection).by_family)
    assert _sum(page.tensor_core_efficiency) == tensor_cores_page(view, ref, selection).eligible_ns
    for donut in (page.gpu_utilization, page.resource_usage, page.kernel_time, page.tensor_core_efficiency):
        assert _percents(donut) == pytest.approx(100)


@pytest.mark.parametrize("selection", [ALL, SECOND])
def test_the_pages_show_the_same_ops_and_figures(view: ProfileView, ref: RunRef, selection: Selection) -> None:
    first = overview(view, ref, selection)
    ops = ops_page(view, ref, selection)
    kernels = kernels_page(view, ref, selection)
    cores = tensor_cores_page(view, ref, selection)
    advice = advice_page(view, ref, selection)

    assert first.top_ops == ops.rows[:10]
    assert first.coverage == ops.coverage == kernels.coverage
    assert first.summary.tensor_core_kernel_utilization_percent == cores.utilization_percent
    assert {p.range for p in (first, ops, kernels, cores, advice)} == {
        SelectedRange(selection.first, selection.last, 3, 5 + selection.first, 5 + selection.last, "profiler_step")
    }
    by_id = {row.id: row for row in ops.rows}
    for op in cores.ops:
        row = by_id[op.id]
        assert (op.using_tc, op.precision, op.calls) == (row.using_tc, row.precision, row.calls)
        assert op.tc_ns + op.non_tc_ns + op.unknown_ns == op.gpu_ns <= (row.gpu_ns or 0)
    assert (cores.using_ns or 0) + (cores.not_using_ns or 0) + (cores.unknown_ns or 0) == cores.eligible_ns
    assert _sum(cores.by_precision) == cores.eligible_ns
    # The ops explain all time launched in the selection but the kernel that no op launched in the last step.
    lost = 5_000 if selection.last == 2 else 0
    assert sum(row.gpu_ns or 0 for row in ops.rows) == sum(row.total_ns for row in kernels.rows) - lost
    assert sum(row.gpu_percent or 0 for row in ops.rows) == pytest.approx(100)


def test_a_detail_adds_up_to_its_row(view: ProfileView, ref: RunRef) -> None:
    for row in ops_page(view, ref, ALL).rows:
        detail = work_detail(view, ref, ALL, "op", row.id)
        assert detail.row == row
        assert sum(shape.cpu_total_ns for shape in detail.shapes) == row.cpu_total_ns
        assert sum(shape.gpu_ns or 0 for shape in detail.shapes) == row.gpu_ns
        assert sum(kernel.total_ns for kernel in detail.kernels) == row.gpu_ns
        assert sum(kernel.calls for kernel in detail.kernels) == row.kernel_calls
        assert sum(step.gpu_ns or 0 for step in detail.iterations) == row.gpu_ns
        assert sum(step.calls for step in detail.iterations) == row.calls


def test_a_detail_shows_all_iterations_even_where_one_is_selected(gpu_view: ProfileView, ref: RunRef) -> None:
    row = next(row for row in ops_page(gpu_view, ref, SECOND).rows if row.name == "fc/linear")
    assert work_detail(gpu_view, ref, SECOND, "op", row.id).iterations == [
        WorkIteration(index, index, 5 + index, 5 + index, 1.0, row.cpu_total_ns, 100_000, 100_000, 100_000)
        for index in range(3)
    ]
    with pytest.raises(KeyError):
        work_detail(gpu_view, ref, SECOND, "op", "no such id")


def test_selecting_one_of_equal_steps_leaves_a_third(gpu_view: ProfileView, ref: RunRef) -> None:
    whole, one = overview(gpu_view, ref, Selection(0, 2)), overview(gpu_view, ref, Selection(0, 0))
    assert (whole.summary.wall_clock_ns, one.summary.wall_clock_ns) == (3_000_000, 1_000_000)
    assert [(op.name, op.gpu_ns) for op in whole.top_ops] == [(op.name, 3 * (op.gpu_ns or 0)) for op in one.top_ops]
    assert [bar.selected for bar in one.iterations] == [True, False, False]
    assert (one.summary.start_iteration, one.summary.stop_iteration, one.summary.total_iterations) == (5, 5, 3)


def test_bars_hold_what_their_iteration_consists_of(gpu_view: ProfileView, ref: RunRef) -> None:
    page = overview(gpu_view, ref, SECOND)
    assert [bucket.key for bucket in page.buckets] == [part.key for part in page.account]
    assert page.iterations[1].category_ns == [part.value_ns for part in page.account]
    assert {part.key: part.value_ns for part in page.account if part.value_ns} == {
        "other_compute": 740_000,
        "copies": 20_000,
        "dataloader": 100_000,
        "cpu_launch": 40_000,
        "python": 94_000,
        "idle": 6_000,
    }
    assert [part.value_ns for part in page.resource_usage] == [0, 740_000, 20_000, 100_000, None, 46_000, 94_000]
    assert [category.key for category in page.categories] == [part.key for part in page.resource_usage]
    assert [category.key for category in page.categories if not category.recorded] == ["io"]


def test_samples_per_second_follow_from_the_batch_size(training, ref: RunRef) -> None:
    view = training().view(facts=RunFacts(batch_size=64, unprofiled_before_ns=[1_000_000] * 4))
    assert overview(view, ref, ALL).summary.samples_per_second == 64_000
    assert overview(training().view(), ref, ALL).summary.samples_per_second is None


def test_a_kernel_row_has_its_launch_and_its_ops(gpu_view: ProfileView, ref: RunRef) -> None:
    row = next(row for row in kernels_page(gpu_view, ref, ALL).rows if row.family == "convolution")
    assert (row.calls, row.total_ns, row.average_ns, row.min_ns, row.max_ns) == (
        6,
        1_500_000,
        250_000,
        200_000,
        300_000,
    )
    assert (row.occupancy_percent, row.bytes, row.tensor_core, row.rule) == (25.0, None, "no", "xmma-ffma")
    assert [(op.name, op.total_ns) for op in row.ops] == [("conv1/conv2d", 900_000), ("conv1/conv2d", 600_000)]
    copy = next(row for row in kernels_page(gpu_view, ref, ALL).rows if row.kind == "memcpy")
    assert (copy.bytes, copy.family, copy.tensor_core) == (3 * 98304, "copy", "no")


@pytest.mark.parametrize(
    ("precision", "using", "shown", "reason"),
    [
        ("fp32", "no", "fp32", "Its inputs are FP32; "),
        ("tf32", "yes", "tf32", ""),
        ("fp16", "yes", "fp16", ""),
    ],
)
def test_tensor_core_ops_say_precision_and_reason_forward_and_backward(
    training, ref: RunRef, precision: str, using: str, shown: str, reason: str
) -> None:
    view = training(precision).view()
    page = tensor_cores_page(view, ref, ALL)
    assert {(op.name, op.direction, op.using_tc, op.precision) for op in page.ops} == {
        (name, direction, using, shown)
        for name in ("conv1/conv2d", "fc/linear")
        for direction in ("forward", "backward")
    }
    assert all(op.reason.startswith(reason) and bool(op.reason) == bool(reason) for op in page.ops)


def test_a_gpu_of_unknown_capability_leaves_eligibility_unknown(training, ref: RunRef) -> None:
    view = training(capability=None).view()
    page = tensor_cores_page(view, ref, ALL)
    assert page.supported_precisions == []
    assert "was not recorded" in page.headline
    verdicts = {row.name: row.tc_eligible for row in ops_page(view, ref, ALL).rows}
    assert (verdicts["conv1/conv2d"], verdicts["item"]) == ("unknown", "no")


def test_a_cpu_run_has_none_for_every_gpu_figure(cpu_view: ProfileView, ref: RunRef) -> None:
    everything = cpu_view.selection()
    page: Overview = overview(cpu_view, ref, everything)
    assert page.has_gpu is False
    assert {part.key: part.value_ns for part in page.resource_usage} == {
        "tensor_core": None, "other_kernels": None, "memory": None, "dataloader": 20_000, "io": None, "cpu": 120_000,
        "other": 60_000,
    }  # fmt: skip
    assert (page.gpu_utilization, page.kernel_time, page.tensor_core_efficiency) == ([], [], [])
    summary = page.summary
    assert (summary.gpu_utilization_percent, summary.gpu_busy_ns, summary.tensor_core_kernel_utilization_percent) == (
        None, None, None,
    )  # fmt: skip
    assert page.coverage.linked_percent is None

    ops = ops_page(cpu_view, ref, everything)
    assert ops.rows == page.top_ops
    assert {(row.gpu_ns, row.gpu_percent, row.using_tc) for row in ops.rows} == {(None, None, "unknown")}
    assert [(r.name, r.direction, r.cpu_total_ns, r.tc_eligible, r.precision) for r in ops.rows] == [
        ("fc/linear", "forward", 60_000, "unknown", "fp32"),
        ("fc/linear", "backward", 40_000, "unknown", "fp32"),
        ("add_", "", 20_000, "no", ""),
    ]
    detail = work_detail(cpu_view, ref, everything, "op", ops.rows[0].id)
    assert (detail.kernels, [s.gpu_ns for s in detail.shapes], {i.gpu_ns for i in detail.iterations}) == (
        [], [None], {None},
    )  # fmt: skip

    cores = tensor_cores_page(cpu_view, ref, everything)
    assert (cores.eligible_ns, cores.using_ns, cores.unknown_ns, cores.utilization_percent) == (None,) * 4
    kernels = kernels_page(cpu_view, ref, everything)
    assert (kernels.rows, kernels.by_family, kernels.total_rows) == ([], [], 0)


def test_a_recording_of_kernels_alone_has_all_pages(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.kernel("k", 0, 5, 3)
    view = trace.view()
    everything = view.selection()
    assert overview(view, ref, everything).summary.gpu_busy_ns == 5_000
    assert ops_page(view, ref, everything).rows == []
    assert kernels_page(view, ref, everything).coverage.unattributed_ns == 5_000
    assert tensor_cores_page(view, ref, everything).ops == []
    assert advice_page(view, ref, everything).rules


def test_an_occupancy_that_kineto_could_not_tell_is_unknown(training, ref: RunRef) -> None:
    view = training().view()
    view.profile.launch_configs.occupancy_percent[:] = 0
    assert {row.occupancy_percent for row in kernels_page(view, ref, ALL).rows} == {None}


def test_a_gain_above_one_is_better_whichever_way_the_measure_counts(training, ref: RunRef) -> None:
    a, b = (CompareInput(training().view(facts=RunFacts(batch_size=size)), ref, ALL) for size in (32, 64))
    gains = {metric.key: metric.gain for metric in compare_page(a, b).metrics}
    assert (gains["step_time"], gains["samples_per_second"], gains["tensor_core_time"]) == (1, 2, None)
