"""Launch delay and queue depth of literal launches."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.metrics.launches import launch_columns, launch_totals

US = 1000


def test_the_delay_counts_from_the_end_of_the_launch_call_and_the_queue_counts_what_has_not_begun(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.launch("a", 10, 20, 30)
    trace.launch("b", 30, 50, 10)
    trace.launch("c", 40, 60, 1)
    columns = launch_columns(view := trace.view(), view.selection())
    assert columns.delay_ns.tolist() == [8 * US, 18 * US, 18 * US]
    assert columns.queue.tolist() == [1, 1, 2]
    assert columns.call_ns.tolist() == [2 * US] * 3


def test_work_that_begins_while_its_call_runs_waited_for_nothing(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.launch("a", 10, 11, 30)
    columns = launch_columns(view := trace.view(), view.selection())
    assert (columns.delay_ns.tolist(), columns.early.tolist(), columns.clock.tolist()) == ([0], [True], [False])


def test_work_that_seems_to_begin_before_its_call_has_no_delay_because_the_clocks_disagree(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.launch("a", 10, 9, 30)
    view = trace.view()
    columns, totals = launch_columns(view, view.selection()), launch_totals(view, view.selection())
    assert (columns.delay_ns.tolist(), columns.early.tolist(), columns.clock.tolist()) == ([-1], [False], [True])
    assert columns.queue.tolist() == [1]
    assert (totals.median_delay_ns, totals.clock, totals.early) == (None, 1, 0)


def test_work_from_before_the_recording_is_in_the_queue_and_other_streams_and_gpus_are_not(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.kernel("orphan", 15, 10, 3)
    trace.kernel("orphan elsewhere", 15, 10, 4, stream=8)
    trace.kernel("orphan on another GPU", 15, 10, 5, device=1)
    trace.launch("a", 10, 30, 30)
    columns = launch_columns(view := trace.view(), view.selection())
    assert columns.queue.tolist() == [-1, -1, -1, 2]


def test_a_graph_launch_puts_all_its_kernels_into_the_queue(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.runtime(10, 5, 900, name="cudaGraphLaunch")
    for index in range(3):
        trace.kernel(f"k{index}", 20 + 10 * index, 10, 900)
    columns = launch_columns(view := trace.view(), view.selection())
    assert columns.queue.tolist() == [3, 3, 3]
    assert columns.delay_ns.tolist() == [5 * US, 15 * US, 25 * US]


def test_without_a_recorded_launch_call_everything_is_unknown(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 100)
    trace.op("aten::mm", 10, 20, ext=5)
    trace.kernel("linked by its op alone", 20, 10, 77, ext=5)
    trace.kernel("linked to nothing", 40, 10)
    view = trace.view()
    columns, totals = launch_columns(view, view.selection()), launch_totals(view, view.selection())
    assert columns.delay_ns.tolist() == columns.queue.tolist() == columns.call_ns.tolist() == [-1, -1]
    assert (totals.calls.tolist(), totals.delays.tolist(), totals.median_delay_ns) == ([1, 0], [0, 0], None)


def test_totals_are_of_what_the_selected_iterations_launched(new_trace) -> None:
    trace = new_trace()
    for index in range(2):
        trace.step(index, 100 * index, 100)
        trace.launch("k", 100 * index + 10, 100 * index + 20 + 30 * index, 1)
    view = trace.view()
    both, second = launch_totals(view, view.selection()), launch_totals(view, view.selection(1, 1))
    assert (both.calls.tolist(), both.delay_ns.tolist(), both.max_delay_ns.tolist()) == ([2], [46 * US], [38 * US])
    assert (second.calls.tolist(), second.delay_ns.tolist(), second.short.tolist()) == ([1], [38 * US], [1])
    assert both.median_delay_ns == pytest.approx(23 * US)
