"""The Launches page: its answer in words, its rows, its limits, and what it says where nothing is known."""

from __future__ import annotations

import msgspec
import pytest

from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.pages import launch_rows
from tb_dlprof_plugin.pages.launches import launches_page
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.timeline.event import timeline_event
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef


def test_the_first_line_says_what_sets_the_pace_and_why_the_gpu_is_idle(gpu_view: ProfileView, ref: RunRef) -> None:
    page = launches_page(gpu_view, ref, gpu_view.selection())
    assert page.headline == (
        "CPU and GPU wait for each other; the GPU waits for the CPU 24 % of the 1.00 ms step: "
        "42 % of that while the CPU waits for the DataLoader, 38 % while the CPU runs Python between ops. "
        "The longest gap, 110 µs as recorded, is ended by to."
    )
    assert (page.step.ms, page.step.source, page.step_words) == (
        1.0, "measured", "timed without the profiler; 1.00 ms while recorded",
    )  # fmt: skip
    assert [row.pace for row in page.iterations] == ["mixed"] * 3
    assert page.figures.sync_calls_per_iteration == 2


def test_slices_bars_and_rows_show_the_same_idle_time(gpu_view: ProfileView, ref: RunRef) -> None:
    page = launches_page(gpu_view, ref, gpu_view.selection())
    idle = sum(row.idle_ns for row in page.iterations)
    assert sum(part.value_ns or 0 for part in page.idle_by_cause) == idle
    assert [
        sum(part.value_ns for part in page.idle_by_activity if part.cause == cause.key) for cause in page.idle_by_cause
    ] == [cause.value_ns for cause in page.idle_by_cause]
    assert sum(part.value_ns or 0 for part in page.idle_by_kind) == idle
    assert sum(gap.duration_ns for gap in page.gaps) == idle
    assert [sum(row.idle_by_cause_ns) for row in page.iterations] == [row.idle_ns for row in page.iterations]
    assert [category.key for category in page.bar_categories] == ["busy", *page.causes]
    for bar, row in zip(page.bars, page.iterations, strict=True):
        assert bar.category_ns == [row.busy_ns, *row.idle_by_cause_ns]
        assert sum(value or 0 for value in bar.category_ns) == bar.duration_ns


def test_the_recorders_part_is_in_the_bars_and_in_no_idle_time(training, ref: RunRef) -> None:
    # GIVEN steps of 1000 us with the GPU idle for 240 that take 870 without the profiler
    view = training().view(facts=RunFacts(unprofiled_before_ns=[870_000] * 4))
    page = launches_page(view, ref, view.selection())
    # THEN 110 of them are idle, for loading nearly all; in the last step 5 less
    assert page.figures.idle_percent == pytest.approx(100 * 325 / 2610)
    assert sum(part.value_ns or 0 for part in page.idle_by_cause) == 325_000
    assert sum(part.value_ns or 0 for part in page.idle_by_kind) == 325_000
    assert page.headline_parts[0].text.endswith("the GPU waits for data 12 % of the 870 µs step.")
    assert page.bar_categories[-1].key == "recorder"
    assert [bar.category_ns[-1] for bar in page.bars] == [130_000] * 3
    assert [sum(value or 0 for value in bar.category_ns) for bar in page.bars] == [1_000_000] * 3
    assert overview(view, ref, view.selection()).headline.startswith(
        "The GPU works 88 % of each 870 µs step and waits for data 12 %. "
    )


def test_a_gap_names_the_kernel_the_op_and_the_module_that_ended_it(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.step(4, 0, 1000)
    trace.module("fc", 500, 100)
    trace.op("aten::linear", 510, 60)
    trace.launch("gemm_kernel", 520, 530, 470)
    view = trace.view(facts=RunFacts(unprofiled_before_ns=[1_000_000] * 4))
    page = launches_page(view, ref, view.selection())
    (gap,) = page.gaps
    assert (gap.number, gap.start_ns, gap.duration_ns, gap.cause) == (4, 0, 530_000, "python")
    assert (gap.kernel, gap.op, gap.module, gap.kind) == ("gemm_kernel", "fc/linear", "fc", "host_wait")
    assert page.headline == (
        "The CPU sets the pace; the GPU waits for it 53 % of the 1.00 ms step, "
        "mostly while the CPU runs Python between ops. The longest gap, 530 µs as recorded, is ended by fc/linear."
    )
    assert [(part.text, part.kind) for part in page.headline_parts if part.kind] == [("fc/linear", "op")]


def test_a_gap_is_found_on_the_timeline_of_its_iteration(gpu_view: ProfileView, ref: RunRef) -> None:
    every = gpu_view.selection()
    for gap in launches_page(gpu_view, ref, every).gaps:
        drawn = timeline_event(gpu_view, ref, every, gap.index, gap.event)
        assert drawn.spot.duration_ns == gap.duration_ns
        assert drawn.spot.start_ns == gap.start_ns


def test_bars_show_all_iterations_and_the_rest_the_selected_ones(gpu_view: ProfileView, ref: RunRef) -> None:
    page = launches_page(gpu_view, ref, gpu_view.selection(1, 1))
    assert [bar.selected for bar in page.bars] == [False, True, False]
    assert [row.index for row in page.iterations] == [1]
    assert {gap.index for gap in page.gaps} == {1}
    assert page.figures.launches == 7


def test_a_cpu_run_says_that_nothing_ran_on_a_gpu(cpu_view: ProfileView, ref: RunRef) -> None:
    page = launches_page(cpu_view, ref, cpu_view.selection())
    assert page.headline.startswith("There is no GPU in this recording")
    assert (page.bars, page.iterations, page.gaps, page.kernels) == ([], [], [], [])
    assert (page.figures.idle_percent, page.figures.median_delay_ns, page.figures.mean_queue) == (None, None, None)


def test_without_recorded_launches_delay_queue_and_pace_are_unknown(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    trace.kernel("a", 0, 10)
    trace.kernel("b", 50, 10)
    view = trace.view(facts=RunFacts(unprofiled_before_ns=[60_000] * 4))
    page = launches_page(view, ref, view.selection())
    assert page.headline == (
        "The bottleneck is unknown, because the launches were not recorded; "
        "the GPU is idle 67 % of the 60.0 µs recording, mostly while the CPU was not recorded. "
        "The longest gap, 40.0 µs as recorded, is ended by b."
    )
    figures = page.figures
    assert (figures.slack_percent, figures.median_delay_ns, figures.mean_queue) == (None,) * 3
    assert page.iterations[0].late_percent is None
    assert page.bars[0].category_ns == [20_000, *[None] * 3, 40_000]
    assert page.iterations[0].pace == "unknown"


def test_several_gpus_have_their_own_rows_and_the_busiest_sets_the_pace(new_trace, ref: RunRef) -> None:
    trace = new_trace()
    for index in range(2):
        trace.step(index, 100 * index, 100)
        trace.launch("a", 100 * index, 100 * index + 2, 98)
        trace.launch("b", 100 * index + 50, 100 * index + 60, 40, device=1)
    view = trace.view(facts=RunFacts(unprofiled_before_ns=[100_000] * 4))
    page = launches_page(view, ref, view.selection())
    assert [(row.index, row.gpu, row.pace) for row in page.iterations] == [
        (0, 0, "gpu"), (0, 1, "cpu"), (1, 0, "gpu"), (1, 1, "cpu"),
    ]  # fmt: skip
    assert page.headline.startswith("The busiest GPU sets the pace; a GPU on average is idle 31 % of the 100 µs step")
    # Means over the GPUs.
    assert [bar.category_ns[0] for bar in page.bars] == [69_000, 69_000]


def test_rows_are_limited_and_counted(new_trace, ref: RunRef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_rows, "GAP_ROWS", 2)
    monkeypatch.setattr(launch_rows, "KERNEL_ROWS", 1)
    monkeypatch.setattr(launch_rows, "SYNC_ROWS", 0)
    trace = new_trace()
    trace.step(1, 0, 500)
    for index in range(4):
        trace.launch(f"k{index}" + "x" * 5000, 100 * index + 10, 100 * index + 20 + index, 10)
    trace.runtime(450, 10, name="cudaStreamSynchronize")
    view = trace.view()
    page = launches_page(view, ref, view.selection())
    assert (len(page.gaps), page.total_gaps) == (2, 5)
    assert (len(page.kernels), page.total_kernels) == (1, 4)
    assert (len(page.syncs), page.total_syncs) == (0, 1)
    assert len(msgspec.json.encode(page)) < 10_000
