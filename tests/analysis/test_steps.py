"""Iterations: the user's own steps, else optimizer steps, else the whole recording."""

from __future__ import annotations

from tb_dlprof_plugin.analysis.optimizer_closures import with_steps_around_closures
from tb_dlprof_plugin.analysis.steps import find_steps
from tb_dlprof_plugin.model.call_tree import depths
from tb_dlprof_plugin.model.timeline import StepMarks
from tb_dlprof_plugin.model.tree import parents, self_time


def _as_rows(steps: StepMarks) -> tuple[str, list[tuple[int, int, int]]]:
    columns = (steps.number.tolist(), steps.start_ns.tolist(), steps.stop_ns.tolist())
    return steps.found_by, list(zip(*columns, strict=True))


def test_consecutive_profiler_steps_share_their_boundary(new_trace) -> None:
    # GIVEN steps with some microseconds of the profiler between them
    trace = new_trace()
    trace.step(3, 0, 98)
    trace.step(4, 100, 97)
    trace.step(5, 200, 90)
    assert _as_rows(find_steps(trace.timeline())) == (
        "profiler_step",
        [(3, 0, 100_000), (4, 100_000, 200_000), (5, 200_000, 290_000)],
    )


def test_steps_with_a_gap_in_their_numbers_keep_the_gap(new_trace) -> None:
    trace = new_trace()
    trace.step(3, 0, 90)
    trace.step(7, 500, 90)
    assert _as_rows(find_steps(trace.timeline())) == ("profiler_step", [(3, 0, 90_000), (7, 500_000, 590_000)])


def test_steps_are_in_order_of_time_not_of_text(new_trace) -> None:
    trace = new_trace()
    trace.step(10, 100, 100)
    trace.step(9, 0, 100)
    assert _as_rows(find_steps(trace.timeline())) == (
        "profiler_step",
        [(9, 0, 100_000), (10, 100_000, 200_000)],
    )


def test_the_gpus_copies_of_step_annotations_are_no_steps(new_trace) -> None:
    trace = new_trace()
    trace.step(1, 0, 1000)
    trace.event("ProfilerStep#1", "gpu_user_annotation", 150, 795, pid=0, tid=7)
    trace.event("ProfilerStep#2", "gpu_user_annotation", 950, 10, pid=0, tid=7)
    assert _as_rows(find_steps(trace.timeline())) == ("profiler_step", [(1, 0, 1_000_000)])


def test_steps_recorded_as_ops_by_older_torch_count(new_trace) -> None:
    trace = new_trace()
    trace.op("ProfilerStep#1", 0, 10, cat="Operator")
    assert _as_rows(find_steps(trace.timeline())) == ("profiler_step", [(1, 0, 10_000)])


def test_without_profiler_steps_each_optimizer_step_ends_an_iteration(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10)
    trace.optimizer(20, 10)
    trace.op("aten::mm", 40, 10)
    trace.optimizer(60, 15)
    trace.op("aten::mm", 90, 10)
    assert _as_rows(find_steps(trace.timeline())) == (
        "optimizer_step",
        [(0, 0, 30_000), (1, 30_000, 75_000)],
    )


def test_without_any_step_the_recording_is_one_iteration_over_host_and_device(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 10)
    trace.kernel("k", 8, 40)
    assert _as_rows(find_steps(trace.timeline())) == ("none", [(0, 0, 48_000)])


def test_the_profile_notes_how_its_iterations_were_found(new_trace) -> None:
    none, optimizer, profiler = new_trace(), new_trace(), new_trace()
    for trace in (none, optimizer, profiler):
        trace.op("aten::mm", 0, 10)
    optimizer.optimizer(20, 10)
    profiler.step(1, 0, 20)
    codes = [{note.code for note in trace.profile().notes} for trace in (none, optimizer, profiler)]
    assert [c & {"no_steps", "steps_from_optimizer"} for c in codes] == [{"no_steps"}, {"steps_from_optimizer"}, set()]


def test_a_step_that_begins_inside_an_optimizers_step_begins_with_it(new_trace) -> None:
    # GIVEN an optimizer that calls the model itself, as Lightning's closure does, and steps that begin with that call
    trace = new_trace()
    trace.step(3, 0, 110)
    trace.optimizer(100, 90)
    trace.step(4, 110, 100)
    trace.op("aten::mm", 120, 50)
    trace.step(5, 300, 100)
    timeline = with_steps_around_closures(trace.timeline())
    assert _as_rows(find_steps(timeline)) == (
        "profiler_step",
        [(3, 0, 100_000), (4, 100_000, 300_000), (5, 300_000, 400_000)],
    )
    # THEN the optimizer's own time is what the op in it leaves
    host = timeline.host
    names = [timeline.strings[name] for name in host.name]
    own = self_time(host.duration_ns, parents(depths(host)))
    assert dict(zip(names, own.tolist(), strict=True))["Optimizer.step#SGD.step"] == 40_000


def test_steps_around_whole_optimizer_steps_stay_as_they_are(new_trace) -> None:
    trace = new_trace()
    trace.step(3, 0, 100)
    trace.optimizer(50, 40)
    trace.step(4, 100, 100)
    timeline = trace.timeline()
    assert with_steps_around_closures(timeline) is timeline
