"""Rules about what was recorded and how several GPUs share the work: made-up cases with one fault each."""

from __future__ import annotations

from typing import Any

import pytest

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.finding import FindingItem, RuleStatus
from tb_dlprof_plugin.advice.step_marks import key_nodes
from tb_dlprof_plugin.measures import Frame
from tb_dlprof_plugin.storage.facts import RunFacts


def _status(frame: Frame, rule: str, ranks: list[Frame] | None = None) -> RuleStatus:
    (found,) = [s for s in advise(frame, frame.selection(), ranks or ()).rules if s.rule == rule]
    assert found.outcome != "failed", found.why
    return found


def _finding(frame: Frame, rule: str, ranks: list[Frame] | None = None) -> FindingItem:
    (found,) = [f for f in advise(frame, frame.selection(), ranks or ()).findings if f.rule == rule]
    return found


def _readings(finding: FindingItem) -> dict[str, float | None]:
    return {reading.label: reading.value for reading in finding.readings}


# -- iterations unlike the others


@pytest.fixture
def steps(new_trace) -> Any:
    """Makes a CPU recording of steps of the given lengths (us); the ops of a step take its first half."""

    def make(*lengths: float, first: int = 10, extra: dict[int, str] | None = None, **options: Any) -> Frame:
        trace, at = new_trace(), 0.0
        for index, length in enumerate(lengths):
            trace.step(first + index, at, length)
            trace.op("aten::linear", at + 1, length / 2)
            if name := (extra or {}).get(index):
                trace.op(name, at + 1 + length / 2, length / 4)
            at += length
        frame: Frame = trace.frame(**options)
        return frame

    return make


def test_a_slow_beginning_is_left_out_of_the_range(steps) -> None:
    finding = _finding(steps(500, 180, 100, 102, 98, 101, 100, 99), "bad_iteration_range")
    assert "use steps 12 to 17" in finding.title
    assert "--first 2 --last 7" in finding.code
    assert "the first ones do what is done only once" in finding.change
    assert _readings(finding) == {
        "Furthest from the median": pytest.approx(100 * (500 / 100.5 - 1)),
        "Iterations unlike the others": 2,
        "Mean over the selected iterations": 160_000,
        "Mean over the range to use": 100_000,
    }


def test_a_stray_step_is_shown_with_the_ops_that_only_it_has(steps) -> None:
    finding = _finding(steps(100, 101, 100, 400, 99, 100, extra={3: "aten::argmax"}), "bad_iteration_range")
    assert "use steps 10 to 12" in finding.title
    assert [(row.label, row.value_ns) for row in finding.evidence] == [("Only there: argmax", 100_000)]


def test_steps_that_all_vary_have_no_stray_one(steps) -> None:
    assert _status(steps(100, 140, 95, 130, 105, 145), "bad_iteration_range").outcome == "silent"
    assert _status(steps(100, 102, 110, 98, 101), "bad_iteration_range").outcome == "silent"
    assert _status(steps(100, 400), "bad_iteration_range").outcome == "not_applicable"


def test_calls_that_are_made_once_explain_a_first_step(new_trace) -> None:
    trace = new_trace()
    for index, (at, length) in enumerate(((0, 400), (400, 100), (500, 100), (600, 100))):
        trace.step(index, at, length)
        trace.op("aten::linear", at + 1, length / 2)
    trace.runtime(20, 150, name="cudaMalloc")
    trace.runtime(180, 80, name="cuLibraryLoadData", cat="cuda_driver")
    trace.runtime(270, 9, name="cudaMallocAsync")
    frame = trace.frame()
    seen = "1 call to the driver for memory (0.15 ms) and 1 call to load code (0.08 ms)"
    assert seen in _finding(frame, "bad_iteration_range").seen
    window = _finding(frame, "profiling_window")
    assert seen in window.seen
    assert _readings(window)["Allocating and loading"] == pytest.approx(100 * 230 / 700)


# -- no iterations


def _scoring(new_trace, batches: int, step_mark: bool = True) -> Frame:
    trace = new_trace()
    if step_mark:
        trace.step(0, 0, 100 * batches + 20)
    trace.op("aten::zeros", 1, 2)
    for index in range(batches):
        at = 10 + 100 * index
        trace.module("", at, 80)
        trace.op("aten::linear", at + 5, 20)
        trace.op("aten::relu", at + 30, 20)
        trace.op("aten::argmax", at + 85, 5)
    frame: Frame = trace.frame()
    return frame


@pytest.mark.parametrize("step_mark", [True, False])
def test_a_block_that_never_steps_names_what_repeats_in_it(new_trace, step_mark: bool) -> None:
    frame = _scoring(new_trace, 6, step_mark)
    finding = _finding(frame, "no_iterations")
    assert finding.title == "No iterations were found; the model repeats 6 times"
    assert _readings(finding)["Time from one to the next"] == 100_000
    nodes = [(node.name, node.calls) for node in key_nodes(frame, frame.selection())]
    assert nodes == [("the model", 6), ('op "linear"', 6), ('op "relu"', 6), ('op "argmax"', 6)]
    assert _status(frame, "profiling_window").outcome == "not_applicable"


def test_one_marked_step_is_an_iteration(new_trace, steps) -> None:
    assert _status(_scoring(new_trace, 2), "no_iterations").outcome == "silent"
    assert _status(steps(100), "no_iterations").outcome == "silent"


def test_gradient_accumulation_in_one_step_is_an_iteration(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 700)
    for index in range(6):
        trace.module("", 100 * index, 80)
        trace.op("aten::linear", 100 * index + 5, 20)
    trace.optimizer(610, 50)
    assert _status(trace.frame(), "no_iterations").outcome == "silent"


def test_optimizer_steps_are_iterations(new_trace) -> None:
    trace = new_trace()
    for index in range(4):
        trace.op("aten::linear", 100 * index, 20)
        trace.optimizer(100 * index + 40, 20)
    status = _status(trace.frame(), "no_iterations")
    assert (status.outcome, status.why) == ("silent", "4 iterations were found by the optimizer's steps.")


# -- module names


def test_ops_without_modules_are_counted(new_trace, gpu_frame: Frame) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    for index in range(4):
        trace.op("aten::linear", 10 * index, 8)
    trace.op("aten::relu", 50, 8)
    finding = _finding(trace.frame(), "missing_annotations")
    assert "The 5 ops of a step are in 2 rows" in finding.seen
    assert "linear stands for 4 calls, relu stands for 1 calls" in finding.seen
    assert "model=model" in finding.code
    assert _status(gpu_frame, "missing_annotations").outcome == "silent"


def test_a_compiled_model_has_no_modules_to_name(new_trace) -> None:
    trace = new_trace()
    trace.step(0, 0, 100)
    trace.op("aten::linear", 10, 8)
    frame = trace.frame(facts=RunFacts(compiled=True))
    assert _status(frame, "missing_annotations").outcome == "not_applicable"


# -- the window


@pytest.mark.parametrize(("lengths", "outcome"), [((100,), "fired"), ((100, 110), "fired"), ((100,) * 3, "silent")])
def test_two_iterations_are_too_few(steps, lengths, outcome: str) -> None:
    assert _status(steps(*lengths), "profiling_window").outcome == outcome


def test_the_first_steps_are_no_fault_where_nothing_is_done_once(steps) -> None:
    assert _status(steps(100, 100, 100, first=0), "profiling_window").outcome == "silent"


def test_a_recording_of_many_events_says_how_many_steps_are_enough(steps) -> None:
    import dataclasses

    frame = steps(*(100,) * 40)
    frame.profile = dataclasses.replace(
        frame.profile, source=dataclasses.replace(frame.profile.source, trace_events=6_000_000)
    )
    finding = _finding(frame, "profiling_window")
    assert "40 iterations of 150,000 events each were recorded; 6 are enough" in finding.seen
    assert "active=6" in finding.code


# -- the profiler's own time


def test_a_stretched_step_names_the_options_that_cost(steps) -> None:
    facts = RunFacts(unprofiled_step_ns=50_000, unprofiled_steps=12, with_stack=True, profile_memory=True)
    finding = _finding(steps(100, 100, 900, 100, facts=facts), "profiler_overhead")
    assert _readings(finding)["Recorded over unprofiled step"] == pytest.approx(2.0)
    assert "with_stack=False, profile_memory=False" in finding.code
    assert finding.severity == "medium"


def test_a_little_overhead_is_no_finding(steps) -> None:
    assert _status(steps(74, facts=RunFacts(unprofiled_step_ns=50_000)), "profiler_overhead").outcome == "silent"
    assert _status(steps(74), "profiler_overhead").outcome == "not_applicable"
